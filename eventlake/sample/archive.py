"""Writes the raw archive of a sample: day folders of gzipped files, with faulty lines in them."""

import filecmp
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Raw
from msgspec.json import encode

from eventlake.sample.copies import Copies, Layout, PlannedFile, Role
from eventlake.sample.event_types import DEBUG_PROBE
from eventlake.sample.events import EventFactory
from eventlake.sample.expected import ArchiveFile, Reason, Row, SampleArchive
from eventlake.sample.spec import HOUR, Draw, Fields, Kind, SampleSource, SampleSpec, iso

BLANK_LINES = (b"", b"   ", b"\r", b"\t ")


def blank_rows() -> Iterator[Row]:
    return (Row(line) for line in BLANK_LINES)


def fault_rows(factory: EventFactory, draw: Draw, received: int) -> Iterator[Row]:
    """One line per kind; a line counts for a table only if just its id is missing."""

    def event(kind: Kind = DEBUG_PROBE) -> Fields:
        return factory.event(kind, draw, received)

    for data in _not_json(event):
        yield Row(data, reason=Reason.NOT_JSON)
    for data in (b"[1,2,3]", b"42", b'"text"', b"null"):
        yield Row(data, reason=Reason.NOT_AN_OBJECT)
    for wrong, reason in (
        (event() | {"properties": {"half": Raw(b'"\\ud83d"')}}, Reason.LONE_SURROGATE),
        (event() | {"properties": {"city": Raw(b'"Z\xfcrich"')}}, Reason.BAD_UTF8),
        (event() | {"type": "delete"}, Reason.UNKNOWN_TYPE),
        (_without("type", event()), Reason.UNKNOWN_TYPE),
        (event() | {"event": None}, Reason.NO_EVENT_NAME),
        (_without("event", event()), Reason.NO_EVENT_NAME),
        (event() | {"receivedAt": "yesterday"}, Reason.NO_RECEIVED_AT),
        (event() | {"receivedAt": "2026-13-45T25:00:00Z"}, Reason.NO_RECEIVED_AT),
        (event() | {"receivedAt": None}, Reason.NO_RECEIVED_AT),
        (_without("receivedAt", event()), Reason.NO_RECEIVED_AT),
    ):
        yield Row(encode(wrong), reason=reason)
    kind = factory.any_kind(draw)
    for nameless in (event(kind) | {"messageId": None}, _without("messageId", event(kind))):
        yield Row(encode(nameless), kind.table, reason=Reason.NO_MESSAGE_ID)


def _not_json(event: Callable[[], Fields]) -> Iterator[bytes]:
    yield b"<html><body><h1>502 Bad Gateway</h1></body></html>"
    yield encode(event()).partition(b'"receivedAt"')[0]
    yield encode(event()) + b" and more"
    yield encode(event()) + encode(event())
    yield encode(event() | {"properties": {"ratio": Raw(b"NaN")}})


def _without(key: str, event: Fields) -> Fields:
    return {name: value for name, value in event.items() if name != key}


_STRANGE_PROPERTIES: tuple[dict[str, object], ...] = (
    {"note": "a\u0000b"},
    {"note": "one\u2028line\u0085still"},  # characters at which str.splitlines() would cut
    {"exponent": Raw(b"1e3"), "tenth": Raw(b"0.10"), "zero": Raw(b"-0")},
    {"huge": 2**64, "precise": Raw(b"12345678901234567890.123456"), "tiny": Raw(b"1e-9")},
    {"iOS": True, "i_os": False, "emptied": "", "nothing": None, "open": {}},
    {"deep": {"er": {"and": {"deeper": [[1, 2.50], [{"x": None}]]}}}},
)


def odd_rows(factory: EventFactory, draw: Draw, received: int) -> Iterator[Row]:
    """One of each, all received at the given moment, all of one table."""

    def probe() -> Fields:
        return factory.event(DEBUG_PROBE, draw, received)

    def row(data: bytes) -> Row:
        return Row(data, DEBUG_PROBE.table, received)

    for strange in _STRANGE_PROPERTIES:
        yield row(encode({**probe(), "properties": strange}))
    yield row(encode({**probe(), "properties": Raw(b'{"plan":"old","plan":"new"}')}))
    yield row(encode({**probe(), "type": "TRACK"}))
    yield row(encode({**probe(), "messageId": 1 + draw.bits(60), "userId": draw.below(10**6)}))
    yield row(b"  " + encode(probe()) + b" \r")
    elsewhere = iso(received + 2 * HOUR).replace("Z", "+02:00")
    yield row(encode({**probe(), "receivedAt": elsewhere}))


# Fast rather than small; the same level everywhere, since the bytes depend on it.
_LEVEL = 1
_GZIP = 16 + zlib.MAX_WBITS  # the gzip header of zlib has no time and no name
_LINES_AT_ONCE = 512
_CLEAR_OF_LINE_ENDS = 250


def gzipped(lines: Iterable[bytes], *, tidy: bool = True) -> Iterator[bytes]:
    """The lines as the chunks of a gzip file.

    An untidy one is a chain of gzip members, and its last line has no line break.
    """
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    lines = iter(lines)
    before = b""
    while batch := list(islice(lines, _LINES_AT_ONCE)):
        yield packer.compress(before + b"\n".join(batch))
        before = b"\n"
        if not tidy:
            yield packer.flush()
            packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    if tidy:
        yield packer.compress(before)
    yield packer.flush()


def cut_off(whole: bytes) -> tuple[bytes, int]:
    """A gzip file cut somewhere past its middle, and how many whole lines are left in it."""
    text = zlib.decompress(whole, _GZIP)
    for size in range(len(whole) // 2, len(whole)):
        left = zlib.decompressobj(_GZIP).decompress(whole[:size])
        # Decoders may differ in the last bytes they return: stay away from the ends of lines.
        begun = len(left) - (left.rfind(b"\n") + 1)
        missing = text.find(b"\n", len(left)) - len(left)
        if min(begun, missing) >= _CLEAR_OF_LINE_ENDS:
            return whole[:size], left.count(b"\n")
    raise ValueError("no line is long enough to be cut in its middle; use longer lines")


def write_if_different(path: Path, chunks: Iterable[bytes]) -> int:
    """Write a file atomically unless it has the same bytes already; returns its size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as out:
        for chunk in chunks:
            out.write(chunk)
        size = out.tell()
    if path.exists() and filecmp.cmp(part, path, shallow=False):
        part.unlink()
    else:
        os.replace(part, path)
    return size


DUMMY_OBJECT = "dummy-object.txt"  # as object stores create them
_LINES_TO_A_COPY_SOON = 5
_EVENTS_TO_A_COPY = 90  # gives 1 % duplicates, since some copies are of later days


def write_archive(
    root: Path,
    spec: SampleSpec | None = None,
    *,
    arrived: int | None = None,
    sources: Sequence[SampleSource] = SampleSpec.sources,
) -> SampleArchive:
    """Write the raw archive below the lake's storage folder; existing files stay.

    With `arrived` n, only files that the first n syncs see: the folders of n days, without files
    that arrive later. The result covers what was written.
    """
    spec = spec or SampleSpec()
    files = {
        source.id: tuple(_SourceArchive(spec, source).write(root, arrived)) for source in sources
    }
    return SampleArchive(tuple(sources), files)


class _SourceArchive:
    """Writes the archive of one source."""

    def __init__(self, spec: SampleSpec, source: SampleSource) -> None:
        self._spec, self._source = spec, source
        self._layout = Layout(spec, source)
        self._factory = EventFactory(spec, source)
        self._copies = Copies(spec, self._factory, self._layout)
        self._repeat_every = _repeat_every(spec)

    def write(self, root: Path, arrived: int | None) -> Iterator[ArchiveFile]:
        last = self._spec.days if arrived is None else min(self._spec.days, arrived)
        for day in range(1, last + 1):
            for file in self._layout.files(day):
                if arrived is None or file.arrival <= arrived:
                    yield self._write_file(root, file)
        if self._spec.faults:
            folder = root / "segment-logs" / self._source.id
            for place in (folder, folder / Path(self._first_path).parent.name):
                write_if_different(place / DUMMY_OBJECT, ())

    @property
    def _first_path(self) -> str:
        return next(self._layout.files(1)).path

    def _write_file(self, root: Path, file: PlannedFile) -> ArchiveFile:
        written = ArchiveFile(file.path, file.folder, file.arrival)
        role = file.key.role
        if role is Role.CUT:
            rows = list(self._rows(file))
            data, whole_lines = cut_off(b"".join(gzipped(row.data for row in rows)))
            rows[whole_lines:] = [Row(b"", reason=Reason.CUT_OFF)]
            for row in rows:
                written.add(row)
            chunks: Iterable[bytes] = (data,)
        else:
            chunks = gzipped(_counted(self._rows(file), written), tidy=role is not Role.STRAGGLER)
        written.size = write_if_different(root / file.path, chunks)
        return written

    def _rows(self, file: PlannedFile) -> Iterator[Row]:
        """The events of a file, with its other lines spread among them."""
        place = f"{self._spec.seed}/{self._source.slug}/{file.key.day}/{file.key.role}"
        draw = Draw(f"{place}/{file.key.number}", file.received_on, self._spec.faults)
        extra = deque(self._extra_rows(file, draw))
        step = max(1, file.events // (len(extra) + 1))
        soon: deque[tuple[int, Row]] = deque()
        pace = (file.end - file.start) / max(1, file.events)
        for number in range(file.events):
            received = file.start + int((number + draw.random()) * pace)
            kind = self._kind(file, number, draw)
            event = self._factory.event(kind, draw, received)
            row = Row(encode(event), kind.table, received)
            if self._is_repeated(file, number):
                row = row._replace(message_id=str(event["messageId"]))
                copy = self._copies.repeat(event, row, file, draw)
                if copy is not None:
                    soon.append((number + _LINES_TO_A_COPY_SOON, copy))
            yield row
            if soon and soon[0][0] <= number:
                yield soon.popleft()[1]
            if extra and number % step == 0:
                yield extra.popleft()
        yield from (copy for _, copy in soon)
        yield from extra

    def _extra_rows(self, file: PlannedFile, draw: Draw) -> Iterator[Row]:
        yield from self._copies.waiting_for(file)
        if self._spec.faults and file.key.role is Role.REGULAR:
            received = (file.start + file.end) // 2
            rows = [
                *odd_rows(self._factory, draw, received),
                *fault_rows(self._factory, draw, received),
                *blank_rows(),
            ]
            # Each once a day, distributed over the files of the day.
            yield from rows[file.key.number :: self._spec.files_per_day]

    def _kind(self, file: PlannedFile, number: int, draw: Draw) -> Kind:
        """A random kind, but every kind at least once on a day with enough events."""
        kinds = self._factory.kinds(draw.day)
        if file.key.role is Role.REGULAR:
            every = max(1, self._spec.events_per_day // len(kinds))
            turn, rest = divmod(file.events_before + number, every)
            if rest == 0 and turn < len(kinds):
                return kinds[turn]
        return self._factory.any_kind(draw)

    def _is_repeated(self, file: PlannedFile, number: int) -> bool:
        every = self._repeat_every
        if every == 0 or file.key.role is not Role.REGULAR:
            return False
        return (file.events_before + number) % every == every // 2


def _repeat_every(spec: SampleSpec) -> int:
    """The number of events per repeated event; 0: none is repeated."""
    if spec.duplicates is not None:
        return round(1 / spec.duplicates) if spec.duplicates else 0
    # Often enough for all variants on small days.
    return max(1, min(_EVENTS_TO_A_COPY, spec.events_per_day // 12)) if spec.faults else 0


def _counted(rows: Iterable[Row], written: ArchiveFile) -> Iterator[bytes]:
    for row in rows:
        written.add(row)
        yield row.data

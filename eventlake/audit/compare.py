"""Compares events and rows, bucket by bucket, and collects the differences."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
import pyarrow.parquet as pq

from eventlake.audit.rows import DataFile
from eventlake.audit.rule import Raw, RawVerdict, Row, RowVerdict, judge
from eventlake.columnar.raw_lines import RawLines
from eventlake.rules.events import message_id
from eventlake.rules.names import MESSAGE_ID
from eventlake.rules.parse import parse_line
from eventlake.rules.partitions import DatePartition, hour_of, partition_of
from eventlake.settings.models import Source
from eventlake.storage import Storage, StoredFile


def compare(raw: np.ndarray, rows: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """A verdict on each event and on each row.

    The rule is applied only to ids that do not simply occur once on both sides.
    """
    raw_verdicts = np.full(len(raw), RawVerdict.LOADED, dtype=np.uint8)
    row_verdicts = np.full(len(rows), RowVerdict.FINE, dtype=np.uint8)
    row_verdicts[~rows["judged"]] = RowVerdict.NOT_JUDGED
    for in_raw, in_rows in _suspects(raw, rows):
        in_raw = in_raw[np.lexsort([raw[in_raw][key] for key in ("line", "file", "received")])]
        in_rows = in_rows[np.argsort(rows["received"][in_rows], kind="stable")]
        events = [Raw(*one) for one in raw[in_raw][["received", "table", "demand"]].tolist()]
        found = [Row(*one) for one in rows[in_rows][["received", "table", "judged"]].tolist()]
        raw_verdicts[in_raw], row_verdicts[in_rows] = judge(events, found, window)
    return raw_verdicts, row_verdicts


def _suspects(raw: np.ndarray, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The positions of the events and rows of each id that the rule has to judge."""
    if not len(raw) + len(rows):
        return
    hi, lo = (np.concatenate([raw[half], rows[half]]) for half in ("hi", "lo"))
    order = np.lexsort((lo, hi))
    new = np.append(True, (np.diff(hi[order]) != 0) | (np.diff(lo[order]) != 0))
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(order))
    ids = np.empty(len(order), dtype=np.int64)
    ids[order] = np.cumsum(new) - 1
    simple = _simple(raw, rows, ids[: len(raw)], ids[len(raw) :], len(starts))
    for number in np.flatnonzero(~simple):
        members = order[starts[number] : ends[number]]
        yield members[members < len(raw)], members[members >= len(raw)] - len(raw)


def _simple(
    raw: np.ndarray, rows: np.ndarray, raw_ids: np.ndarray, row_ids: np.ndarray, count: int
) -> np.ndarray:
    """Which ids have one event and one matching row, or only rows around the range."""
    events = np.bincount(raw_ids, minlength=count)
    judged = np.bincount(row_ids[rows["judged"]], minlength=count)
    once = (events == 1) & (judged == 1) & (np.bincount(row_ids, minlength=count) == 1)
    event, row = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    event[raw_ids], row[row_ids] = np.arange(len(raw)), np.arange(len(rows))
    at = np.flatnonzero(once)
    for name in ("received", "table"):
        once[at] &= raw[name][event[at]] == rows[name][row[at]]
    simple: np.ndarray = once | ((events == 0) & (judged == 0))
    return simple


EXAMPLES = 3
"""Ids shown of each kind of difference in a partition."""

MISSING, UNEXPECTED, DOUBLED, UNCHECKED = "missing", "unexpected", "doubled", "unchecked"
_KINDS = {RowVerdict.DOUBLED: DOUBLED, RowVerdict.UNEXPECTED: UNEXPECTED}

PartitionRef = tuple[str, str]
"""A table and the path of a partition."""


@dataclass(frozen=True, slots=True)
class Example:
    """The position of an example: a line of a raw file, or a row of a data file."""

    kind: str
    file: int
    number: int


@dataclass
class Findings:
    """The differences found so far."""

    layout: DatePartition
    tables: list[str]  # by number
    data_files: Sequence[DataFile]
    gone_hours: frozenset[str]
    fates: Counter[tuple[str, RawVerdict]] = field(default_factory=Counter)
    unchecked: Counter[str] = field(default_factory=Counter)
    differences: dict[PartitionRef, Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    examples: dict[PartitionRef, list[Example]] = field(default_factory=lambda: defaultdict(list))

    def add(
        self, raw: np.ndarray, raw_verdicts: np.ndarray, rows: np.ndarray, row_verdicts: np.ndarray
    ) -> None:
        """Add the verdicts on a bucket."""
        pairs, counts = np.unique(
            raw["table"].astype(np.int64) * len(RawVerdict) + raw_verdicts, return_counts=True
        )
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            table, verdict = divmod(pair, len(RawVerdict))
            self.fates[self.tables[table], RawVerdict(verdict)] += count
        for event in raw[raw_verdicts == RawVerdict.MISSING]:
            place = self.tables[event["table"]], partition_of(self.layout, int(event["received"]))
            self._differs(place, Example(MISSING, int(event["file"]), int(event["line"])))
        wrong = (row_verdicts == RowVerdict.DOUBLED) | (row_verdicts == RowVerdict.UNEXPECTED)
        for row, verdict in zip(rows[wrong], row_verdicts[wrong].tolist(), strict=True):
            file = self.data_files[row["file"]]
            kind = _KINDS[RowVerdict(verdict)]
            if kind == UNEXPECTED and self._cannot_be_checked(int(row["received"])):
                self.unchecked[file.table] += 1
                continue
            example = Example(kind, int(row["file"]), int(row["row"]))
            self._differs((file.table, file.partition), example)

    def _cannot_be_checked(self, received: int) -> bool:
        """Whether the row may come from a raw file that no longer exists."""
        try:
            return bool(self.gone_hours) and hour_of(received) in self.gone_hours
        except OverflowError:  # a time that no calendar has
            return False

    def _differs(self, place: PartitionRef, example: Example) -> None:
        count = self.differences[place]
        count[example.kind] += 1
        if count[example.kind] <= EXAMPLES:
            self.examples[place].append(example)


def ids_of(
    storage: Storage,
    source: Source,
    raw: Sequence[StoredFile],
    data: Sequence[DataFile],
    examples: Iterable[Example],
) -> dict[Example, str]:
    """The id of each example; every file is read once."""
    by_file: dict[tuple[bool, int], dict[int, list[Example]]] = {}
    for example in examples:
        file = by_file.setdefault((example.kind == MISSING, example.file), {})
        file.setdefault(example.number, []).append(example)
    found: dict[Example, str] = {}
    for (in_archive, file_number), wanted in by_file.items():
        ids = (
            _raw_ids(storage, source, raw[file_number].path, set(wanted))
            if in_archive
            else _row_ids(storage, source, data[file_number].path, wanted)
        )
        found |= {example: id for number, id in ids for example in wanted[number]}
    return found


def _raw_ids(
    storage: Storage, source: Source, path: str, numbers: set[int]
) -> Iterator[tuple[int, str]]:
    for number, line in RawLines(lambda: storage.open_stream(path), source.limits.line_bytes):
        if number in numbers:
            yield number, message_id(parse_line(line, source.limits)) or sha256(line).hexdigest()
            numbers.discard(number)
            if not numbers:
                return


def _row_ids(
    storage: Storage, source: Source, path: str, numbers: Iterable[int]
) -> Iterator[tuple[int, str]]:
    name = MESSAGE_ID.name(source.naming)
    with storage.open_input(path) as stream:
        ids = pq.ParquetFile(stream, pre_buffer=True).read([name])[name]
    for number in numbers:
        yield number, ids[number].as_py() or ""

"""What tables must hold, from the raw JSON alone: parse, keep the first of each id, add up."""

import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.column_key import column_key
from eventlake.sample.spec import HOUR, midnight

_WORDS = re.compile(r"[A-Z0-9]+[a-z0-9]*|[a-z0-9]+")


class Envelope(msgspec.Struct):
    """As much of an event as says which of its copies is kept."""

    messageId: str
    receivedAt: str


class TableTruth(msgspec.Struct):
    """One table: its rows, when they were received, and the sums of its numbers by column key."""

    rows: int = 0
    received_ms: int = 0
    sums: dict[str, float] = {}

    def then(self, later: "TableTruth") -> "TableTruth":
        """Without sums: the first load settles the types, and later values may be cut to them."""
        return TableTruth(self.rows + later.rows, self.received_ms + later.received_ms)


class Truth(msgspec.Struct):
    """A whole archive; slots are `table/day/hour`."""

    lines: int
    bytes: int  # of JSON, unpacked
    duplicates: int
    tables: dict[str, TableTruth]
    slots: dict[str, int]

    @property
    def rows(self) -> int:
        return self.lines - self.duplicates

    def then(self, later: "Truth") -> "Truth":
        """After a second load, of an archive that has no ids and no hours in common with this."""
        return Truth(
            self.lines + later.lines,
            self.bytes + later.bytes,
            self.duplicates + later.duplicates,
            {
                name: self.tables.get(name, TableTruth()).then(later.tables.get(name, TableTruth()))
                for name in self.tables.keys() | later.tables.keys()
            },
            self.slots | later.slots,
        )


def truth_of(files: Sequence[Path]) -> Truth:
    kept = _kept(files)
    rows, received_ms = Counter[str](), Counter[str]()
    slots = Counter[str]()
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    texts: dict[str, set[str]] = defaultdict(set)
    lines = size = 0
    for lines, line in enumerate(_lines(files), start=1):
        size += len(line)
        event = msgspec.json.decode(line)
        if kept.get(event["messageId"]) != (event["receivedAt"], lines):
            continue
        table, received = table_of(event), event["receivedAt"]
        rows[table] += 1
        received_ms[table] += _milliseconds(received)
        slots[f"{table}/{received[:10]}/{received[11:13]}"] += 1
        for key, value in _leaves(event):
            if isinstance(value, int | float) and not isinstance(value, bool):
                sums[table][key] += value
            else:
                texts[table].add(key)
    tables = {
        table: TableTruth(
            rows[table],
            received_ms[table],
            {key: total for key, total in sums[table].items() if key not in texts[table]},
        )
        for table in rows
    }
    return Truth(lines, size, lines - rows.total(), tables, dict(slots))


def table_of(event: dict[str, Any]) -> str:
    kind: str = event["type"]
    return f"track_{snake(event['event'])}" if kind == "track" else kind


def snake(name: str) -> str:
    words = _WORDS.findall(name)
    return "_".join(words).lower() or f"x_{sha256(name.encode()).hexdigest()[:8]}"


def _kept(files: Sequence[Path]) -> dict[str, tuple[str, int]]:
    """Of every id the earliest copy: when it was received, and its place."""
    decoder = msgspec.json.Decoder(Envelope)
    kept: dict[str, tuple[str, int]] = {}
    for place, line in enumerate(_lines(files), start=1):
        event = decoder.decode(line)
        copy = (event.receivedAt, place)
        kept[event.messageId] = min(copy, kept.get(event.messageId, copy))
    return kept


def _lines(files: Iterable[Path]) -> Iterator[bytes]:
    for path in files:
        with gzip.open(path) as lines:
            yield from lines


def _milliseconds(moment: str) -> int:
    """Of `2026-10-01T07:05:09.120Z`, which is how the sample spells them all."""
    seconds = int(moment[14:16]) * 60 + int(moment[17:19])
    return _hour_began(moment[:13]) + seconds * 1000 + int(moment[20:23])


def _hour_began(hour: str) -> int:
    return midnight(date.fromisoformat(hour[:10])) + int(hour[11:13]) * HOUR


def _leaves(value: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Values by column key; the top-level `version` is text in some systems, and left out."""
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from _leaves(inner, above + column_key(name))
        elif inner is not None and (above or name != "version"):
            yield above + column_key(name), inner

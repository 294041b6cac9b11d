"""The events of raw files, line by line, by the plain rules: nothing the runs remember is asked."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from eventlake.audit.lake_rows import RAW, id_words, rows_of
from eventlake.audit.rule import Demand
from eventlake.audit.scope import Scope, TableNumbers, micros
from eventlake.columnar.raw_lines import RawLines
from eventlake.rules.events import Reject, open_envelope
from eventlake.rules.gc import uncollected
from eventlake.rules.names import STANDARD_COLUMNS, column_name, table_name
from eventlake.rules.parse import parse_line
from eventlake.rules.suppression import People
from eventlake.storage import Storage

BATCH = 50_000


@dataclass
class ArchiveRows:
    """Reads raw files and counts every row of the range: by table, "" for what has none."""

    storage: Storage
    scope: Scope
    numbers: TableNumbers
    columns: dict[str, frozenset[str]]  # of the tables that the lake has
    full: Callable[[], bool] = lambda: False  # whether the catalog has no room for more of them
    people: People | None = None  # who are suppressed
    rows_in: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    suppressed: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._first, self._end = micros(self.scope.window)

    def read(self, number: int, path: str, loaded_lines: int | None = None) -> Iterator[np.ndarray]:
        """The events of a file in arrays of `RAW`, without those that never get a row.

        Events after `loaded_lines` are waiting to be loaded (None: all lines are loaded).
        """
        with uncollected():  # events die at once: looking for cycles among them doubles the time
            yield from self._read(number, path, loaded_lines)

    def _read(self, file: int, path: str, loaded: int | None) -> Iterator[np.ndarray]:
        limits = self.scope.source.limits
        found: list[tuple[str, int, int, int, int]] = []
        lines = RawLines(lambda: self.storage.open_stream(path), limits.line_bytes)
        for number, line in lines:
            if line.strip() and (event := self._event(line)) is not None:
                id, received, table, demand = event
                if loaded is not None and number > loaded:
                    demand = Demand.WAITING
                found.append((id, received, table, number, demand))
                if len(found) >= BATCH:
                    yield _array(file, found)
                    found = []
        if lines.broken and self.scope.is_everything:  # the end that cannot be read has no time
            self.rows_in[""] += 1
            self.rejected[""] += 1
        if found:
            yield _array(file, found)

    def _event(self, line: bytes) -> tuple[str, int, int, Demand] | None:
        """Id, time and table of an event; None, and counted, for a line that gives no row."""
        source = self.scope.source
        try:
            event = parse_line(line, source.limits)
            envelope = open_envelope(event)
            if not self._first <= envelope.received_at < self._end:
                return None
            table = table_name(envelope.type, envelope.event, source.naming)
        except Reject:
            if self.scope.is_everything:  # what has no time is in no range
                self.rows_in[""] += 1
                self.rejected[""] += 1
            return None
        self.rows_in[table] += 1
        if self.people is not None and self.people.has(event):
            self.suppressed[table] += 1
            return None
        if source.skips(table):
            self.skipped[table] += 1
            return None
        id = envelope.message_id
        if id is None and not source.load_without_message_id:
            self.rejected[table] += 1
            return None
        demand = Demand.BEYOND if self._beyond(table, event, line) else Demand.REQUIRED
        return (
            id if id is not None else sha256(line).hexdigest(),
            envelope.received_at,
            self.numbers.of(table),
            demand,
        )

    def _beyond(self, table: str, event: dict[str, Any], line: bytes) -> bool:
        """Whether a limit keeps the event out of the lake, as it is now."""
        source, known = self.scope.source, self.columns.get(table)
        if known is None:
            if len(self.columns) >= source.limits.tables or self.full():
                return True
            known = frozenset(column.name(source.naming) for column in STANDARD_COLUMNS)
        if len(known) + line.count(b":") <= source.limits.columns:
            return False
        keys = source.date_partition.keys
        names = {
            column_name(path, source.naming, keys, source.limits.column_name)
            for path in _paths(event)
        }
        return len(known | (names - {None})) > source.limits.columns


def _array(file: int, found: list[tuple[str, int, int, int, int]]) -> np.ndarray:
    ids, received, tables, lines, demands = zip(*found, strict=True)
    hi, lo = id_words(ids)
    return rows_of(
        RAW,
        hi=hi,
        lo=lo,
        received=received,
        table=tables,
        file=file,
        line=lines,
        demand=demands,
    )


def _paths(event: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every value that is neither null nor an object."""
    for key, value in event.items():
        if isinstance(value, dict):
            yield from _paths(value, (*above, key))
        elif value is not None:
            yield (*above, key)

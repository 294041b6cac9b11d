"""The rows that an audit compares: events of the raw archive, and rows of the tables."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.audit.rule import Demand
from eventlake.audit.snapshot import DataFile, Scope, micros, overlaps
from eventlake.columnar.raw_lines import RawLines
from eventlake.rules.events import Reject, leaves, open_envelope
from eventlake.rules.gc import gc_paused
from eventlake.rules.names import (
    MESSAGE_ID,
    RECEIVED_AT,
    STANDARD_COLUMNS,
    column_name,
    table_name,
    type_of_table,
)
from eventlake.rules.parse import parse_line
from eventlake.rules.partitions import hour_of
from eventlake.rules.suppression import People
from eventlake.runs.unit import Window
from eventlake.storage import Storage


@dataclass
class LakeRows:
    """Reads data files; counts the rows of the range, and notes what cannot be read."""

    storage: Storage
    scope: Scope
    found: Counter[tuple[str, str]] = field(default_factory=Counter)  # by table and partition
    problems: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def read(self, file: DataFile) -> Iterator[pa.Table]:
        """The rows of a file; without a table, if they are in a partition they do not belong to."""
        names = [column.name(self.scope.source.naming) for column in (MESSAGE_ID, RECEIVED_AT)]
        place = (file.table, file.partition)
        try:
            with self.storage.open_input(file.path) as stream:
                for batch in pq.ParquetFile(stream).iter_batches(columns=names):
                    rows = self._rows(file, *(batch.column(name) for name in names))
                    self.found[place] += pc.sum(rows["judged"]).as_py() or 0
                    yield rows
        except (pa.ArrowException, OSError, KeyError) as error:
            problem = f"{file.path} cannot be read: {' '.join(str(error).split())}"
            self.problems.setdefault(place, []).append(problem)

    def _rows(self, file: DataFile, ids: pa.Array, received: pa.Array) -> pa.Table:
        times = received.cast(pa.int64()).fill_null(0)
        in_place = pc.and_(_within(times, file.window), ids.is_valid())
        in_range = _within(times, self.scope.window)
        columns = {
            "id": ids.fill_null(""),
            "received": times,
            "table": pc.if_else(in_place, file.table, None),
            "judged": pc.if_else(in_place, in_range, overlaps(file.window, self.scope.window)),
            "file": pa.repeat(pa.scalar(file.number, pa.int32()), len(times)),
        }
        return pa.table(columns)


def _within(times: pa.Array, window: Window) -> pa.Array:
    start, end = micros(window)
    return pc.and_(pc.greater_equal(times, start), pc.less(times, end))


BATCH = 50_000


class Event(NamedTuple):
    """An event of the archive."""

    id: str
    received: int
    table: str
    demand: Demand


@dataclass
class ArchiveRows:
    """Reads raw files and counts every row of the range: by table, "" for what has none."""

    storage: Storage  # of the raw files
    scope: Scope
    columns: dict[str, frozenset[str]]  # of the tables that the lake has
    full: Callable[[], bool] = lambda: False  # whether the catalog has no room for more of them
    people: People | None = None  # suppressed
    rows_in: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    suppressed: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._first, self._end = micros(self.scope.window)

    def read(
        self, path: str, loaded_lines: int | None = None, hours: frozenset[str] | None = None
    ) -> Iterator[pa.Table]:
        """The events of a file, without those that never get a row.

        Events after `loaded_lines` are waiting to be loaded (None: all lines are loaded). Of a
        loaded file, those outside its `hours` were rejected for the limit of days.
        """
        with gc_paused():  # events are short-lived: collecting cycles doubles the time
            yield from self._read(path, loaded_lines, hours)

    def _read(
        self, path: str, loaded: int | None, hours: frozenset[str] | None
    ) -> Iterator[pa.Table]:
        limits = self.scope.source.limits
        found: list[Event] = []
        lines = RawLines(lambda: self.storage.open_stream(path), limits.line_bytes)
        for number, line in lines:
            if line.strip() and (event := self._event(line)) is not None:
                if loaded is not None and number > loaded:
                    event = event._replace(demand=Demand.WAITING)
                elif hours is not None and hour_of(event.received) not in hours:
                    event = event._replace(demand=Demand.BEYOND)
                found.append(event)
                if len(found) >= BATCH:
                    yield _table(found)
                    found = []
        if lines.broken and self.scope.is_everything:  # the end that cannot be read has no time
            self.rows_in[""] += 1
            self.rejected[""] += 1
        if found:
            yield _table(found)

    def _event(self, line: bytes) -> Event | None:
        """The event on a line; None, and counted, for a line that gives no row."""
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
        return Event(id or sha256(line).hexdigest(), envelope.received_at, table, demand)

    def _beyond(self, table: str, event: dict[str, Any], line: bytes) -> bool:
        """Whether a limit keeps the event out of the lake, as it is now."""
        source, known = self.scope.source, self.columns.get(table)
        if known is None:
            if len(self.columns) >= source.limits.tables or self.full():
                return True
            known = frozenset(column.name(source.naming) for column in STANDARD_COLUMNS)
        if len(known) + line.count(b":") <= source.limits.columns:
            return False
        keys, length = source.date_partition.keys, source.limits.column_name
        event_type = type_of_table(table, source.naming)
        names = {
            column_name(path, source.naming, event_type, keys, length) for path, _ in leaves(event)
        }
        return len(known | (names - {None})) > source.limits.columns


def _table(events: list[Event]) -> pa.Table:
    return pa.table([pa.array(column) for column in zip(*events, strict=True)], Event._fields)

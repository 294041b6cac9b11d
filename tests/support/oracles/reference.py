"""The whole transformation once more, slow and plain: tests hold the lake to it, cell by cell.

No batches, no tasks, no files, no Arrow: rows are dicts, and every rule is asked of the module
that states it. The limits of columns and tables are left out.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from eventlake.rules.casts import Cell, Outcome, cast
from eventlake.rules.duplicates import twins_of_one_id
from eventlake.rules.events import Reason, Reject, identifying, open_envelope
from eventlake.rules.inference import Kind, infer, kind_of
from eventlake.rules.names import (
    RESCUED_DATA,
    Naming,
    column_name,
    is_spelled_like_column,
    pointer,
    snake,
    table_name,
)
from eventlake.rules.parse import parse_line
from eventlake.rules.types import Column, LakeType
from eventlake.runs.resolve import RESCUED, standard_columns
from eventlake.settings.models import Source

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
Path = tuple[str, ...]
Files = Sequence[Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class Scope:
    """What a replay replaces: what was received in [start, end), of some tables or of all.

    The whole replay goes on to `until`: it compares without any row until then.
    """

    start: int
    end: int
    tables: frozenset[str] | None = None
    until: int = 0

    def holds(self, table: str | None, received: int | None, later: bool = False) -> bool:
        end = max(self.end, self.until) if later else self.end
        in_time = received is not None and self.start <= received < end
        return in_time and (self.tables is None or table in self.tables)


@dataclass(frozen=True, slots=True)
class Event:
    """An event taken apart: what goes to columns, each with its path, and what finds none."""

    type: str
    table: str
    original: str
    id: str
    received: int
    fields: dict[str, tuple[Path, Any]]
    homeless: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the lake, and the event it was made from."""

    event: Event
    id: str
    received: int
    partition: tuple[str, ...]
    cells: dict[str, Cell]
    rescued: dict[str, Any]


@dataclass(slots=True)
class Table:
    """A table: its columns in order, its rows in none."""

    original: str
    columns: dict[str, Column]
    rows: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class Account:
    """What became of the rows that came in; by table, None for those that have none."""

    skipped: int = 0
    suppressed: Counter[str | None] = field(default_factory=Counter)
    rejected: Counter[str | None] = field(default_factory=Counter)
    duplicates: Counter[str | None] = field(default_factory=Counter)
    loaded: Counter[str] = field(default_factory=Counter)
    casts: Counter[tuple[str, str, Outcome]] = field(default_factory=Counter)
    rescued: Counter[str] = field(default_factory=Counter)

    @property
    def rows_in(self) -> int:
        return self.skipped + sum(
            counts.total()
            for counts in (self.suppressed, self.rejected, self.duplicates, self.loaded)
        )


@dataclass(slots=True)
class ReferenceLake:
    """The lake of one source."""

    source: Source
    tables: dict[str, Table] = field(default_factory=dict)
    users: set[str] = field(default_factory=set)  # suppressed user ids
    visitors: set[str] = field(default_factory=set)  # suppressed anonymous ids

    def load(self, files: Files, scope: Scope | None = None) -> Account:
        """Load the lines of some files as one unit; with a scope, in place of what is there."""
        if scope is not None:
            for name, table in self.tables.items():
                table.rows = [r for r in table.rows if not scope.holds(name, r.received)]
        account = Account()
        lines = [line for lines in files for line in lines if line.strip()]
        taken = [e for line in lines if (e := self._take(line, scope, account)) is not None]
        duplicate = self._duplicates(taken, scope)
        self._grow(taken, {e.table for e, out in zip(taken, duplicate, strict=True) if not out})
        for unknown in account.suppressed.keys() - self.tables.keys():
            account.suppressed[None] += account.suppressed.pop(unknown)
        for event, out in zip(taken, duplicate, strict=True):
            if out:
                account.duplicates[event.table if event.table in self.tables else None] += 1
            else:
                self._add(event, account)
        return account

    def retype(self, name: str, types: dict[str, LakeType]) -> None:
        """Give columns of a table other types; its rows are made anew from their events."""
        table = self.tables[name]
        for column, type in types.items():
            table.columns[column] = Column(column, type, table.columns[column].pointer)
        rows, table.rows = table.rows, []
        for row in rows:
            self._add(row.event, Account())

    def _take(self, line: bytes, scope: Scope | None, account: Account) -> Event | None:
        """The event on a line; None, and counted if it is in scope, for one that is not loaded."""
        source = self.source
        table: str | None = None
        received: int | None = None
        try:
            event = parse_line(line, source.limits)
            envelope = open_envelope(event)
            table = table_name(envelope.type, envelope.event, source.naming)
            received = envelope.received_at
            if scope is not None and not scope.holds(table, received):
                return None
            named = identifying(event.get("userId")), identifying(event.get("anonymousId"))
            if named[0] in self.users or named[1] in self.visitors:
                account.suppressed[table] += 1
                return None
            if source.skips(table):
                account.skipped += 1
                return None
            id = envelope.message_id
            if id is None and not source.load_without_message_id:
                raise Reject(Reason.NO_MESSAGE_ID)
            if id is None:
                id = event["messageId"] = sha256(line).hexdigest()
        except Reject:
            if scope is None or scope.holds(table, received):
                account.rejected[table] += 1
            return None
        fields, homeless = self._apart(event, envelope.type)
        original = envelope.event or envelope.type
        return Event(envelope.type, table, original, id, received, fields, homeless)

    def _apart(
        self, event: dict[str, Any], event_type: str
    ) -> tuple[dict[str, tuple[Path, Any]], dict[str, Any]]:
        """Which path gets a column: the one spelled like it, else the first."""
        naming, keys = self.source.naming, self.source.date_partition.keys
        length = self.source.limits.column_name
        leaves = dict(_leaves(event))
        rivals: dict[str, list[Path]] = {}
        for path in leaves:
            if (column := column_name(path, naming, event_type, keys, length)) is not None:
                rivals.setdefault(column, []).append(path)
        winners = {
            next((p for p in paths if is_spelled_like_column(p, naming)), paths[0]): column
            for column, paths in rivals.items()
        }
        fields = {winners[path]: (path, leaves[path]) for path in leaves if path in winners}
        return fields, {pointer(path): leaves[path] for path in leaves if path not in winners}

    def _duplicates(self, taken: list[Event], scope: Scope | None) -> list[bool]:
        window = timedelta(days=self.source.dedup_days) // _MICROSECOND
        duplicate: dict[int, bool] = {}
        for id in {event.id for event in taken}:
            places = [place for place, event in enumerate(taken) if event.id == id]
            places.sort(key=lambda place: (taken[place].received, place))
            times = [taken[place].received for place in places]
            lake = [
                row.received
                for name, table in self.tables.items()
                for row in table.rows
                if row.id == id and not (scope and scope.holds(name, row.received, later=True))
            ]
            found = [t is not None for t in twins_of_one_id(times, lake, window)]
            duplicate |= dict(zip(places, found, strict=True))
        return [duplicate[place] for place in range(len(taken))]

    def _grow(self, taken: list[Event], kept_tables: set[str]) -> None:
        """Tables and columns that are new, the columns typed by all values, also of duplicates."""
        kinds: dict[tuple[str, str], set[Kind]] = {}
        for event in taken:
            for name, (_, value) in event.fields.items():
                kinds.setdefault((event.table, name), set()).add(kind_of(value))
        for event in taken:
            if event.table not in self.tables and event.table in kept_tables:
                standard = {column.name: column for column in standard_columns(self.source.naming)}
                self.tables[event.table] = Table(event.original, standard)
            if event.table in self.tables:
                columns = self.tables[event.table].columns
                for name, (path, _) in event.fields.items():
                    found = infer(kinds[event.table, name])
                    type = LakeType.STRING if path == ("event",) else found
                    columns.setdefault(name, Column(name, type, pointer(path)))

    def _add(self, event: Event, account: Account) -> None:
        account.loaded[event.table] += 1
        table = self.tables[event.table]
        cells: dict[str, Cell] = {}
        rescued = dict(event.homeless)
        for name, (path, value) in event.fields.items():
            cells[name], outcome = cast(value, table.columns[name].type)
            account.casts[event.table, name, outcome] += 1
            if outcome is not Outcome.EXACT:
                rescued[pointer(path)] = value
        if self.source.naming is Naming.WAREHOUSE and event.type == "track":
            cells["event"] = snake(event.original)
        account.rescued[event.table] += len(rescued)
        if rescued:
            table.columns.setdefault(RESCUED_DATA, RESCUED)
        partition = self.source.date_partition.values(_EPOCH + event.received * _MICROSECOND)
        table.rows.append(Row(event, event.id, event.received, partition, cells, rescued))


def _leaves(event: dict[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that is neither null nor an object, with its path, in order."""
    for key, value in event.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key))
        elif value is not None:
            yield (*above, key), value

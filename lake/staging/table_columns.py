"""The lines of a table as columns: which field goes where, who wins a column, what is rescued."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lake.dedup.payloads import STAMPS, payload_hash, payload_hashes
from lake.names import Naming, column_name, is_spelled_like_column, pointer
from lake.rejects import Reason, Reject
from lake.settings import Limits
from lake.staging.leaves import Event, Path, leaves, rescued_members
from lake.staging.records import Parsed, Records

_NONE = type(None)


@dataclass(frozen=True, slots=True)
class Refused:
    """Rows that cannot be taken in: without them the others can."""

    rows: dict[int, Reject]


@dataclass(slots=True)
class TakenApart:
    """Rows as columns: values by field, None where a row has none."""

    values: dict[Path, list[Any]]
    rescued: dict[int, list[str]] = field(default_factory=dict)
    payload_hashes: list[int] = field(default_factory=list)
    # Fields never seen before: the row in which each was, and its place there.
    discovered: dict[Path, tuple[int, int]] = field(default_factory=dict)


class TableColumns:
    """Takes the lines of one table apart; remembers its columns from one time to the next."""

    def __init__(
        self,
        naming: Naming,
        partition_keys: tuple[str, ...],
        limits: Limits,
        known: frozenset[str] = frozenset(),
    ) -> None:
        self._naming = naming
        self._partition_keys = partition_keys
        self._limits = limits
        self._known = known  # columns that the table has in the lake
        self._records = Records(limits)
        self._columns: dict[Path, str | None] = {}
        self._fields: dict[str | None, list[Path]] = {}
        self._discovered: set[Path] = set()

    def column(self, path: Path) -> str | None:
        """The column a field goes to, if it may have one."""
        if path in self._columns:
            return self._columns[path]
        length = self._limits.column_name
        return column_name(path, self._naming, self._partition_keys, length)

    def is_new(self, path: Path) -> bool:
        """Whether a field goes to a column that the lake has not yet got."""
        return self._columns[path] not in self._known

    def event(self, line: bytes) -> Event:
        return self._records.event(line)

    def take_apart(
        self, lines: Sequence[bytes], given_ids: Mapping[int, str]
    ) -> TakenApart | Refused:
        """Lines in order of arrival; some have no id of their own and are given one."""
        parsed = self._records.parse(lines, given_ids)
        if parsed.refused:
            return Refused(parsed.refused)
        taken = TakenApart(self._gather(lines, parsed))
        if refused := self._over_limit(lines, taken):
            return Refused(refused)
        self._register(taken.values)
        self._settle(lines, parsed, taken)
        taken.payload_hashes = self._payload_hashes(parsed)
        self._discover(lines, parsed, taken)
        return taken

    def _gather(self, lines: Sequence[bytes], parsed: Parsed) -> dict[Path, list[Any]]:
        """The values of every field that has any."""
        rows = len(lines)
        found: dict[Path, list[Any]] = {}
        objects: list[Path] = []
        if len(parsed.walked) < rows:
            for path, values in self._records.shape.columns(parsed.records):
                types = set(map(type, values))
                if dict in types:
                    objects.append(path)
                if types != {_NONE}:
                    found[path] = values
        for row, event in parsed.walked.items():
            _put(found, rows, row, leaves(event))
        for path in objects:
            self._open(lines, parsed, found, path)
        return found

    def _open(
        self, lines: Sequence[bytes], parsed: Parsed, found: dict[Path, list[Any]], path: Path
    ) -> None:
        """Take apart the objects in a field that was taken for one of values."""
        values = found.pop(path)
        rows = [row for row, value in enumerate(values) if type(value) is dict]
        for row in rows:
            event = parsed.walked.setdefault(row, self.event(lines[row]))
            _put(found, len(values), row, leaves(values[row], path))
            values[row] = None
        if any(value is not None for value in values):
            found[path] = values
        else:  # it was null whenever it was seen: now it is known to be an object
            self._records.remember(event)

    def _over_limit(self, lines: Sequence[bytes], taken: TakenApart) -> dict[int, Reject]:
        """The rows that would give the table too many columns, beginning with the first."""
        have = self._known | {column for column in self._fields if column is not None}
        most = self._limits.columns
        if len(have | self._columns_of(taken.values)) <= most:
            return {}
        refused: dict[int, Reject] = {}
        for row, line in enumerate(lines):
            columns = self._columns_of(path for path, _ in leaves(self.event(line)))
            if len(have | columns) > most:
                refused[row] = Reject(Reason.TOO_MANY_COLUMNS, f"{most} columns")
            else:
                have |= columns
        return refused

    def _columns_of(self, paths: Iterable[Path]) -> set[str]:
        return {column for column in map(self.column, paths) if column is not None}

    def _register(self, found: Mapping[Path, list[Any]]) -> None:
        for path in found:
            if path not in self._columns:
                column = self._columns[path] = self.column(path)
                self._fields.setdefault(column, []).append(path)

    def _settle(self, lines: Sequence[bytes], parsed: Parsed, taken: TakenApart) -> None:
        """Where fields of one event meet in a column, one has it and the rest is rescued."""
        homeless: dict[int, dict[str, Any]] = {}
        values = taken.values
        for column, fields in self._fields.items():
            if len(fields) < 2 and column is not None:
                continue
            present = [path for path in fields if path in values]
            for row, rivals in _meetings(values, present, 1 if column is None else 2):
                event = parsed.walked.get(row) or self.event(lines[row])
                winner = None if column is None else self._winner(rivals, event)
                for path in rivals:
                    if path != winner:
                        homeless.setdefault(row, {})[pointer(path)] = values[path][row]
                        values[path][row] = None
            for path in present:
                if all(value is None for value in values[path]):
                    del values[path]
        taken.rescued = {row: rescued_members(homeless[row]) for row in sorted(homeless)}

    def _winner(self, rivals: list[Path], event: Event) -> Path:
        order = {path: place for place, (path, _) in enumerate(leaves(event))}
        spelled = [path for path in rivals if is_spelled_like_column(path, self._naming)]
        return min(spelled or rivals, key=order.__getitem__)

    def _payload_hashes(self, parsed: Parsed) -> list[int]:
        if len(parsed.walked) == len(parsed.records):
            return [payload_hash(parsed.walked[row]) for row in range(len(parsed.records))]
        hashes = payload_hashes(self._records.shape.without(parsed.records, STAMPS))
        for row, event in parsed.walked.items():
            hashes[row] = payload_hash(event)
        return hashes

    def _discover(self, lines: Sequence[bytes], parsed: Parsed, taken: TakenApart) -> None:
        """Where fields are seen for the first time: columns are in this order."""
        orders: dict[int, dict[Path, int]] = {}
        for path in taken.values.keys() - self._discovered:
            values = taken.values[path]
            row = next(row for row, value in enumerate(values) if value is not None)
            if row not in orders:
                event = parsed.walked.get(row) or self.event(lines[row])
                orders[row] = {path: place for place, (path, _) in enumerate(leaves(event))}
            taken.discovered[path] = row, orders[row][path]
        self._discovered.update(taken.discovered)


def _put(
    found: dict[Path, list[Any]], rows: int, row: int, cells: Iterator[tuple[Path, Any]]
) -> None:
    for path, value in cells:
        values = found.get(path)
        if values is None:
            values = found[path] = [None] * rows
        values[row] = value


def _meetings(
    values: Mapping[Path, list[Any]], fields: Sequence[Path], least: int
) -> Iterator[tuple[int, list[Path]]]:
    """The rows in which so many of the fields have a value, or more."""
    if len(fields) >= least:
        for row, cells in enumerate(zip(*(values[path] for path in fields), strict=True)):
            rivals = [path for path, cell in zip(fields, cells, strict=True) if cell is not None]
            if len(rivals) >= least:
                yield row, rivals

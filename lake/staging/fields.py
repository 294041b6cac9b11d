"""The fields of a table's events as columns of values: the innermost loop of a sync."""

from collections.abc import Iterator
from typing import Any

import msgspec

from lake.names import NAME_LENGTH, Naming, column_name, is_spelled_like_column, pointer

Event = dict[str, Any]


class Field(dict[str, "Field"]):
    """A place in the events of a table: the values seen there, and the fields below it."""

    __slots__ = ("cells", "column", "first", "path", "rows")

    def __init__(self, path: tuple[str, ...]) -> None:
        self.path = path
        self.cells: list[Any] = []
        self.rows: list[int] = []
        self.first: int | None = None
        self.column: str | None = None

    def __missing__(self, key: str) -> "Field":
        child = self[key] = Field((*self.path, key))
        return child

    def take_back(self, row: int) -> Any:
        """Take back the value of this row, which was the last."""
        assert self.rows.pop() == row
        if not self.rows:
            self.first = None
        return self.cells.pop()


class Fields:
    """All fields of a table. `add` takes an event apart; `settle` decides who gets a column."""

    def __init__(
        self, naming: Naming, partition_keys: tuple[str, ...], name_length: int = NAME_LENGTH
    ) -> None:
        self._naming = naming
        self._partition_keys = partition_keys
        self._name_length = name_length
        self._root = Field(())
        self._discovered = 0
        self._by_column: dict[str | None, list[Field]] = {}
        self._contested: list[str | None] = []

    def add(self, event: Event, row: int) -> dict[str, Any] | None:
        """Take an event apart as the given row; what found no column is returned by pointer."""
        self._walk(event, self._root, row)
        return self._settle(event, row) if self._contested else None

    def columns(self) -> Iterator[Field]:
        """The fields that have values, in order of discovery."""
        seen = [f for fields in self._by_column.values() for f in fields if f.rows]
        return iter(sorted(seen, key=lambda field: field.first or 0))

    def clear(self) -> None:
        """Forget the values, keep the shape."""
        for fields in self._by_column.values():
            for field in fields:
                field.cells, field.rows, field.first = [], [], None

    @property
    def width(self) -> int:
        return len(self._by_column)

    def columns_with(self, event: Event) -> frozenset[str]:
        """All columns there would be with one more event."""
        of_event = map(self._column, _paths(event))
        return frozenset(c for c in (*self._by_column, *of_event) if c is not None)

    def _column(self, path: tuple[str, ...]) -> str | None:
        return column_name(path, self._naming, self._partition_keys, self._name_length)

    def _walk(self, event: Event, node: Field, row: int) -> None:
        for key, value in event.items():
            if value is None:
                continue
            field = node[key]
            if type(value) is dict:
                self._walk(value, field, row)
                continue
            if field.first is None:
                self._discover(field)
            field.cells.append(value)
            field.rows.append(row)

    def _discover(self, field: Field) -> None:
        self._discovered += 1
        field.first = self._discovered
        field.column = self._column(field.path)
        rivals = self._by_column.setdefault(field.column, [])
        if all(rival is not field for rival in rivals):  # a Field is a dict: no `in`
            rivals.append(field)
            contested = len(rivals) > 1 or field.column is None
            if contested and field.column not in self._contested:
                self._contested.append(field.column)

    def _settle(self, event: Event, row: int) -> dict[str, Any] | None:
        """Where fields of one event meet in a column, one has it and the rest is rescued."""
        rescued: dict[str, Any] = {}
        for column in self._contested:
            present = [f for f in self._by_column[column] if f.rows and f.rows[-1] == row]
            if column is not None:
                winner = self._winner(present, event) if len(present) > 1 else None
                present = [f for f in present if f is not winner] if winner is not None else []
            rescued |= {pointer(f.path): f.take_back(row) for f in present}
        return rescued or None

    def _winner(self, rivals: list[Field], event: Event) -> Field:
        order = {path: place for place, path in enumerate(_paths(event))}
        spelled = [f for f in rivals if is_spelled_like_column(f.path, self._naming)]
        return min(spelled or rivals, key=lambda field: order[field.path])


def _paths(event: Event, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in event.items():
        if isinstance(value, dict):
            yield from _paths(value, (*above, key))
        elif value is not None:
            yield (*above, key)


def rescued_members(values: dict[str, Any]) -> list[str]:
    """Rescued values as members of the JSON object in `rescued_data`: `"<pointer>":<value>`."""
    return [msgspec.json.encode({at: value}).decode()[1:-1] for at, value in values.items()]

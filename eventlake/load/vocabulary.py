"""Numbers for fields, event names and tables, shared by both readers."""

import numpy as np

from eventlake.columnar.cells import ENVELOPE
from eventlake.columnar.events import numbers_of
from eventlake.columnar.fields import (
    FULL,
    MOST_FIELDS,
    NONE,
    Fields,
    field_of,
    grown,
    new_fields,
    path_of,
)
from eventlake.rules.events import EVENT_TYPES, Path
from eventlake.rules.names import Naming, table_name

# Not part of the payload: two deliveries of a message differ in them.
STAMPS = ("receivedAt", "sentAt", "timestamp")
_NEARLY_FULL = MOST_FIELDS // 2


class Vocabulary:
    """Assigns numbers to fields, names and tables when they first occur."""

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        self.tables: list[str] = []
        self._numbers: dict[str, int] = {}
        self._start()

    def _start(self) -> None:
        self.fields, self.names = new_fields(), new_fields()
        self.special = numbers_of(self.fields, ENVELOPE)
        self.stamps = numbers_of(self.fields, STAMPS)
        self._paths: dict[int, Path] = {0: ()}
        self._fields: dict[Path, int] = {}
        self._tables: list[int] = []  # by name: the number of the table

    def make_room(self) -> bool:
        """Call it between blocks: starts over if few numbers are left."""
        if max(_used(self.fields), _used(self.names)) <= _NEARLY_FULL:
            return False
        self._start()
        return True

    def path(self, field: int) -> Path:
        path = self._paths.get(field)
        if path is None:
            path = self._paths[field] = path_of(self.fields, field)
        return path

    def field(self, path: Path) -> int:
        if path not in self._fields:
            while (number := field_of(self.fields, path)) == FULL:
                self.fields = grown(self.fields)
            self._fields[path] = number
        return self._fields[path]

    def name(self, kind: str, event: str | None) -> int:
        """The number of an event type and, for tracks, the name of the event."""
        path = (kind,) if event is None else (kind, event)
        while (number := field_of(self.names, path)) == FULL:
            self.names = grown(self.names)
        return number

    def original(self, name: int) -> str:
        """The name of an event as it was sent."""
        kind, *event = path_of(self.names, name)
        return event[0] if kind == "track" else kind

    def tables_of(self, names: np.ndarray) -> np.ndarray:
        """The numbers of the tables of names; NONE if the careful reader has to decide."""
        for name in range(len(self._tables), _used(self.names)):
            self._tables.append(self._table_named(path_of(self.names, name)))
        return np.asarray(np.array(self._tables, np.int32)[names])

    def _table_named(self, name: tuple[str, ...]) -> int:
        kind = name[0] if name else ""
        event = name[1] if len(name) > 1 else ""
        if kind not in EVENT_TYPES or (kind == "track" and (not event or event.isspace())):
            return NONE
        return self.table(table_name(kind, event if kind == "track" else None, self._naming))

    def table(self, table: str) -> int:
        """The number of a table."""
        if table not in self._numbers:
            self._numbers[table] = len(self.tables)
            self.tables.append(table)
        return self._numbers[table]


def _used(fields: Fields) -> int:
    return int(fields.used[0])

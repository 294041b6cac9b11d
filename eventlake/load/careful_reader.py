"""The careful reader: events of a table as columns, field by field, with a payload hash.

It decides which column a field goes to, which field wins a contested column, and what is rescued.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np

from eventlake.columnar.hash_kernels import path_hash, payload_of
from eventlake.columnar.memory import address
from eventlake.columnar.text import PADDING
from eventlake.load.parts import PartColumn
from eventlake.rules.events import Event, Path, Reason, Reject, leaves, rescued_members
from eventlake.rules.names import Naming, column_name, is_spelled_like_column, pointer
from eventlake.settings.models import Limits


@dataclass(frozen=True, slots=True)
class Refused:
    """Rows that cannot be taken in: without them the others can."""

    rows: dict[int, Reject]


@dataclass(slots=True)
class TakenApart:
    """Rows as columns: values by field, None where a row has none."""

    values: dict[Path, list[Any]]
    rescued: dict[int, list[str]] = field(default_factory=dict)
    # Where each field is first: the row, and its place there.
    first: dict[Path, tuple[int, int]] = field(default_factory=dict)


class TableColumns:
    """Takes the events of one table apart; remembers its columns from one time to the next."""

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
        self._columns: dict[Path, str | None] = {}
        self._fields: dict[str | None, list[Path]] = {}
        self._met: set[str | None] = set()  # columns that several fields go to, and none at all

    def column(self, path: Path) -> str | None:
        """The column a field goes to, if it may have one."""
        if path in self._columns:
            return self._columns[path]
        length = self._limits.column_name
        return column_name(path, self._naming, self._partition_keys, length)

    def is_new(self, column: str) -> bool:
        """Whether the lake has not yet got a column."""
        return column not in self._known

    def take_apart(self, events: Sequence[Event]) -> TakenApart | Refused:
        """Events in order of arrival."""
        taken = TakenApart({})
        for row, event in enumerate(events):
            for place, (path, value) in enumerate(leaves(event)):
                values = taken.values.get(path)
                if values is None:
                    values = taken.values[path] = [None] * len(events)
                    taken.first[path] = row, place
                values[row] = value
        if not self.have_room(taken.values):
            return Refused(self._over_limit(events))
        self._register(taken.values)
        self._settle(events, taken)
        return taken

    def stand_alone(self, rare: Collection[Path], others: Collection[Path]) -> bool:
        """Whether fields may be had, and each of the rare ones is alone in a column."""
        paths = [*rare, *others]
        if not self.have_room(paths):
            return False
        self._register(paths)
        return not self._met or self._met.isdisjoint(self._columns[path] for path in rare)

    def contested(self, found: Mapping[Path, PartColumn], length: int) -> np.ndarray:
        """Of so many rows those in which fields meet in a column, or have none.

        These `take_apart` settles.
        """
        self._register(found)
        rows = np.zeros(length, np.bool_)
        for column in self._met:
            least = 1 if column is None else 2
            present = [found[path].array for path in self._fields[column] if path in found]
            if len(present) >= least:
                masks = [array.is_valid().to_numpy(zero_copy_only=False) for array in present]
                rows |= np.sum(masks, axis=0) >= least
        return np.flatnonzero(rows)

    def have_room(self, paths: Collection[Path]) -> bool:
        """Whether the table may have the columns of these fields, too."""
        most = self._limits.columns
        if len(self._known) + len(self._fields) + len(paths) <= most:  # without a closer look
            return True
        return len(self._have() | self._columns_of(paths)) <= most

    def _over_limit(self, events: Sequence[Event]) -> dict[int, Reject]:
        """The rows that would give the table too many columns, beginning with the first."""
        have, most = self._have(), self._limits.columns
        refused: dict[int, Reject] = {}
        for row, event in enumerate(events):
            columns = self._columns_of(path for path, _ in leaves(event))
            if len(have | columns) > most:
                refused[row] = Reject(Reason.TOO_MANY_COLUMNS, f"{most} columns")
            else:
                have |= columns
        return refused

    def _have(self) -> set[str]:
        return {*self._known, *(column for column in self._fields if column is not None)}

    def _columns_of(self, paths: Iterable[Path]) -> set[str]:
        return {column for column in map(self.column, paths) if column is not None}

    def _register(self, found: Iterable[Path]) -> None:
        for path in found:
            if path not in self._columns:
                column = self._columns[path] = self.column(path)
                fields = self._fields.setdefault(column, [])
                fields.append(path)
                if len(fields) > 1 or column is None:
                    self._met.add(column)

    def _settle(self, events: Sequence[Event], taken: TakenApart) -> None:
        """Where fields of one event meet in a column, one has it and the rest is rescued."""
        homeless: dict[int, dict[str, Any]] = {}
        values = taken.values
        for column in self._met:
            present = [path for path in self._fields[column] if path in values]
            for row, rivals in _meetings(values, present, 1 if column is None else 2):
                winner = None if column is None else self._winner(rivals, events[row])
                for path in rivals:
                    if path != winner:
                        homeless.setdefault(row, {})[pointer(path)] = values[path][row]
                        values[path][row] = None
            for path in present:
                left = next((row for row, v in enumerate(values[path]) if v is not None), None)
                if left is None:
                    del values[path], taken.first[path]
                else:
                    taken.first[path] = left, _order(events[left])[path]
        taken.rescued = {row: rescued_members(homeless[row]) for row in sorted(homeless)}

    def _winner(self, rivals: list[Path], event: Event) -> Path:
        spelled = [path for path in rivals if is_spelled_like_column(path, self._naming)]
        return min(spelled or rivals, key=_order(event).__getitem__)


def _order(event: Event) -> dict[Path, int]:
    return {path: place for place, (path, _) in enumerate(leaves(event))}


def _meetings(
    values: Mapping[Path, list[Any]], fields: Sequence[Path], least: int
) -> Iterator[tuple[int, list[Path]]]:
    """The rows in which so many of the fields have a value, or more."""
    if len(fields) >= least:
        for row, cells in enumerate(zip(*(values[path] for path in fields), strict=True)):
            rivals = [path for path, cell in zip(fields, cells, strict=True) if cell is not None]
            if len(rivals) >= least:
                yield row, rivals


# Not part of the payload: they differ between two deliveries of one message.
STAMPS = ("receivedAt", "sentAt", "timestamp")
_STAMPS = frozenset((stamp,) for stamp in STAMPS)
_encode = msgspec.json.Encoder().encode


def payload_hash(event: dict[str, Any]) -> int:
    """The hash of an event: the same whatever the order of its keys, and with nulls or without.

    It is what the kernel finds for the same event.
    """
    cells = [(path, value) for path, value in leaves(event) if path not in _STAMPS]
    texts = [value.encode() if type(value) is str else _encode(value) for _, value in cells]
    data = np.frombuffer(b"".join(texts) + bytes(PADDING), np.uint8)
    ends = np.array([0, *accumulate(map(len, texts))], np.int64)
    is_text = np.array([type(value) is str for _, value in cells], np.bool_)
    paths = np.array([_path(path) for path, _ in cells], np.uint64)
    return int(payload_of(address(data), ends, is_text, paths))


@lru_cache(100_000)
def _path(path: Path) -> int:
    keys = np.frombuffer(b"".join(key.encode() for key in path) + bytes(PADDING), np.uint8)
    ends = np.array([0, *accumulate(len(key.encode()) for key in path)], np.int64)
    return int(path_hash(address(keys), ends))

"""The values of rare fields, which are staged in lists instead of columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.casting.encoding import Encoding
from eventlake.columnar.typed import SparseColumn
from eventlake.staging.rows_blob import RARE, RareName


@dataclass(frozen=True, slots=True)
class RareValues:
    """Of each value that is written in this way its row, its field, and the value itself."""

    encoding: Encoding
    names: Sequence[RareName]  # by number of the field
    rows: np.ndarray
    numbers: np.ndarray
    values: pa.Array

    def taken(self, order: np.ndarray, rows: int) -> "RareValues":
        """The values of those of so many rows that are in this order."""
        place = np.full(rows, -1)
        place[order] = np.arange(len(order))
        moved = place[self.rows]
        kept = np.flatnonzero(moved >= 0)
        kept = kept[np.lexsort((moved[kept], self.numbers[kept]))]
        return RareValues(
            self.encoding,
            self.names,
            moved[kept],
            self.numbers[kept],
            self.values.take(pa.array(kept)),
        )

    def fields(self) -> Iterator[tuple[RareName, SparseColumn]]:
        """The values of each field, after they were `taken`."""
        begin = np.flatnonzero(np.diff(self.numbers, prepend=-1)).tolist()
        for start, end in pairwise([*begin, len(self.numbers)]):
            values = self.values.slice(start, end - start)
            yield self.names[self.numbers[start]], SparseColumn(self.rows[start:end], values)


RareNames = Mapping[Encoding, Sequence[RareName]]
"""By how values are written, what the numbers of a part's rare fields stand for."""


def rare_values(parts: Iterable[tuple[pa.RecordBatch, RareNames]]) -> list[RareValues]:
    """The values in the lists of all parts of a table; rows are counted over these."""
    found: dict[Encoding, _Gathered] = {}
    before = 0  # rows of the parts before
    for part, rare in parts:
        for encoding, names in rare.items():
            gathered = found.setdefault(encoding, _Gathered())
            gathered.add(part[f"{RARE}{encoding}"], names, before)
        before += len(part)
    return [gathered.values(encoding) for encoding, gathered in found.items()]


@dataclass(slots=True)
class _Gathered:
    """Rare values of one encoding. Each part has numbers of its own for their fields."""

    _fields: dict[tuple[str, str], int] = field(default_factory=dict)
    _renumbered: dict[int, np.ndarray] = field(default_factory=dict)
    _rows: list[np.ndarray] = field(default_factory=list)
    _numbers: list[np.ndarray] = field(default_factory=list)
    _values: list[pa.Array] = field(default_factory=list)

    def add(self, lists: pa.ListArray, names: Sequence[RareName], before: int) -> None:
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        self._rows.append(np.repeat(np.arange(before, before + len(lists)), lengths))
        numbers, values = lists.flatten().flatten()
        if id(names) not in self._renumbered:  # many parts have the very same
            self._renumbered[id(names)] = self._renumber(names)
        self._numbers.append(self._renumbered[id(names)][numbers.to_numpy()])
        self._values.append(values)

    def _renumber(self, names: Sequence[RareName]) -> np.ndarray:
        numbers = np.zeros(max(name.number for name in names) + 1, np.int32)
        for name in names:
            at = (name.pointer, name.column)
            numbers[name.number] = self._fields.setdefault(at, len(self._fields))
        return numbers

    def values(self, encoding: Encoding) -> RareValues:
        names = [RareName(number, *at) for at, number in self._fields.items()]
        rows, numbers = np.concatenate(self._rows), np.concatenate(self._numbers)
        return RareValues(encoding, names, rows, numbers, pa.concat_arrays(self._values))

"""The values of rare fields, which are staged in lists instead of columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.casting.encoding import Encoding
from lake.loading.typed_columns import SparseColumn
from lake.staging.rows_blob import RARE, RareName, rare_names


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


def rare_values(parts: Sequence[pa.RecordBatch]) -> list[RareValues]:
    """The values in the lists of all parts of a table; rows are counted over these."""
    found: dict[str, _Gathered] = {}
    before = 0  # rows of the parts before
    for part in parts:
        for name in part.schema.names:
            if name.startswith(RARE):
                gathered = found.setdefault(name, _Gathered())
                gathered.add(part[name], part.schema.field(name).metadata, before)
        before += len(part)
    return [gathered.values(Encoding(name.removeprefix(RARE))) for name, gathered in found.items()]


@dataclass(slots=True)
class _Gathered:
    """Rare values of one encoding. Each part has numbers of its own for their fields."""

    _fields: dict[tuple[str, str], int] = field(default_factory=dict)
    _renumbered: dict[bytes, np.ndarray] = field(default_factory=dict)  # by what a part says of it
    _rows: list[np.ndarray] = field(default_factory=list)
    _numbers: list[np.ndarray] = field(default_factory=list)
    _values: list[pa.Array] = field(default_factory=list)

    def add(self, lists: pa.ListArray, metadata: dict[bytes, bytes], before: int) -> None:
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        self._rows.append(np.repeat(np.arange(before, before + len(lists)), lengths))
        numbers, values = lists.flatten().flatten()
        self._numbers.append(self._renumber(metadata)[numbers.to_numpy()])
        self._values.append(values)

    def _renumber(self, metadata: dict[bytes, bytes]) -> np.ndarray:
        key = metadata[b"fields"]
        if key not in self._renumbered:
            names = rare_names(metadata)
            numbers = np.zeros(max(name.number for name in names) + 1, np.int32)
            for name in names:
                at = (name.pointer, name.column)
                numbers[name.number] = self._fields.setdefault(at, len(self._fields))
            self._renumbered[key] = numbers
        return self._renumbered[key]

    def values(self, encoding: Encoding) -> RareValues:
        names = [RareName(number, *at) for at, number in self._fields.items()]
        rows, numbers = np.concatenate(self._rows), np.concatenate(self._numbers)
        return RareValues(encoding, names, rows, numbers, pa.concat_arrays(self._values))

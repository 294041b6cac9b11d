"""Staged rows in the types of their table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.columnar.kinds import Encoding
from eventlake.columnar.typed import SparseColumn, TypedColumns, whole
from eventlake.load.blobs import RARE, RareName, StagedField
from eventlake.load.column_casts import CastColumn, cast_column, json_values
from eventlake.rules.counts import CastCounts
from eventlake.rules.names import RESCUED_DATA
from eventlake.rules.types import LakeType, TableSchema


@dataclass(frozen=True, slots=True)
class RareValues:
    """Of each value that is written in this way its row, its field, and the value itself."""

    encoding: Encoding
    names: Sequence[RareName]  # by number of the field
    rows: np.ndarray
    numbers: np.ndarray
    values: pa.Array

    def taken(self, order: np.ndarray, rows: int) -> "RareValues":
        """The values of the selected rows, in the given order."""
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


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Rows as the table's columns, `rescued_data` too if the table has it or they need it."""

    rows: TypedColumns
    casts: dict[str, CastCounts]
    rescued_cells: int


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows as they were staged: their fields, each with its values, and what staging rescued."""

    length: int
    fields: Sequence[tuple[StagedField, pa.Array]]
    rescued: pa.Array | None = None


def typed_rows(
    staged: StagedRows, schema: TableSchema, rare: Iterable[RareValues] = ()
) -> TypedRows:
    """Cast every staged field into its column; what loses anything goes to `rescued_data`."""
    filling = _Filling(staged.length, schema)
    for staged_field, array in staged.fields:
        if array.null_count < len(array):
            filling.add(staged_field.pointer, staged_field.column, staged_field.encoding, array)
    for values in rare:
        for name, sparse in values.fields():
            filling.add_sparse(name.pointer, name.column, values.encoding, sparse)
    if staged.rescued is not None:
        filling.rescue.add_members(staged.rescued)
    return filling.typed()


class _Filling:
    """The columns of a table as they are filled."""

    def __init__(self, length: int, schema: TableSchema) -> None:
        self._length, self._schema = length, schema
        self._types = {n: t for n, t in schema.types().items() if n != RESCUED_DATA}
        self._columns: dict[str, pa.Array | SparseColumn] = {}
        self._casts: dict[str, CastCounts] = {}
        self.rescue = _Rescue()

    def add(self, pointer: str, column: str, encoding: Encoding, array: pa.Array) -> None:
        """Fill a column with a field, of which at least one row has a value."""
        cast = cast_column(array, encoding, self._types[column])
        self._count(column, cast, len(array) - array.null_count)
        if cast.rescued is not None:
            self.rescue.add(pointer, array, encoding, cast.rescued)
        self._put(column, cast.array)

    def add_sparse(
        self, pointer: str, column: str, encoding: Encoding, sparse: SparseColumn
    ) -> None:
        """The same with a field that few rows have."""
        cast = cast_column(sparse.values, encoding, self._types[column])
        if cast.rescued is not None:
            self.add(pointer, column, encoding, sparse.whole(self._length))
            return
        self._count(column, cast, len(sparse.values))
        self._put(column, SparseColumn(sparse.rows, cast.array).without_nulls())

    def _count(self, column: str, cast: CastColumn, values: int) -> None:
        self._casts[column] = self._casts.get(column, CastCounts()) + cast.counts(values)

    def _put(self, column: str, filled: pa.Array | SparseColumn) -> None:
        # Of several fields that go to one column each row has at most one.
        before = self._columns.get(column)
        self._columns[column] = (
            filled
            if before is None
            else pc.coalesce(whole(before, self._length), whole(filled, self._length))
        )

    def typed(self) -> TypedRows:
        columns = {
            c.name: self._columns[c.name] if c.name in self._columns else _nothing(c.type)
            for c in self._schema.columns
        }
        if self.rescue.cells:
            columns[RESCUED_DATA] = self.rescue.objects()
        return TypedRows(TypedColumns(self._length, columns), self._casts, self.rescue.cells)


@cache
def _nothing(type: LakeType) -> SparseColumn:
    """A column without any value."""
    return SparseColumn(np.empty(0, np.int64), pa.array([], type.arrow))


class _Rescue:
    """Gathers the members of each row's `rescued_data`: `"<pointer>":<value>`."""

    def __init__(self) -> None:
        self.cells = 0
        self._members: list[pa.Array] = []

    def add(self, pointer: str, array: pa.Array, encoding: Encoding, where: pa.Array) -> None:
        """The values of one field in the rows asked for."""
        values = json_values(array, encoding, where)
        key = msgspec.json.encode(pointer).decode() + ":"
        self.cells += len(values) - values.null_count
        self._members.append(pc.binary_join_element_wise(key, values, ""))

    def add_members(self, lists: pa.Array) -> None:
        """Values that had no column to begin with."""
        self.cells += pc.sum(pc.list_value_length(lists)).as_py() or 0
        self._members.append(pc.binary_join(lists, ","))

    def objects(self) -> pa.Array:
        """The members of each row as one JSON object, null where there are none."""
        # Not null_handling="skip": pyarrow 26 then leaves out rows in which all are null.
        members = [pc.fill_null(pc.binary_join_element_wise(m, ",", ""), "") for m in self._members]
        joined = pc.binary_join_element_wise(*members, "")
        text = pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 0, -1), "}", "")
        return pc.if_else(pc.equal(joined, ""), pa.scalar(None, pa.string()), text)

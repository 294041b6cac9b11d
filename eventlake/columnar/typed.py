"""Typed columns of a table; columns with few values are stored sparsely."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class SparseColumn:
    """The rows that have a value, in order, and their values, none of which is null."""

    rows: np.ndarray  # 64-bit numbers
    values: pa.Array

    @property
    def type(self) -> pa.DataType:
        return self.values.type

    def whole(self, length: int) -> pa.Array:
        """The same, with this number of rows."""
        if not len(self.rows):
            return pa.nulls(length, self.type)
        at = np.zeros(length, np.int64)
        missing = np.ones(length, np.bool_)
        at[self.rows] = np.arange(len(self.rows))
        missing[self.rows] = False
        return self.values.take(pa.array(at, mask=missing))


def whole(column: pa.Array | SparseColumn, length: int) -> pa.Array:
    """A column with this number of rows."""
    return column.whole(length) if isinstance(column, SparseColumn) else column


@dataclass(frozen=True, slots=True)
class TypedColumns:
    """All columns of some rows, by name, in the order of the table."""

    length: int
    columns: Mapping[str, pa.Array | SparseColumn]

    @classmethod
    def of(cls, rows: pa.Table) -> "TypedColumns":
        columns = zip(rows.column_names, rows.columns, strict=True)
        return cls(len(rows), {name: column.combine_chunks() for name, column in columns})

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, column.type) for name, column in self.columns.items()])

    def whole(self, name: str) -> pa.Array:
        """A column with all of its rows."""
        return whole(self.columns[name], self.length)

    def table(self) -> pa.Table:
        return pa.table({name: self.whole(name) for name in self.columns}, schema=self.schema)

    def without(self, name: str) -> "TypedColumns":
        kept = {other: column for other, column in self.columns.items() if other != name}
        return TypedColumns(self.length, kept)

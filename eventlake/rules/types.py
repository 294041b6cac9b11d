"""The five types of the lake's columns."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec
import pyarrow as pa


class LakeType(StrEnum):
    """A column type in the spelling of the catalog."""

    BIGINT = "bigint"
    BOOLEAN = "boolean"
    DECIMAL = "decimal(38,6)"
    STRING = "string"
    TIMESTAMP = "timestamp"

    @property
    def sql(self) -> str:
        """The type in the catalog and in SQL."""
        return self.value

    @property
    def arrow(self) -> pa.DataType:
        """The type in Arrow and Parquet."""
        return _ARROW[self]


_ARROW: dict[LakeType, pa.DataType] = {
    LakeType.BIGINT: pa.int64(),
    LakeType.BOOLEAN: pa.bool_(),
    LakeType.DECIMAL: pa.decimal128(38, 6),
    LakeType.STRING: pa.string(),
    LakeType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}


class Column(msgspec.Struct, frozen=True):
    """A column of a table; `pointer` is the JSON pointer to its field."""

    name: str
    type: LakeType
    pointer: str


class TableSchema(msgspec.Struct, frozen=True):
    """A table of a source: `table` as in its folder, `name` as in the catalog (with prefix)."""

    table: str
    database: str
    name: str
    original: str
    columns: tuple[Column, ...]
    owns_folder: bool = True

    @property
    def key(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(c.name, c.type.arrow) for c in self.columns])

    def types(self) -> dict[str, LakeType]:
        return {column.name: column.type for column in self.columns}

    def with_columns(self, new: tuple[Column, ...]) -> "TableSchema":
        """The same table with new columns appended; existing columns are unchanged."""
        known = self.types()
        added = tuple(column for column in new if column.name not in known)
        return msgspec.structs.replace(self, columns=self.columns + added)

    def with_types(self, types: Mapping[str, LakeType]) -> "TableSchema":
        """The same table with changed types of some columns."""
        columns = tuple(
            msgspec.structs.replace(column, type=types.get(column.name, column.type))
            for column in self.columns
        )
        return msgspec.structs.replace(self, columns=columns)

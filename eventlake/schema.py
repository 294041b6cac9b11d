"""What a table of the lake looks like: its columns, where each comes from, and how it grows."""

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from eventlake.types import LakeType


class Column(msgspec.Struct, frozen=True):
    """A column of a table; `pointer` is the JSON pointer to the field it was made from."""

    name: str
    type: LakeType
    pointer: str


class TableSchema(msgspec.Struct, frozen=True):
    """A table of a source: `table` as in its folder, `name` as in the catalog (prefix included)."""

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
        """The same table with columns appended; those it has already are left alone."""
        known = self.types()
        added = tuple(column for column in new if column.name not in known)
        return msgspec.structs.replace(self, columns=self.columns + added)

    def with_types(self, types: Mapping[str, LakeType]) -> "TableSchema":
        """The same table with other types for some of its columns."""
        columns = tuple(
            msgspec.structs.replace(column, type=types.get(column.name, column.type))
            for column in self.columns
        )
        return msgspec.structs.replace(self, columns=columns)

"""Resolves the schema of every table from the reports of all tasks and the tables of the lake.

Pure functions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from eventlake.load.seen import SeenTable
from eventlake.rules.inference import Kind, infer
from eventlake.rules.names import RESCUED_DATA, STANDARD_COLUMNS, Naming
from eventlake.rules.types import Column, LakeType, TableSchema
from eventlake.settings.models import Source

RESCUED = Column(RESCUED_DATA, LakeType.STRING, "")


@dataclass(frozen=True, slots=True)
class ResolvedTable:
    """A table after this unit, and its new columns."""

    schema: TableSchema
    new_columns: tuple[Column, ...]
    is_new: bool

    def with_column(self, column: Column) -> "ResolvedTable":
        """The same with an additional column, unless the table has it."""
        if column.name in self.schema.types():
            return self
        grown = self.schema.with_columns((column,))
        return ResolvedTable(grown, (*self.new_columns, column), self.is_new)


def standard_columns(naming: Naming) -> tuple[Column, ...]:
    return tuple(Column(c.name(naming), c.type, c.pointer) for c in STANDARD_COLUMNS)


def resolve(
    source: Source, known: Mapping[str, TableSchema], seen: Mapping[str, SeenTable]
) -> dict[str, ResolvedTable]:
    """All tables of the unit, by table name; `known` are those of the lake, by catalog name."""
    folders = {schema.table for schema in known.values()}
    return {
        table: _resolve_table(source, known, table, one, owns_folder=table not in folders)
        for table, one in sorted(seen.items())
    }


def _resolve_table(
    source: Source,
    known: Mapping[str, TableSchema],
    table: str,
    seen: SeenTable,
    owns_folder: bool,
) -> ResolvedTable:
    name = source.catalog_table(table)
    before = known.get(f"{source.database}.{name}")
    schema = before or TableSchema(
        table=table,
        database=source.database,
        name=name,
        original=seen.original,
        columns=standard_columns(source.naming),
        owns_folder=owns_folder,
    )
    added = _new_columns(schema, seen)
    grown = schema.with_columns(added)
    new = grown.columns if before is None else added
    return ResolvedTable(grown, new, is_new=before is None)


def _new_columns(schema: TableSchema, seen: SeenTable) -> tuple[Column, ...]:
    """The columns that the table lacks, in order of discovery, with the types of their values."""
    known = schema.types()
    in_order = sorted(seen.columns.items(), key=lambda item: item[1].first)
    return tuple(
        Column(name, _type(column.pointer, column.kinds), column.pointer)
        for name, column in in_order
        if name not in known
    )


def _type(pointer: str, kinds: frozenset[Kind]) -> LakeType:
    """The type for all values of the column; names of events are always strings."""
    return LakeType.STRING if pointer == "/event" else infer(kinds)

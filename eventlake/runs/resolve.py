"""Resolves the schema of every table from the reports of all tasks and the tables of the lake.

Pure functions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eventlake.load.seen import RawPosition, SeenTable
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
    source: Source, known: Mapping[str, TableSchema], seen: Iterable[SeenTable]
) -> dict[str, ResolvedTable]:
    """All tables of the unit, by table name; `known` are those of the lake, by catalog name."""
    by_table: dict[str, list[SeenTable]] = {}
    for table in seen:
        by_table.setdefault(table.table, []).append(table)
    folders = {schema.table for schema in known.values()}
    return {
        table: _resolve_table(source, known, parts, owns_folder=table not in folders)
        for table, parts in sorted(by_table.items())
    }


def _resolve_table(
    source: Source, known: Mapping[str, TableSchema], parts: list[SeenTable], owns_folder: bool
) -> ResolvedTable:
    first = min(parts, key=lambda part: part.first)
    name = source.catalog_table(first.table)
    before = known.get(f"{source.database}.{name}")
    schema = before or TableSchema(
        table=first.table,
        database=source.database,
        name=name,
        original=first.original,
        columns=standard_columns(source.naming),
        owns_folder=owns_folder,
    )
    added = _new_columns(schema, parts)
    grown = schema.with_columns(added)
    new = grown.columns if before is None else added
    return ResolvedTable(grown, new, is_new=before is None)


def _new_columns(schema: TableSchema, parts: list[SeenTable]) -> tuple[Column, ...]:
    """The columns that the table lacks, in order of discovery, with the types of their values."""
    known = schema.types()
    found: dict[str, tuple[RawPosition, str, frozenset[Kind]]] = {}
    for part in parts:
        for column in part.columns:
            name = column.column
            if name in known:
                continue
            before = found.get(name)
            if before is None:
                found[name] = (column.first, column.pointer, column.kinds)
                continue
            position, pointer, kinds = before
            if column.first < position:
                position, pointer = column.first, column.pointer
            if position is not before[0] or not column.kinds <= kinds:
                found[name] = (position, pointer, kinds | column.kinds)
    in_order = sorted(found.items(), key=lambda item: item[1][0])
    return tuple(Column(name, _type(at, kinds), at) for name, (_, at, kinds) in in_order)


def _type(pointer: str, kinds: frozenset[Kind]) -> LakeType:
    """The type for all values of the column; names of events are always strings."""
    return LakeType.STRING if pointer == "/event" else infer(kinds)

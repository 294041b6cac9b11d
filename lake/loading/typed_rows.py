"""Staged rows in the types of their table."""

from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lake.casting.column import CastColumn, cast_column, json_values
from lake.casting.encoding import Encoding
from lake.counts import CastCounts
from lake.names import RESCUED_DATA
from lake.schema import TableSchema
from lake.staging.table_rows import RESCUED


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Rows as the table's columns, `rescued_data` too if the table has it or they need it."""

    rows: pa.Table
    casts: dict[str, CastCounts]
    rescued_cells: int


def typed_rows(staged: pa.Table, schema: TableSchema) -> TypedRows:
    """Cast every staged field into its column; what loses anything goes to `rescued_data`."""
    types = {n: t for n, t in schema.types().items() if n != RESCUED_DATA}
    columns: dict[str, pa.Array] = {}
    casts: dict[str, CastCounts] = {}
    fragments: list[pa.Array] = []
    for field, chunks in zip(staged.schema, staged.columns, strict=True):
        if not field.name.startswith("/"):
            continue
        array = chunks.combine_chunks() if chunks.num_chunks != 1 else chunks.chunk(0)
        column = field.metadata[b"column"].decode()
        encoding = Encoding(field.metadata[b"as"].decode())
        if column not in types:  # past the limit of columns
            fragments.append(_fragments(field.name, array, encoding, array.is_valid()))
            continue
        cast = cast_column(array, encoding, types[column])
        _count(casts, column, cast, len(array) - array.null_count)
        if cast.rescued is not None:
            fragments.append(_fragments(field.name, array, encoding, cast.rescued))
        # Of several fields that go to one column each row has at most one.
        columns[column] = (
            pc.coalesce(columns[column], cast.array) if column in columns else cast.array
        )
    if RESCUED in staged.column_names:
        inner = pc.utf8_slice_codeunits(staged[RESCUED].combine_chunks(), 1, -1)
        fragments.append(inner)
    return _assemble(len(staged), schema, columns, casts, fragments)


def _count(casts: dict[str, CastCounts], column: str, cast: CastColumn, values: int) -> None:
    casts[column] = casts.get(column, CastCounts()) + cast.counts(values)


def _fragments(pointer: str, array: pa.Array, encoding: Encoding, where: pa.Array) -> pa.Array:
    """`"<pointer>":<value>` in the rows asked for, null in all others."""
    key = msgspec.json.encode(pointer).decode() + ":"
    return pc.binary_join_element_wise(key, json_values(array, encoding, where), "")


def _assemble(
    length: int,
    schema: TableSchema,
    columns: dict[str, pa.Array],
    casts: dict[str, CastCounts],
    fragments: list[pa.Array],
) -> TypedRows:
    filled = {
        c.name: columns[c.name] if c.name in columns else pa.nulls(length, c.type.arrow)
        for c in schema.columns
    }
    if fragments:
        filled[RESCUED_DATA] = _objects(fragments)
    rescued = sum(length - fragment.null_count for fragment in fragments)
    return TypedRows(pa.table(filled), casts, rescued)


def _objects(fragments: list[pa.Array]) -> pa.Array:
    """The members of each row as one JSON object, null where there are none."""
    # Not null_handling="skip": pyarrow 26 then leaves out rows in which all are null.
    members = [pc.fill_null(pc.binary_join_element_wise(f, ",", ""), "") for f in fragments]
    joined = pc.binary_join_element_wise(*members, "")
    text = pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 0, -1), "}", "")
    return pc.if_else(pc.equal(joined, ""), pa.scalar(None, pa.string()), text)

"""Staged rows in the types of their table."""

from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lake.casting.column import cast_column, json_values
from lake.casting.encoding import Encoding
from lake.counts import CastCounts
from lake.names import RESCUED_DATA
from lake.schema import TableSchema
from lake.staging.rows_blob import RESCUED


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
    rescue = _Rescue()
    for field, chunks in zip(staged.schema, staged.columns, strict=True):
        array = chunks.combine_chunks() if chunks.num_chunks != 1 else chunks.chunk(0)
        values = len(array) - array.null_count
        if not field.name.startswith("/") or not values:
            continue
        column = field.metadata[b"column"].decode()
        encoding = Encoding(field.metadata[b"as"].decode())
        cast = cast_column(array, encoding, types[column])
        casts[column] = casts.get(column, CastCounts()) + cast.counts(values)
        if cast.rescued is not None:
            rescue.add(field.name, array, encoding, cast.rescued)
        # Of several fields that go to one column each row has at most one.
        columns[column] = (
            pc.coalesce(columns[column], cast.array) if column in columns else cast.array
        )
    if RESCUED in staged.column_names:
        rescue.add_members(staged[RESCUED].combine_chunks())
    filled = {
        c.name: columns[c.name] if c.name in columns else pa.nulls(len(staged), c.type.arrow)
        for c in schema.columns
    }
    if rescue.cells:
        filled[RESCUED_DATA] = rescue.objects()
    return TypedRows(pa.table(filled), casts, rescue.cells)


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

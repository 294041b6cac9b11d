"""Cells as columns in the memory layout of Arrow: of all tables of a block at once.

A block may hold hundreds of tables: what is done for each of them, or each of their columns, has
to be little. Of wide tables most fields are in few of the rows, and these have no columns: all of
their values are in lists, one for each way in which values are written.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lake.casting.encoding import ARROW_TYPES, Encoding
from lake.kinds import Kind
from lake.staging.kernel.events import Cells, Events
from lake.staging.kernel.fill import (
    AS_JSON,
    CELLS,
    CODES,
    FACTS,
    FIELD,
    KINDS,
    PLACE,
    ROW,
    VALID,
    WAY,
    count_columns,
    fill_columns,
)
from lake.staging.kernel.layout import (
    encoding_of,
    known_kinds,
    laid_out,
    mark_words,
    rare_fields,
)


class Field(NamedTuple):
    """A field of some rows; the first of all that has it, and its place there."""

    number: int
    encoding: Encoding
    first_row: int
    place: int
    kinds: frozenset[Kind] | None  # of the values, if that is known without a look at them


class Column(NamedTuple):
    """The values of a field over some rows."""

    field: Field
    array: pa.Array


class Columns(NamedTuple):
    """All fields of some rows: those with a column, and those that are rare, with their lists.

    A list has for each row the numbers and the values of its rare fields.
    """

    columns: list[Column]
    rare: list[Field]
    lists: dict[Encoding, pa.ListArray]


def columns_of(
    buf: int,
    events: Events,
    cells: Cells,
    rows: np.ndarray,
    ends: np.ndarray,
    column_of: np.ndarray,
    fields: int,
    lists: bool = True,
) -> list[Columns]:
    """The columns of some groups of events, by the fields that they have.

    `rows` are those of all groups, one after the other, `ends` where each of them ends.
    `column_of` is room to work in, a place for each field, NONE throughout before and after.
    `fields` are so many as there can be. Without lists, rare ones have columns, too.
    """
    facts, last = _facts(buf, events, cells, rows, ends, column_of, fields)
    mark_words(facts)
    group_of = np.repeat(np.arange(len(ends)), np.diff(last, prepend=0))
    lengths = np.diff(ends, prepend=0)
    rare = rare_fields(facts, lengths[group_of], group_of, len(ends) if lists else 0)
    layout = laid_out(facts, lengths, group_of, rare)
    last_list = np.searchsorted(layout.list_groups, np.arange(len(ends)), side="right")
    # Arrow keeps memory that it has had for the next time; NumPy asks the system again and again.
    buffer = pa.allocate_buffer(layout.bytes + 8)
    memory = np.frombuffer(buffer, np.uint8)
    memory[:] = 0
    fill_columns(
        buf, rows, ends, events.first_cell, cells, column_of, facts[:, FIELD].copy(), last,
        last_list, layout.buffers, memory,
    )  # fmt: skip
    told = [_field(*fact) for fact in facts[:, _TOLD].tolist()]
    found = [Columns([], [], {}) for _ in lengths]
    spots = zip(layout.buffers.tolist(), layout.sizes.tolist(), strict=True)
    for field, group, filled, is_rare in zip(
        told, group_of.tolist(), facts[:, CELLS].tolist(), rare.tolist(), strict=True
    ):
        spot = next(spots)
        if is_rare:
            found[group].rare.append(field)
        else:
            array = _array(buffer, field.encoding, int(lengths[group]), filled, *spot)
            found[group].columns.append(Column(field, array))
    of_lists = zip(layout.list_groups.tolist(), layout.list_encodings, strict=True)
    for (group, encoding), spot in zip(of_lists, spots, strict=True):
        found[group].lists[encoding] = _list(buffer, encoding, int(lengths[group]), *spot)
    return found


def _facts(
    buf: int,
    events: Events,
    cells: Cells,
    rows: np.ndarray,
    ends: np.ndarray,
    column_of: np.ndarray,
    fields: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Of each column what `count_columns` finds, and where the columns of each group end."""
    last = np.zeros(len(ends), np.int64)
    in_rows = np.sum(events.first_cell[rows + 1] - events.first_cell[rows])
    facts = np.empty((min(int(in_rows), len(ends) * fields), FACTS), np.int64)
    count = count_columns(buf, rows, ends, events.first_cell, cells, column_of, facts, last)
    return facts[:count], last


_TOLD = [FIELD, KINDS, ROW, PLACE]


def _field(number: int, kinds: int, row: int, place: int) -> Field:
    return Field(number, encoding_of(kinds), row, place, known_kinds(kinds))


def _array(
    memory: pa.Buffer,
    encoding: Encoding,
    length: int,
    filled: int,
    starts: list[int],
    size: list[int],
) -> pa.Array:
    """A column as Arrow has it."""
    _, valid, values, texts, _ = starts
    mask = memory.slice(valid, size[0]) if filled < length else None
    buffers = [mask, memory.slice(values, size[1])]
    if starts[WAY] <= AS_JSON:
        buffers.append(memory.slice(texts, size[2]))
    return pa.Array.from_buffers(ARROW_TYPES[encoding], length, buffers, length - filled)


def _list(
    memory: pa.Buffer, encoding: Encoding, length: int, starts: list[int], size: list[int]
) -> pa.ListArray:
    """A list as Arrow has it: for each row the numbers of fields, and their values."""
    codes = np.frombuffer(memory, np.uint16, size[3] // 2, starts[CODES])
    values = _array(memory, encoding, len(codes), len(codes), starts, size)
    each = pa.StructArray.from_arrays([pa.array(codes), values], ["field", "value"])
    offsets = np.frombuffer(memory, np.int32, length + 1, starts[VALID])
    return pa.ListArray.from_arrays(pa.array(offsets), each)

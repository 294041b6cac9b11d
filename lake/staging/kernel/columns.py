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
from lake.staging.block import Block
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
from lake.staging.parts import PartColumn
from lake.staging.seen import Place


class Columns(NamedTuple):
    """All fields of some rows: columns by the number of the field, and those that are rare, with
    their number, encoding, first place and kinds.

    A list has for each row the numbers and the values of its rare fields.
    """

    columns: dict[int, PartColumn]
    rare: list[tuple[int, Encoding, Place, frozenset[Kind]]]
    lists: dict[Encoding, pa.ListArray]


def columns_of(
    block: Block,
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
    facts, last = _facts(block, rows, ends, column_of, fields)
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
        block.lines.address, rows, ends, block.events.first_cell, block.cells, column_of,
        facts[:, FIELD].copy(), last, last_list, layout.buffers, memory,
    )  # fmt: skip
    found = [Columns({}, [], {}) for _ in lengths]
    first = facts[:, ROW]
    places = zip(
        block.files[first].tolist(),
        block.numbers[first].tolist(),
        facts[:, PLACE].tolist(),
        strict=True,
    )
    told = zip(group_of.tolist(), facts[:, _TOLD].tolist(), places, rare.tolist(), strict=True)
    spots = zip(layout.buffers.tolist(), layout.sizes.tolist(), strict=True)
    # Lists come after the columns: their spots are left.
    for (group, (number, kinds, filled), place, is_rare), spot in zip(told, spots, strict=False):
        encoding, known = encoding_of(kinds), known_kinds(kinds)
        if is_rare:
            found[group].rare.append((number, encoding, place, known or frozenset()))
        else:
            array = _array(buffer, encoding, int(lengths[group]), filled, *spot)
            found[group].columns[number] = PartColumn(encoding, array, place, known)
    of_lists = zip(layout.list_groups.tolist(), layout.list_encodings, strict=True)
    for (group, encoding), spot in zip(of_lists, spots, strict=True):
        found[group].lists[encoding] = _list(buffer, encoding, int(lengths[group]), *spot)
    return found


_TOLD = [FIELD, KINDS, CELLS]


def _facts(
    block: Block, rows: np.ndarray, ends: np.ndarray, column_of: np.ndarray, fields: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of each column what `count_columns` finds, and where the columns of each group end."""
    last = np.zeros(len(ends), np.int64)
    first_cell = block.events.first_cell
    in_rows = int(np.sum(first_cell[rows + 1] - first_cell[rows]))
    facts = np.empty((min(in_rows, len(ends) * fields), FACTS), np.int64)
    buf = block.lines.address
    count = count_columns(buf, rows, ends, first_cell, block.cells, column_of, facts, last)
    return facts[:count], last


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

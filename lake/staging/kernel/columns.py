"""Cells of one table as columns in the memory layout of Arrow."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lake.casting.encoding import Encoding, kinds_of
from lake.kinds import Kind
from lake.staging.kernel.compiled import compiled
from lake.staging.kernel.events import Cells, Events
from lake.staging.kernel.fields import NONE
from lake.staging.kernel.memory import copy
from lake.staging.kernel.moments import moment
from lake.staging.kernel.text import unescaped
from lake.staging.kernel.values import (
    ARRAY,
    ESCAPED,
    FALSE,
    FRACTION,
    INTEGER,
    LOOSE_ARRAY,
    MILLIS,
    MOMENT,
    NULL,
    NUMBER,
    TEXT,
    TRUE,
    integer,
    tight,
)
from lake.types import LakeType

_TEXTS = 1 << TEXT | 1 << ESCAPED | 1 << MOMENT | 1 << MILLIS
_NUMBERS = 1 << INTEGER | 1 << FRACTION | 1 << NUMBER
_TRUTHS = 1 << TRUE | 1 << FALSE
_KNOWN = {
    INTEGER: Kind.INT64,
    FRACTION: Kind.NUMBER,
    TRUE: Kind.BOOL,
    FALSE: Kind.BOOL,
    MOMENT: Kind.DATE,
    MILLIS: Kind.DATE,
    ARRAY: Kind.ARRAY,
    LOOSE_ARRAY: Kind.ARRAY,
}
"""What cells are without another look."""
_AS_TEXT, _AS_JSON, _AS_INT, _AS_MOMENT, _AS_BOOL = range(5)


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a field over some rows; the first of all that has it, and its place there."""

    field: int
    encoding: Encoding
    array: pa.Array
    first_row: int
    place: int
    cells: int  # a bit for each kind of cell

    def kinds(self) -> set[Kind]:
        """The kinds that the values are of."""
        seen = [kind for kind in range(NULL) if self.cells >> kind & 1]
        if all(kind in _KNOWN for kind in seen):
            return {_KNOWN[kind] for kind in seen}
        return kinds_of(self.encoding, self.array)


def columns_of(
    buf: int, events: Events, cells: Cells, rows: np.ndarray, column_of: np.ndarray
) -> list[Column]:
    """The columns of some events, by the fields that they have.

    `column_of` is room to work in, a place for each field, NONE throughout before and after.
    """
    facts = _facts(events, cells, rows, column_of)
    encodings = [_encoding(kinds) for kinds in facts[:, _KINDS].tolist()]
    ways = np.array([_WAYS[encoding] for encoding in encodings], np.int64)
    memory = _Memory(ways, facts[:, _BYTES], len(rows))
    _fill(
        buf, rows, events.first_cell, cells, column_of, ways, memory.slots, memory.starts.copy(),
        memory.offsets, memory.texts, memory.ints, memory.bools, memory.valid,
    )  # fmt: skip
    column_of[facts[:, _FIELD]] = NONE
    found: list[Column] = []
    for column, (field, kinds, filled, size, row, place) in enumerate(facts.tolist()):
        array = memory.array(column, ways[column], filled, size)
        found.append(Column(field, encodings[column], array, row, place, kinds))
    return found


_FIELD, _KINDS, _CELLS, _BYTES, _ROW, _PLACE = range(6)


def _facts(events: Events, cells: Cells, rows: np.ndarray, column_of: np.ndarray) -> np.ndarray:
    """Of each column what `_count` finds; there may be more columns than any row has cells."""
    most = int(np.max(events.first_cell[rows + 1] - events.first_cell[rows], initial=0))
    room = max(64, 2 * most)
    while True:
        facts = np.zeros((room, 6), np.int64)
        count = _count(rows, events.first_cell, cells, column_of, facts)
        if count <= room:
            return facts[:count]
        room = count


def _encoding(kinds: int) -> Encoding:
    if kinds == 1 << MILLIS:
        return Encoding.MILLIS
    if not kinds & ~_TEXTS:
        return Encoding.TEXT
    if kinds == 1 << INTEGER:
        return Encoding.INT
    if not kinds & ~_TRUTHS:
        return Encoding.BOOL
    return Encoding.JSON if kinds & ~_NUMBERS else Encoding.NUMBER


_WAYS = {
    Encoding.TEXT: _AS_TEXT,
    Encoding.NUMBER: _AS_JSON,
    Encoding.JSON: _AS_JSON,
    Encoding.INT: _AS_INT,
    Encoding.MILLIS: _AS_MOMENT,
    Encoding.BOOL: _AS_BOOL,
}


class _Memory:
    """The buffers of all columns: each has a slot among those that are alike, and bits of its own.

    Texts lie one column behind the other.
    """

    def __init__(self, ways: np.ndarray, sizes: np.ndarray, rows: int) -> None:
        texts, bools = ways <= _AS_JSON, ways == _AS_BOOL
        ints = ~texts & ~bools
        self.slots = np.zeros(len(ways), np.int64)
        for group in (texts, ints, bools):
            self.slots[group] = np.arange(np.count_nonzero(group))
        sizes = np.where(texts, sizes, 0)
        self.starts = np.cumsum(sizes) - sizes
        self.rows, bits = rows, (rows + 7) // 8
        self.offsets = np.zeros((np.count_nonzero(texts), rows + 1), np.int32)
        self.texts = np.empty(int(sizes.sum()) + 8, np.uint8)
        self.ints = np.zeros((np.count_nonzero(ints), rows), np.int64)
        self.bools = np.zeros((np.count_nonzero(bools), bits), np.uint8)
        self.valid = np.zeros((len(ways), bits), np.uint8)

    def array(self, column: int, way: int, filled: int, size: int) -> pa.Array:
        """A column as Arrow has it, of which so many rows have a value."""
        slot, start = self.slots[column], self.starts[column]
        if way == _AS_INT:
            type_, values = pa.int64(), [self.ints[slot]]
        elif way == _AS_MOMENT:
            type_, values = LakeType.TIMESTAMP.arrow, [self.ints[slot]]
        elif way == _AS_BOOL:
            type_, values = pa.bool_(), [self.bools[slot]]
        else:
            type_, values = pa.string(), [self.offsets[slot], self.texts[start : start + size]]
        nulls = self.rows - filled
        mask = pa.py_buffer(self.valid[column]) if nulls else None
        return pa.Array.from_buffers(type_, self.rows, [mask, *map(pa.py_buffer, values)], nulls)


@compiled
def _count(
    rows: np.ndarray,
    first_cell: np.ndarray,
    cells: Cells,
    column_of: np.ndarray,
    facts: np.ndarray,
) -> int:
    """How many columns there are, and of each its field, kinds, cells, bytes and first place."""
    cell_field, cell_kind, cell_start, cell_end = cells.field, cells.kind, cells.start, cells.end
    count = 0
    for r in range(len(rows)):
        begin = first_cell[rows[r]]
        for cell in range(begin, first_cell[rows[r] + 1]):
            field = cell_field[cell]
            column = column_of[field]
            if column == NONE:
                column = count
                count += 1
                column_of[field] = column
                if column < len(facts):
                    facts[column, _FIELD] = field
                    facts[column, _ROW] = rows[r]
                    facts[column, _PLACE] = cell - begin
            if column < len(facts):
                if rows[r] < facts[column, _ROW]:
                    facts[column, _ROW] = rows[r]
                    facts[column, _PLACE] = cell - begin
                facts[column, _KINDS] |= np.int64(1) << np.int64(cell_kind[cell])
                facts[column, _CELLS] += 1
                facts[column, _BYTES] += cell_end[cell] - cell_start[cell] + 2
    if count > len(facts):  # forget it all, there will be more room
        for r in range(len(rows)):
            for cell in range(first_cell[rows[r]], first_cell[rows[r] + 1]):
                column_of[cell_field[cell]] = NONE
    return count


@compiled
def _fill(
    buf: int,
    rows: np.ndarray,
    first_cell: np.ndarray,
    cells: Cells,
    column_of: np.ndarray,
    ways: np.ndarray,
    slots: np.ndarray,
    at: np.ndarray,
    offsets: np.ndarray,
    texts: np.ndarray,
    ints: np.ndarray,
    bools: np.ndarray,
    valid: np.ndarray,
) -> None:
    """Write all cells into their columns; `at` is where the next text of a column goes."""
    cell_field, cell_kind, cell_start, cell_end = cells.field, cells.kind, cells.start, cells.end
    out = texts.ctypes.data
    for r in range(len(rows)):
        byte_of, bit = r >> 3, np.uint8(1 << (r & 7))
        for cell in range(first_cell[rows[r]], first_cell[rows[r] + 1]):
            column = column_of[cell_field[cell]]
            kind, start, end = cell_kind[cell], cell_start[cell], cell_end[cell]
            way, slot = ways[column], slots[column]
            valid[column, byte_of] |= bit
            if way == _AS_INT:
                ints[slot, r] = integer(buf, start, end)
            elif way == _AS_MOMENT:
                ints[slot, r] = moment(buf, start, end)
            elif way == _AS_BOOL:
                if kind == TRUE:
                    bools[slot, byte_of] |= bit
            else:
                place = at[column]
                if kind == ESCAPED and way == _AS_TEXT:
                    place = unescaped(buf, start, end, out, place)
                else:
                    if way == _AS_JSON and kind <= MILLIS:  # with its quotes
                        start -= 1
                        end += 1
                    if kind in (LOOSE_ARRAY, ESCAPED):
                        place = tight(buf, start, end, out, place)
                    else:
                        copy(out, place, buf, start, end - start)
                        place += end - start
                offsets[slot, r + 1] = place - at[column]
                at[column] = place
    for slot in range(len(offsets)):
        total = 0
        for r in range(1, offsets.shape[1]):
            total += offsets[slot, r]
            offsets[slot, r] = total

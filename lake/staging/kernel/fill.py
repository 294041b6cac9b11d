"""Columns are counted, and then filled with the cells of all events, group by group."""

import numpy as np

from lake.staging.kernel.compiled import compiled
from lake.staging.kernel.events import Cells
from lake.staging.kernel.fields import NONE
from lake.staging.kernel.memory import copy
from lake.staging.kernel.moments import moment
from lake.staging.kernel.text import unescaped
from lake.staging.kernel.values import ESCAPED, LOOSE_ARRAY, MILLIS, TRUE, integer, tight

FIELD, KINDS, CELLS, BYTES, ROW, PLACE = range(6)
"""What is counted of a column: a bit for each kind of cell, the bytes that they may take, and the
first row of all that has the field, with its place there."""
WAY, VALID, VALUES, TEXTS = range(4)
"""How a column is written, and where its buffers begin: bits for those rows that have a value; the
values, or where texts end; the texts."""
AS_TEXT, AS_JSON, AS_INT, AS_MOMENT, AS_BOOL = range(5)


@compiled
def count_columns(
    rows: np.ndarray,
    ends: np.ndarray,
    first_cell: np.ndarray,
    cells: Cells,
    column_of: np.ndarray,
    facts: np.ndarray,
    last: np.ndarray,
) -> int:
    """How many columns there are, and of each its field, kinds, cells, bytes and first place."""
    cell_field, cell_kind, cell_start, cell_end = cells.field, cells.kind, cells.start, cells.end
    count = 0
    begin_rows = 0
    for group in range(len(ends)):
        for r in range(begin_rows, ends[group]):
            begin = first_cell[rows[r]]
            for cell in range(begin, first_cell[rows[r] + 1]):
                field = cell_field[cell]
                column = column_of[field]
                if column == NONE:
                    column = count
                    count += 1
                    column_of[field] = column
                    if column < len(facts):
                        facts[column, FIELD] = field
                        facts[column, ROW] = rows[r]
                        facts[column, PLACE] = cell - begin
                if column < len(facts):
                    if rows[r] < facts[column, ROW]:
                        facts[column, ROW] = rows[r]
                        facts[column, PLACE] = cell - begin
                    facts[column, KINDS] |= np.int64(1) << np.int64(cell_kind[cell])
                    facts[column, CELLS] += 1
                    facts[column, BYTES] += cell_end[cell] - cell_start[cell] + 2
        last[group] = count
        if count <= len(facts):
            for column in range(last[group - 1] if group else 0, count):
                column_of[facts[column, FIELD]] = NONE
        else:  # all of it will be done again, with more room
            for r in range(begin_rows, ends[group]):
                for cell in range(first_cell[rows[r]], first_cell[rows[r] + 1]):
                    column_of[cell_field[cell]] = NONE
        begin_rows = ends[group]
    return count


@compiled
def fill_columns(
    buf: int,
    rows: np.ndarray,
    ends: np.ndarray,
    first_cell: np.ndarray,
    cells: Cells,
    column_of: np.ndarray,
    fields: np.ndarray,
    last: np.ndarray,
    layout: np.ndarray,
    memory: np.ndarray,
    offsets: np.ndarray,
    ints: np.ndarray,
) -> None:
    """Write all cells into the memory of their columns, which `offsets` and `ints` are too."""
    cell_field, cell_kind, cell_start, cell_end = cells.field, cells.kind, cells.start, cells.end
    out = memory.ctypes.data
    at = layout[:, TEXTS].copy()  # where the next text of a column goes
    begin_rows, begin_columns = 0, 0
    for group in range(len(ends)):
        for column in range(begin_columns, last[group]):
            column_of[fields[column]] = column
        for r in range(ends[group] - begin_rows):
            row = rows[begin_rows + r]
            byte_of, bit = r >> 3, np.uint8(1 << (r & 7))
            for cell in range(first_cell[row], first_cell[row + 1]):
                column = column_of[cell_field[cell]]
                kind, start, end = cell_kind[cell], cell_start[cell], cell_end[cell]
                way, values = layout[column, WAY], layout[column, VALUES]
                memory[layout[column, VALID] + byte_of] |= bit
                if way == AS_INT:
                    ints[(values >> 3) + r] = integer(buf, start, end)
                elif way == AS_MOMENT:
                    ints[(values >> 3) + r] = moment(buf, start, end)
                elif way == AS_BOOL:
                    if kind == TRUE:
                        memory[values + byte_of] |= bit
                else:
                    place = at[column]
                    if kind == ESCAPED and way == AS_TEXT:
                        place = unescaped(buf, start, end, out, place)
                    else:
                        if way == AS_JSON and kind <= MILLIS:  # with its quotes
                            start -= 1
                            end += 1
                        if kind in (LOOSE_ARRAY, ESCAPED):
                            place = tight(buf, start, end, out, place)
                        else:
                            copy(out, place, buf, start, end - start)
                            place += end - start
                    offsets[(values >> 2) + r + 1] = place - at[column]
                    at[column] = place
        for column in range(begin_columns, last[group]):
            column_of[fields[column]] = NONE
            if layout[column, WAY] <= AS_JSON:
                total = 0
                first = layout[column, VALUES] >> 2
                for r in range(first + 1, first + 1 + ends[group] - begin_rows):
                    total += offsets[r]
                    offsets[r] = total
        begin_rows, begin_columns = ends[group], last[group]

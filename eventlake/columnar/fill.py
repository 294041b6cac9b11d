"""Counts columns, then fills them with the cells of events, group by group."""

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.events import Cells
from eventlake.columnar.fields import NONE
from eventlake.columnar.memory import byte, copy
from eventlake.columnar.text import unescaped
from eventlake.columnar.timestamps import moment
from eventlake.columnar.values import ESCAPED, LOOSE_ARRAY, MILLIS, TEXT, TRUE, integer, tight

FIELD, KINDS, CELLS, BYTES, ROW, PLACE, LETTER = range(7)
"""What is counted of a column: a bit for each kind of cell, the bytes that they may take, and the
first row of all that has the field, with its place there, and with the first letter of a text that
has no escapes."""
FACTS = LETTER + 1
WAY, VALID, VALUES, TEXTS, CODES = range(5)
"""How a column is written, and where its buffers begin: bits for those rows that have a value; the
values, or where texts end; the texts.

A list holds the values of all fields that few rows have. Instead of bits, it has where the values
of each row end, and with each of them the number of its field."""
AS_TEXT, AS_JSON, AS_INT, AS_MOMENT, AS_BOOL, LISTED = range(6)
"""`LISTED` are fields that have no column, but values in a list, whose number is in `VALUES`."""
UNKNOWN = 0x30
"""Instead of a letter that is not known: one with which a date could begin."""


@compiled
def count_columns(
    buf: int,
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
                    facts[column, FIELD] = field
                    facts[column, KINDS] = 0
                    facts[column, CELLS] = 0
                    facts[column, BYTES] = 0
                    facts[column, ROW] = rows[r] + 1
                if rows[r] < facts[column, ROW]:
                    facts[column, ROW] = rows[r]
                    facts[column, PLACE] = cell - begin
                    letter = np.int64(UNKNOWN)
                    if cell_kind[cell] == TEXT:
                        empty = cell_start[cell] == cell_end[cell]
                        letter = np.int64(0) if empty else np.int64(byte(buf, cell_start[cell]))
                    facts[column, LETTER] = letter
                facts[column, KINDS] |= np.int64(1) << np.int64(cell_kind[cell])
                facts[column, CELLS] += 1
                facts[column, BYTES] += cell_end[cell] - cell_start[cell] + 2
        for column in range(last[group - 1] if group else 0, count):
            column_of[facts[column, FIELD]] = NONE
        last[group] = count
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
    last_list: np.ndarray,
    layout: np.ndarray,
    memory: np.ndarray,
) -> None:
    """Write all cells into the memory of their columns and lists; these come after the columns."""
    codes, offsets, ints = memory.view(np.uint16), memory.view(np.int32), memory.view(np.int64)
    cell_field, cell_kind, cell_start, cell_end = cells.field, cells.kind, cells.start, cells.end
    out = memory.ctypes.data
    at = layout[:, TEXTS].copy()  # where the next text of a column goes
    listed = np.zeros(len(layout), np.int64)  # how many values a list has by now
    begin_rows, begin_columns, begin_lists = 0, 0, len(fields)
    for group in range(len(ends)):
        for column in range(begin_columns, last[group]):
            column_of[fields[column]] = column
        for r in range(ends[group] - begin_rows):
            row = rows[begin_rows + r]
            for cell in range(first_cell[row], first_cell[row + 1]):
                column = np.int64(column_of[cell_field[cell]])
                kind, start, end = cell_kind[cell], cell_start[cell], cell_end[cell]
                to = r
                if layout[column, WAY] == LISTED:
                    column = layout[column, VALUES]
                    to = listed[column]
                    listed[column] += 1
                    codes[(layout[column, CODES] >> 1) + to] = cell_field[cell]
                    offsets[(layout[column, VALID] >> 2) + r + 1] += 1
                else:
                    memory[layout[column, VALID] + (r >> 3)] |= np.uint8(1 << (r & 7))
                way, values = layout[column, WAY], layout[column, VALUES]
                if way == AS_INT:
                    ints[(values >> 3) + to] = integer(buf, start, end)
                elif way == AS_MOMENT:
                    ints[(values >> 3) + to] = moment(buf, start, end)
                elif way == AS_BOOL:
                    if kind == TRUE:
                        memory[values + (to >> 3)] |= np.uint8(1 << (to & 7))
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
                    offsets[(values >> 2) + to + 1] = place - at[column]
                    at[column] = place
        for column in range(begin_columns, last[group]):
            column_of[fields[column]] = NONE
            if layout[column, WAY] <= AS_JSON:
                _add_up(offsets, layout[column, VALUES] >> 2, ends[group] - begin_rows)
        for column in range(begin_lists, len(fields) + last_list[group]):
            _add_up(offsets, layout[column, VALID] >> 2, ends[group] - begin_rows)
            if layout[column, WAY] <= AS_JSON:
                _add_up(offsets, layout[column, VALUES] >> 2, listed[column])
        begin_rows, begin_columns = ends[group], last[group]
        begin_lists = len(fields) + last_list[group]


@inlined
def _add_up(offsets: np.ndarray, first: int, count: int) -> None:
    """From sizes, each at the place after its own, to where each ends."""
    total = 0
    for place in range(first + 1, first + 1 + count):
        total += offsets[place]
        offsets[place] = total

"""Writes cells into batches: the rows of one table, row after row, with their values as written.

Memory layout of a batch: its numbers of rows, cells and value bytes, 64 bits each, followed by
sections with an entry for each row or cell:

    ids         16 bytes a row
    received    8 bytes a row: microseconds since 1970
    files, lines, cells, bytes
                4 bytes a row, each: where the row is from, and how many cells and bytes it has
    codes       4 bytes a cell: the number of its field in the batch, and the bits `LOST` (another
                field has its column in this row) and `IS_TEXT`
    lengths     1 byte a cell; 255 says that 4 bytes before the value have its length
    values      the bytes of all values: texts as they are meant, others as JSON
"""

from typing import NamedTuple

import numpy as np

from eventlake.columnar.cells import Cells
from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.fields import NONE
from eventlake.columnar.memory import copy, eight, put, put_eight, put_four
from eventlake.columnar.text import unescaped
from eventlake.columnar.timestamps import NO_DATE, timestamp
from eventlake.columnar.values import DATE, ESCAPED, LOOSE_ARRAY, TEXT, tight

HEAD = 24
PER_ROW, PER_CELL = 40, 5
LONG = 255
KINDS, ROW, PLACE = range(3)
"""Facts of a field of a table: a bit per kind of cell, the first row, and the position in it."""
FACTS = 3
LOST, IS_TEXT, FIELD_SHIFT = 2, 1, 2
"""The flags of a code."""
ALONE, NO_COLUMN = 0, -1
"""Of a field: nothing else goes to its column, or it has none; other numbers are those of columns
that several fields go to."""


class Origins(NamedTuple):
    """The origins of rows, in the order of writing."""

    ids: np.ndarray
    received: np.ndarray
    files: np.ndarray
    lines: np.ndarray


@compiled
def find_fields(
    rows: np.ndarray,
    ends: np.ndarray,
    first_cell: np.ndarray,
    field: np.ndarray,
    local_of: np.ndarray,
    found: np.ndarray,
    last: np.ndarray,
) -> int:
    """Find the fields of tables whose rows end at `ends`; returns their number.

    The fields of each table are in `found`, up to its entry in `last`. If the number exceeds the
    size of `found`, it is incomplete. `local_of` is scratch memory: NONE for every field, before
    and after.
    """
    count: int = np.int64(0)
    begin: int = np.int64(0)
    begin_fields: int = np.int64(0)
    for table in range(len(ends)):
        for r in range(begin, ends[table]):
            for cell in range(first_cell[rows[r]], first_cell[rows[r] + 1]):
                if local_of[field[cell]] == NONE:
                    if count < len(found):
                        local_of[field[cell]] = 0
                        found[count] = field[cell]
                    count += 1
        for number in range(begin_fields, min(count, len(found))):
            local_of[found[number]] = NONE
        last[table] = count
        begin, begin_fields = ends[table], min(count, len(found))
    return count


@inlined
def put_short(out: int, at: int, buf: int, start: int, length: int) -> None:
    """Copy bytes; always reads and writes up to 16 bytes, whatever the length."""
    if length <= 16:
        put_eight(out, at, eight(buf, start))
        put_eight(out, at + 8, eight(buf, start + 8))
    else:
        copy(out, at, buf, start, length)


@compiled
def write_batches(
    buf: int,
    rows: np.ndarray,
    batch_ends: np.ndarray,
    table_ends: np.ndarray,
    first_cell: np.ndarray,
    cells: Cells,
    origins: Origins,
    local_of: np.ndarray,
    fields: np.ndarray,
    last_field: np.ndarray,
    rival: np.ndarray,
    spelled: np.ndarray,
    rivals: int,
    facts: np.ndarray,
    begins: np.ndarray,
    out: int,
    sizes: np.ndarray,
) -> None:
    """Write batches from `begins` on; `sizes` gets the size of each.

    `batch_ends` and `table_ends` are the ends of their rows; the fields of each table end at
    `last_field`. `rival` has a number for each of these fields, see `ALONE`; `rivals` is the
    largest. If several fields of a row go to one column, the first one `spelled` like the column
    gets it, otherwise the first one. Up to 16 bytes more than needed may be written.
    """
    cell_field, cell_kind, cell_start, cell_end = cells.field, cells.kind, cells.start, cells.end
    ids, received, files, lines = origins.ids, origins.received, origins.files, origins.lines
    winner = np.full(rivals + 1, -1, np.int64)  # cells; those of earlier rows are ignored
    batch, first, base = np.int64(0), np.int64(0), np.int64(0)
    for table in range(len(table_ends)):
        contested = False
        for local in range(base, last_field[table]):
            local_of[fields[local]] = local - base
            contested |= rival[local] != ALONE
        while batch < len(batch_ends) and batch_ends[batch] <= table_ends[table]:
            end = batch_ends[batch]
            count, total = end - first, np.int64(0)
            for r in range(first, end):
                total += first_cell[rows[r] + 1] - first_cell[rows[r]]
            at_id = out + begins[batch] + HEAD
            at_received = at_id + 16 * count
            at_file = at_received + 8 * count
            at_line, at_cells, at_bytes = (
                at_file + 4 * count,
                at_file + 8 * count,
                at_file + 12 * count,
            )
            code = at_file + 16 * count
            length = code + 4 * total
            values = length + total
            v = values
            for r in range(first, end):
                row, begin_row = rows[r], v
                begin, stop = first_cell[row], first_cell[row + 1]
                if contested:
                    for cell in range(begin, stop):
                        local = base + local_of[cell_field[cell]]
                        number = rival[local]
                        if number > 0:
                            best = winner[number]
                            if (
                                best < begin
                                or best >= stop
                                or (
                                    spelled[local]
                                    and not spelled[base + local_of[cell_field[best]]]
                                )
                            ):
                                winner[number] = cell
                for cell in range(begin, stop):
                    local = np.int64(local_of[cell_field[cell]])
                    kind, start = np.int64(cell_kind[cell]), np.int64(cell_start[cell])
                    size = np.int64(cell_end[cell]) - start
                    long = size >= LONG
                    if long:
                        v += 4
                    if kind < ESCAPED:
                        put_short(v, 0, buf, start, size)
                    elif kind == ESCAPED:
                        size = unescaped(buf, start, start + size, v, 0)
                        is_date = timestamp(v, 0, size)[0] != NO_DATE
                        kind = np.int64(DATE) if is_date else np.int64(TEXT)
                    elif kind == LOOSE_ARRAY:
                        size = tight(buf, start, start + size, v, 0)
                    else:
                        put_short(v, 0, buf, start, size)
                    if long:
                        put_four(v, -4, size)
                        put(length, 0, LONG)
                    else:
                        put(length, 0, size)
                    v += size
                    length += 1
                    coded = local << FIELD_SHIFT | np.int64(kind <= DATE)
                    number = rival[base + local]
                    if number != ALONE and (number < 0 or winner[number] != cell):
                        coded |= LOST
                    else:
                        facts[base + local, KINDS] |= np.int64(1) << kind
                        if row < facts[base + local, ROW]:
                            facts[base + local, ROW] = row
                            facts[base + local, PLACE] = cell - begin
                    put_four(code, 0, coded)
                    code += 4
                k = r - first
                put_eight(at_id, 16 * k, ids[r, 0])
                put_eight(at_id, 16 * k + 8, ids[r, 1])
                put_eight(at_received, 8 * k, received[r])
                put_four(at_file, 4 * k, files[r])
                put_four(at_line, 4 * k, lines[r])
                put_four(at_cells, 4 * k, stop - begin)
                put_four(at_bytes, 4 * k, v - begin_row)
            put_eight(out, begins[batch], count)
            put_eight(out, begins[batch] + 8, total)
            put_eight(out, begins[batch] + 16, v - values)
            sizes[batch] = v - out - begins[batch]
            first = end
            batch += 1
        for local in range(base, last_field[table]):
            local_of[fields[local]] = NONE
        base = last_field[table]

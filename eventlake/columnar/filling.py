"""Casts cells straight into typed columns: a pass that counts, then a pass that fills.

The compiled form of `rules/casts.py`.
"""

from typing import NamedTuple

import numpy as np

from eventlake.columnar.batches import FIELD_SHIFT, IS_TEXT, LONG, LOST, put_short
from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import byte, copy, four, put, put_eight, put_four
from eventlake.columnar.numbers import EXACT, FAILED, LOSSY, bigint, decimal
from eventlake.columnar.text import put_json
from eventlake.columnar.timestamps import NO_DATE, timestamp

STRING, BIGINT, TIMESTAMP, DECIMAL, BOOLEAN = range(5)
"""Codes of column types."""
TYPE, VALID, VALUES, TEXTS, ROWS, FILLED, USED, NEXT, LOST_SOME, FAILED_AT_ALL = range(10)
"""The entries of a column: its type; the addresses of the validity bits, of the values or offsets,
of the text, and, if it is sparse, of the rows with a value (else 0); the numbers of values and of
text bytes; the row up to which offsets are written; the numbers of lossy and of failed values."""
COLUMN = 10
CELLS, BYTES = range(2)
IGNORED = -2
"""A field whose values are ignored. With NO_COLUMN, they are rescued."""


class StagedRows(NamedTuple):
    """Rows in the order of writing: the addresses of their parts."""

    codes: np.ndarray
    lengths: np.ndarray
    values: np.ndarray
    cells: np.ndarray  # and how many there are
    bytes: np.ndarray
    fields: np.ndarray  # start of the columns of the fields of its batch


class Rescue(NamedTuple):
    """The text of `rescued_data`: memory, and the prefix of values by field."""

    texts: int
    room: int
    ends: int
    valid: int
    names: int
    name_ends: np.ndarray
    longest: int  # of the names


@inlined
def put_bit(bits: int, at: int) -> None:
    put(bits, at >> 3, byte(bits, at >> 3) | np.uint8(1) << np.uint8(at & 7))


@compiled
def count_cells(rows: StagedRows, column_of: np.ndarray, found: np.ndarray) -> None:
    """Count the cells of each column, and their bytes."""
    for r in range(len(rows.cells)):
        codes, lengths, v = rows.codes[r], rows.lengths[r], rows.values[r]
        base = rows.fields[r]
        for k in range(rows.cells[r]):
            code = four(codes, 4 * k)
            length = np.int64(byte(lengths, k))
            if length == LONG:
                length = four(v, 0)
                v += 4
            v += length
            if code & LOST == 0:
                column = column_of[base + (code >> FIELD_SHIFT)]
                if column >= 0:
                    found[column, CELLS] += 1
                    found[column, BYTES] += length


@inlined
def _quoted(buf: int, start: int, end: int, out: int, at: int) -> int:
    put(out, at, 0x22)
    at += 1
    for i in range(start, end):
        c = byte(buf, i)
        if c < 0x20 or c == 0x22 or c == 0x5C:
            at = put_json(out, at, np.int64(c))
        else:
            put(out, at, c)
            at += 1
    put(out, at, 0x22)
    return at + 1


@inlined
def _is_word(buf: int, start: int, end: int, word: np.ndarray) -> bool:
    if end - start != len(word):
        return False
    for k in range(len(word)):
        c = byte(buf, start + k)
        if (c | 0x20 if 0x41 <= c <= 0x5A else c) != word[k]:
            return False
    return True


_TRUE, _FALSE = np.frombuffer(b"true", np.uint8), np.frombuffer(b"false", np.uint8)


@inlined
def _cast(type: int, buf: int, start: int, end: int, values: int, slot: int) -> int:
    """Cast a nonempty text, or another value, to a type other than string."""
    if type == BIGINT:
        whole, outcome = bigint(buf, start, end)
        put_eight(values, 8 * slot, whole)
        return outcome
    if type == DECIMAL:
        high, low, outcome = decimal(buf, start, end)
        put_eight(values, 16 * slot, low)
        put_eight(values, 16 * slot + 8, high)
        return outcome
    if type == TIMESTAMP:
        micros, cut = timestamp(buf, start, end)
        put_eight(values, 8 * slot, micros)
        if micros == NO_DATE:
            return np.int64(FAILED)
        return np.int64(LOSSY) if cut else np.int64(EXACT)
    if _is_word(buf, start, end, _TRUE):
        put_bit(values, slot)
        return np.int64(EXACT)
    return np.int64(EXACT) if _is_word(buf, start, end, _FALSE) else np.int64(FAILED)


@compiled
def cast_texts(
    buf: int, offsets: np.ndarray, type: int, values: np.ndarray, outcomes: np.ndarray
) -> None:
    """Cast adjacent texts; none is empty, and all validity bits are clear."""
    for text in range(len(outcomes)):
        start, end = np.int64(offsets[text]), np.int64(offsets[text + 1])
        outcomes[text] = _cast(type, buf, start, end, values.ctypes.data, text)


@compiled
def fill_columns(
    rows: StagedRows,
    first: int,
    column_of: np.ndarray,
    columns: np.ndarray,
    rescue: Rescue,
    state: np.ndarray,
) -> int:
    """Cast the cells of rows from `first` on; returns the row that does not fit into `rescue`.

    `state` has the numbers of bytes, values and rows of `rescued_data`.
    """
    count = len(rows.cells)
    used, rescued, rescued_rows = state[0], state[1], state[2]
    for r in range(first, count):
        codes, lengths = rows.codes[r], rows.lengths[r]
        base, cells = rows.fields[r], rows.cells[r]
        begin = used
        lost = False
        if used + 6 * rows.bytes[r] + cells * (rescue.longest + 4) + 4 > rescue.room:
            state[0], state[1], state[2] = used, rescued, rescued_rows
            return r
        for again in range(2):
            if again == 1 and not lost:
                break
            v = rows.values[r]
            for k in range(cells):
                code = four(codes, 4 * k)
                length = np.int64(byte(lengths, k))
                if length == LONG:
                    length = four(v, 0)
                    v += 4
                start, end = v, v + length
                v = end
                field = base + (code >> FIELD_SHIFT)
                column = np.int64(column_of[field])
                if code & LOST != 0 or column < 0:
                    if column == IGNORED:
                        continue
                    lost = True
                    if again == 0:
                        continue
                    outcome = np.int64(FAILED)
                elif again == 1:
                    continue
                else:
                    type = columns[column, TYPE]
                    dense = columns[column, ROWS] == 0
                    slot = r if dense else columns[column, FILLED]
                    if type == STRING:
                        at = columns[column, USED]
                        put_short(columns[column, TEXTS], at, start, 0, length)
                        offsets = columns[column, VALUES]
                        if dense:
                            for row in range(columns[column, NEXT], r):
                                put_four(offsets, 4 * (row + 1), at)
                            columns[column, NEXT] = r + 1
                        put_four(offsets, 4 * (slot + 1), at + length)
                        columns[column, USED] = at + length
                        outcome = np.int64(EXACT)
                    elif length == 0:
                        continue  # an empty text is null
                    else:
                        outcome = _cast(type, start, 0, length, columns[column, VALUES], slot)
                    if outcome != FAILED:
                        if dense:
                            put_bit(columns[column, VALID], r)
                        else:
                            put_eight(columns[column, ROWS], 8 * slot, r)
                        columns[column, FILLED] += 1
                        if outcome == EXACT:
                            continue
                        columns[column, LOST_SOME] += 1
                    else:
                        columns[column, FAILED_AT_ALL] += 1
                name = rescue.name_ends[field]
                size = rescue.name_ends[field + 1] - name
                put(rescue.texts, used, 0x7B if used == begin else 0x2C)
                copy(rescue.texts, used + 1, rescue.names, name, size)
                used += 1 + size
                if code & IS_TEXT:
                    used = _quoted(start, 0, length, rescue.texts, used)
                else:
                    copy(rescue.texts, used, start, 0, length)
                    used += length
                rescued += 1
        if used > begin:
            put(rescue.texts, used, 0x7D)
            used += 1
            rescued_rows += 1
            put_bit(rescue.valid, r)
        put_four(rescue.ends, 4 * (r + 1), used)
    state[0], state[1], state[2] = used, rescued, rescued_rows
    for column in range(len(columns)):
        if columns[column, TYPE] == STRING and columns[column, ROWS] == 0:
            for row in range(columns[column, NEXT], count):
                put_four(columns[column, VALUES], 4 * (row + 1), columns[column, USED])
    return count

"""The columns of a table in memory, and the selection of values for a file."""

from typing import NamedTuple

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import byte, eight, first_one, four, ones, put_four

TEXT, NUMBER, DECIMAL, TRUTH = range(4)
"""The memory layout of values: offsets and bytes, 8 bytes, 16 bytes, or a bit each."""
DECIMAL_BYTES = 16
WORD = 64  # bits


class Column(NamedTuple):
    """A column; addresses of missing parts are 0."""

    kind: int
    valid: int  # the address of the validity bits; 0: all rows have a value
    values: int  # an address
    offsets: int  # an address, of texts
    first: int  # the index of the first value of the column
    rows: int  # of a sparse column: the address of the rows with a value, 8 bytes each
    count: int  # and their number
    name: int  # an address
    name_size: int


class Values(NamedTuple):
    """The values of a column for a file: adjacent, or at given indices."""

    count: int
    base: int
    places: int  # the address of indices, four bytes each; 0: adjacent from `base` on


@inlined
def column_at(columns: np.ndarray, number: int) -> Column:
    """A column from an array with one line of numbers per column."""
    return Column(
        columns[number, 0],
        columns[number, 1],
        columns[number, 2],
        columns[number, 3],
        columns[number, 4],
        columns[number, 5],
        columns[number, 6],
        columns[number, 7],
        columns[number, 8],
    )


@inlined
def place(values: Values, number: int) -> int:
    """The index of a value in its column."""
    if values.places:
        return four(values.places, 4 * number)
    return values.base + number


@inlined
def offset_of(column: Column, at: int) -> int:
    """The start of the text at an index, and the end of the text before it."""
    return four(column.offsets, 4 * at)


@inlined
def bit(address: int, at: int) -> bool:
    return byte(address, at >> 3) >> np.uint8(at & 7) & np.uint8(1) != 0


@inlined
def bits_at(address: int, at: int, count: int) -> int:
    """Up to 64 bits from a position on; reads no bytes beyond them."""
    begin, shift = at >> 3, np.uint64(at & 7)
    if count == WORD:
        word = eight(address, begin) >> shift
        if shift:
            word |= np.uint64(byte(address, begin + 8)) << (np.uint64(64) - shift)
        return word
    size: int = (np.int64(shift) + count + 7) >> 3
    word = np.uint64(0)
    for k in range(min(size, 8)):
        word |= np.uint64(byte(address, begin + k)) << np.uint64(8 * k)
    word >>= shift
    if size > 8:
        word |= np.uint64(byte(address, begin + 8)) << (np.uint64(64) - shift)
    return word & ((np.uint64(1) << np.uint64(count)) - np.uint64(1))


@inlined
def first_at_least(rows: int, count: int, row: int) -> int:
    """The number of rows of a sparse column before a row."""
    low, high = np.int64(0), np.int64(count)
    while low < high:
        middle = (low + high) >> 1
        if np.int64(eight(rows, 8 * middle)) < row:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def values_of(column: Column, start: int, end: int, places: int) -> Values:
    """The values of the rows from `start` to `end`; `places` is memory for their indices."""
    if column.rows:
        low = first_at_least(column.rows, column.count, start)
        high = first_at_least(column.rows, column.count, end)
        return Values(high - low, column.first + low, 0)
    if not column.valid:
        return Values(end - start, column.first + start, 0)
    count = np.int64(0)
    row = start
    while row < end:
        some = min(WORD, end - row)
        count += ones(bits_at(column.valid, column.first + row, some))
        row += some
    if count == 0 or count == end - start:
        return Values(count, column.first + start, 0)
    at = np.int64(0)
    row = start
    while row < end:
        some = min(WORD, end - row)
        word = bits_at(column.valid, column.first + row, some)
        while word:
            put_four(places, at, column.first + row + first_one(word))
            at += 4
            word &= word - np.uint64(1)
        row += some
    return Values(count, 0, places)


CODEC, NULLS, LOWEST, HIGHEST, ENTRIES, FIRST_PAGE, PAGES, BEGIN, DATA, UNPACKED, PACKED = range(11)
"""Of a column: its codec, the number of its nulls, where its lowest and highest values lie (-1 if
there is none), entries of its dictionary (0 if it has none), its pages by line and number, where
they and those of data begin in the file, and their bytes before and after they were packed."""
COLUMN_FACTS = 11

PAGE_CODEC, IS_DICTIONARY, COUNT, SIZE, PACKED_AT, PACKED_SIZE = range(6)
"""Of a page: its codec, whether it is the dictionary itself, how many values it has,
its size before, where it lies, and its size there."""
PAGE_FACTS = 6

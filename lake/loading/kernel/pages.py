"""A column of a file as one page of Parquet: which rows have a value, and the values."""

from typing import NamedTuple

import numpy as np

from lake.loading.kernel.thrift import INT, put_end, put_number, put_struct, put_varint
from lake.staging.kernel.compiled import compiled, inlined
from lake.staging.kernel.memory import byte, copy, eight, put

TEXT, NUMBER, DECIMAL, TRUTH = range(4)
"""How values lie in memory: offsets and bytes, 8 bytes each, 16 bytes each, a bit each."""
DECIMAL_BYTES = 16
HEADER = 64
"""Bytes that the header of a page may have."""
_RLE = 3  # the encoding of levels


class Columns(NamedTuple):
    """All columns of a table as they lie in memory; each a number in every array."""

    kind: np.ndarray
    valid: np.ndarray  # the address of the bits that say which rows have a value; 0: all of them
    values: np.ndarray  # an address
    offsets: np.ndarray  # an address, of texts
    first: np.ndarray  # the row at which the column begins there


class Page(NamedTuple):
    """What became of a column in a file."""

    size: int
    nulls: int
    lowest: int  # the row of the lowest value, -1 if there is none
    highest: int


@inlined
def bit(address: int, place: int) -> bool:
    return byte(address, place >> 3) >> np.uint8(place & 7) & np.uint8(1) != 0


@inlined
def offset_of(columns: Columns, column: int, row: int) -> int:
    """Where the text of a row begins, and that of the row before it ends."""
    return four_bytes(columns.offsets[column], 4 * (columns.first[column] + row))


@inlined
def four_bytes(address: int, place: int) -> int:
    """Four bytes as a number."""
    return (
        np.int64(byte(address, place))
        | np.int64(byte(address, place + 1)) << 8
        | np.int64(byte(address, place + 2)) << 16
        | np.int64(byte(address, place + 3)) << 24
    )


@compiled
def page_body(columns: Columns, column: int, start: int, end: int, out: int) -> Page:
    """Write levels and values of some rows, uncompressed, from the beginning of `out` on."""
    valid, base = columns.valid[column], columns.first[column]
    nulls = 0
    if valid:
        for row in range(start, end):
            if not bit(valid, base + row):
                nulls += 1
    at = _put_levels(valid, base, start, end, nulls, out)
    kind, values = columns.kind[column], columns.values[column]
    lowest, highest = np.int64(-1), np.int64(-1)
    bits, count = 0, 0
    for row in range(start, end):
        if nulls and not bit(valid, base + row):
            continue
        if kind == TEXT:
            begin = offset_of(columns, column, row)
            size = offset_of(columns, column, row + 1) - begin
            put_four(out, at, size)
            copy(out, at + 4, values, begin, size)
            at += 4 + size
        elif kind == NUMBER:
            copy(out, at, values, 8 * (base + row), 8)
            at += 8
        elif kind == DECIMAL:  # the highest byte comes first
            last = DECIMAL_BYTES * (base + row + 1) - 1
            for k in range(DECIMAL_BYTES):
                put(out, at + k, byte(values, last - k))
            at += DECIMAL_BYTES
            continue
        else:
            if bit(values, base + row):
                bits |= 1 << (count & 7)
            count += 1
            if count & 7 == 0:
                put(out, at, bits)
                at += 1
                bits = 0
            continue
        if lowest < 0:
            lowest, highest = row, row
        elif _is_less(columns, column, row, lowest):
            lowest = row
        elif _is_less(columns, column, highest, row):
            highest = row
    if count & 7:
        put(out, at, bits)
        at += 1
    return Page(at, nulls, lowest, highest)


@inlined
def put_four(out: int, at: int, number: int) -> None:
    for k in range(4):
        put(out, at + k, number >> (8 * k) & 0xFF)


@inlined
def _put_levels(valid: int, base: int, start: int, end: int, nulls: int, out: int) -> int:
    """Which rows have a value: as one run if all are alike, else a bit for each."""
    rows = end - start
    at = 4  # their length comes first
    if nulls == 0 or nulls == rows:
        at = put_varint(out, at, rows << 1)
        put(out, at, 0 if nulls else 1)
        at += 1
    else:
        groups = (rows + 7) >> 3
        at = put_varint(out, at, groups << 1 | 1)
        for group in range(groups):
            bits = 0
            for k in range(min(8, rows - 8 * group)):
                if bit(valid, base + start + 8 * group + k):
                    bits |= 1 << k
            put(out, at, bits)
            at += 1
    put_four(out, 0, at - 4)
    return at


@inlined
def _is_less(columns: Columns, column: int, one: int, other: int) -> bool:
    """Whether a row has a lower value than another: numbers as such, texts by their bytes."""
    values = columns.values[column]
    if columns.kind[column] == NUMBER:
        base = columns.first[column]
        left, right = eight(values, 8 * (base + one)), eight(values, 8 * (base + other))
        return np.int64(left) < np.int64(right)
    a, b = offset_of(columns, column, one), offset_of(columns, column, other)
    a_end, b_end = offset_of(columns, column, one + 1), offset_of(columns, column, other + 1)
    while a < a_end and b < b_end:
        x, y = byte(values, a), byte(values, b)
        if x != y:
            return x < y
        a += 1
        b += 1
    return b < b_end


@inlined
def put_page_header(out: int, at: int, rows: int, size: int, packed: int) -> int:
    at = put_number(out, at, 1, INT, 0)  # a page of data
    at = put_number(out, at, 1, INT, size)
    at = put_number(out, at, 1, INT, packed)
    at = put_struct(out, at, 2)
    at = put_number(out, at, 1, INT, rows)
    at = put_number(out, at, 1, INT, 0)  # values as they are
    at = put_number(out, at, 1, INT, _RLE)
    at = put_number(out, at, 1, INT, _RLE)
    return put_end(out, put_end(out, at))

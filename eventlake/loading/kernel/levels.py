"""Which rows of a page have a value: Parquet's definition levels, in runs or a bit for each."""

import numpy as np

from eventlake.loading.kernel.columns import WORD, Column, Values, bits_at
from eventlake.loading.kernel.thrift import put_varint
from eventlake.staging.kernel.compiled import compiled, inlined
from eventlake.staging.kernel.memory import byte, eight, four, put, put_eight, put_four

_RUN = 6  # bytes that a row with a value takes, and those without before it, at most


@compiled
def put_levels(column: Column, values: Values, start: int, end: int, out: int) -> int:
    """Write them from the beginning of `out` on, after their length; the place after them."""
    rows = end - start
    at = np.int64(4)
    if values.count == 0 or values.count == rows:
        at = _put_run(out, at, rows, values.count != 0)
    elif _RUN * values.count < rows >> 3:
        at = _put_runs(column, values, start, end, out, at)
    else:
        groups = (rows + 7) >> 3
        at = put_varint(out, at, groups << 1 | 1)
        _put_bits(column, values, start, end, out, at)
        at += groups
    put_four(out, 0, at - 4)
    return at


@inlined
def _put_run(out: int, at: int, rows: int, is_value: bool) -> int:
    at = put_varint(out, at, rows << 1)
    put(out, at, 1 if is_value else 0)
    return at + 1


@inlined
def _row(column: Column, values: Values, number: int) -> int:
    """The row of a value, of a column of which some have none."""
    if column.rows:
        return np.int64(eight(column.rows, 8 * (values.base - column.first + number)))
    return four(values.places, 4 * number) - column.first


@inlined
def _put_runs(column: Column, values: Values, start: int, end: int, out: int, at: int) -> int:
    row = np.int64(start)  # all before it are told
    number = np.int64(0)
    while number < values.count:
        found = _row(column, values, number)
        if found > row:
            at = _put_run(out, at, found - row, False)
        length = np.int64(1)
        number += 1
        while number < values.count and _row(column, values, number) == found + length:
            length += 1
            number += 1
        at = _put_run(out, at, length, True)
        row = found + length
    if end > row:
        at = _put_run(out, at, end - row, False)
    return at


@inlined
def _put_bits(column: Column, values: Values, start: int, end: int, out: int, at: int) -> None:
    row = start
    while row < end:
        some = min(WORD, end - row)
        word = np.uint64(0)
        if not column.rows:
            word = bits_at(column.valid, column.first + row, some)
        put_eight(out, at + ((row - start) >> 3), word)
        row += some
    if column.rows:
        for number in range(values.count):
            row = _row(column, values, number) - start
            bits = np.int64(byte(out, at + (row >> 3))) | np.int64(1) << (row & 7)
            put(out, at + (row >> 3), bits)

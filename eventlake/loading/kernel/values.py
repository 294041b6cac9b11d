"""Values as they are: Parquet's plain encoding, and the lowest and the highest of them."""

from typing import NamedTuple

import numpy as np

from eventlake.loading.kernel.columns import (
    DECIMAL,
    DECIMAL_BYTES,
    NUMBER,
    TEXT,
    WORD,
    Column,
    Values,
    bit,
    bits_at,
    offset_of,
    place,
)
from eventlake.loading.kernel.texts import copy_text, is_less, sort_key
from eventlake.staging.kernel.compiled import compiled, inlined
from eventlake.staging.kernel.memory import copy, eight, put_eight, put_four
from eventlake.staging.kernel.words import reversed_bytes

_SIGN = np.uint64(1 << 63)


class Bounds(NamedTuple):
    """Where the lowest and the highest value lie among those of the column."""

    lowest: int
    highest: int


@compiled
def plain_size(column: Column, values: Values) -> int:
    """Bytes that the values take as they are."""
    if column.kind == NUMBER:
        return 8 * values.count
    if column.kind == DECIMAL:
        return DECIMAL_BYTES * values.count
    if column.kind != TEXT:
        return (values.count + 7) >> 3
    size = 4 * values.count
    if values.places:
        for number in range(values.count):
            one = place(values, number)
            size += offset_of(column, one + 1) - offset_of(column, one)
    elif values.count:
        size += offset_of(column, values.base + values.count) - offset_of(column, values.base)
    return size


@compiled
def put_plain(column: Column, values: Values, out: int, at: int) -> int:
    """Write values from a place on; the place after them."""
    if column.kind == TEXT:
        for number in range(values.count):
            one = place(values, number)
            begin = offset_of(column, one)
            size = offset_of(column, one + 1) - begin
            put_four(out, at, size)
            copy_text(out, at + 4, column.values, begin, size)
            at += 4 + size
        return at
    if column.kind == NUMBER:
        if values.places:
            for number in range(values.count):
                put_eight(out, at + 8 * number, eight(column.values, 8 * place(values, number)))
        else:
            copy(out, at, column.values, 8 * values.base, 8 * values.count)
        return at + 8 * values.count
    if column.kind == DECIMAL:  # the highest byte comes first
        for number in range(values.count):
            begin = DECIMAL_BYTES * place(values, number)
            put_eight(out, at, reversed_bytes(eight(column.values, begin + 8)))
            put_eight(out, at + 8, reversed_bytes(eight(column.values, begin)))
            at += DECIMAL_BYTES
        return at
    return _put_truths(column, values, out, at)


@inlined
def _put_truths(column: Column, values: Values, out: int, at: int) -> int:
    number: int = np.int64(0)
    while number < values.count:
        some = min(WORD, values.count - number)
        word = np.uint64(0)
        if values.places:
            for k in range(some):
                if bit(column.values, place(values, number + k)):
                    word |= np.uint64(1) << np.uint64(k)
        else:
            word = bits_at(column.values, values.base + number, some)
        put_eight(out, at + (number >> 3), word)
        number += some
    return at + ((values.count + 7) >> 3)


@compiled
def bounds_of(column: Column, values: Values) -> Bounds:
    """The bounds of some values; there is at least one."""
    lowest = highest = place(values, 0)
    low = high = _key(column, lowest)
    for number in range(1, values.count):
        one = place(values, number)
        key = _key(column, one)
        if key < low or (key == low and _is_less(column, one, lowest)):
            low, lowest = key, one
        elif key > high or (key == high and _is_less(column, highest, one)):
            high, highest = key, one
    return Bounds(lowest, highest)


@inlined
def _key(column: Column, at: int) -> int:
    """A number that is in the order of the values, as far as their first 64 bits go."""
    if column.kind == NUMBER:
        return eight(column.values, 8 * at) ^ _SIGN
    if column.kind == TEXT:
        begin = offset_of(column, at)
        return sort_key(column.values, begin, offset_of(column, at + 1) - begin)
    if column.kind == DECIMAL:
        return eight(column.values, DECIMAL_BYTES * at + 8) ^ _SIGN
    return np.uint64(1) if bit(column.values, at) else np.uint64(0)


@inlined
def _is_less(column: Column, one: int, other: int) -> bool:
    """Of two values whose first 64 bits are the same."""
    if column.kind == TEXT:
        return is_less(
            column.values,
            offset_of(column, one),
            offset_of(column, one + 1),
            offset_of(column, other),
            offset_of(column, other + 1),
        )
    if column.kind == DECIMAL:
        left, right = DECIMAL_BYTES * one, DECIMAL_BYTES * other
        return eight(column.values, left) < eight(column.values, right)
    return False

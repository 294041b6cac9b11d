"""Parquet's plain encoding, and the minimum and maximum of values."""

from typing import NamedTuple

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import byte, copy, eight, put, put_eight, put_four, reversed_bytes
from eventlake.columnar.parquet.columns import (
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

_SHORT = 32  # bytes; longer ones are copied by the system


@inlined
def short_word(values: int, begin: int, size: int) -> int:
    """A text of less than eight bytes, padded with zeros."""
    if size <= 0:
        return np.uint64(0)
    end = begin + size
    if end >= 8:
        return eight(values, end - 8) >> np.uint64(8 * (8 - size))
    word = np.uint64(0)
    for k in range(size):
        word |= np.uint64(byte(values, begin + k)) << np.uint64(8 * k)
    return word


@inlined
def sort_key(values: int, begin: int, size: int) -> int:
    """A number that orders texts by their first eight bytes."""
    if size >= 8:
        return reversed_bytes(eight(values, begin))
    return reversed_bytes(short_word(values, begin, size))


@inlined
def hash_of(values: int, begin: int, size: int) -> int:
    """A hash of a text; its highest bits are the best."""
    found = np.uint64(size) * np.uint64(0x9E3779B97F4A7C15)
    other = found
    at, end = begin, begin + size
    while at + 16 <= end:  # two at a time, independent of each other
        found = _mixed(found, eight(values, at))
        other = _mixed(other, eight(values, at + 8))
        at += 16
    if at + 8 <= end:
        found = _mixed(found, eight(values, at))
    if size >= 8:
        return _mixed(found, other + eight(values, end - 8))
    return _mixed(found, short_word(values, begin, size))


@inlined
def _mixed(found: int, word: int) -> int:
    found = (found ^ word) * np.uint64(0xFF51AFD7ED558CCD)
    return found ^ found >> np.uint64(32)


@inlined
def is_same(values: int, one: int, other: int, size: int) -> bool:
    if size < 8:
        return short_word(values, one, size) == short_word(values, other, size)
    k = 0
    while k + 8 <= size:
        if eight(values, one + k) != eight(values, other + k):
            return False
        k += 8
    return eight(values, one + size - 8) == eight(values, other + size - 8)


@inlined
def is_less(values: int, one: int, one_end: int, other: int, other_end: int) -> bool:
    """Whether a text sorts before another, by bytes."""
    while one + 8 <= one_end and other + 8 <= other_end:
        a, b = eight(values, one), eight(values, other)
        if a != b:
            return reversed_bytes(a) < reversed_bytes(b)
        one += 8
        other += 8
    while one < one_end and other < other_end:
        x, y = byte(values, one), byte(values, other)
        if x != y:
            return x < y
        one += 1
        other += 1
    return other < other_end


@inlined
def copy_text(out: int, at: int, values: int, begin: int, size: int) -> None:
    """Copy a text; overwrites up to eight bytes behind it."""
    if size > _SHORT:
        copy(out, at, values, begin, size)
    elif size >= 8:
        k = 0
        while k < size - 8:
            put_eight(out, at + k, eight(values, begin + k))
            k += 8
        put_eight(out, at + size - 8, eight(values, begin + size - 8))
    elif begin + size >= 8:
        put_eight(out, at, short_word(values, begin, size))
    else:
        for k in range(size):
            put(out, at + k, byte(values, begin + k))


_SIGN = np.uint64(1 << 63)


class Bounds(NamedTuple):
    """The indices of the lowest and the highest value of the column."""

    lowest: int
    highest: int


@compiled
def plain_size(column: Column, values: Values) -> int:
    """The bytes of the values in plain encoding."""
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
    """Write values from an address on; returns the end."""
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
    """The bounds of at least one value."""
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
    """A number that orders values by their first 64 bits."""
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
    """Compare two values with equal first 64 bits."""
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

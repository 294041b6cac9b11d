"""Dictionary encoding: each distinct value once, and its number for every row."""

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import eight, four, put, put_eight, put_four
from eventlake.columnar.parquet.columns import (
    DECIMAL_BYTES,
    NUMBER,
    TEXT,
    Column,
    Values,
    offset_of,
    place,
)
from eventlake.columnar.parquet.footer import put_varint
from eventlake.columnar.parquet.values import hash_of, is_same

GIVEN_UP = -1
_TRIED = 32  # values; fewer do not show whether they repeat
_MIX = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)


def slots(rows: int) -> int:
    """The size of the hash table of a dictionary, in slots of eight bytes."""
    return 1 << max(8, (rows + 2 * _TRIED).bit_length())


@compiled
def find_entries(column: Column, values: Values, table: int, entries: int, numbers: int) -> int:
    """Write the index of each entry, and the entry of each value; returns the number of entries.

    Stops as soon as more than half of the values were new.
    """
    bits = 8
    while (1 << bits) < values.count + 2 * _TRIED:
        bits += 1
    for slot in range(1 << bits):
        put_eight(table, 8 * slot, np.uint64(0))
    shift, mask = np.uint64(64 - bits), np.int64(1 << bits) - 1
    count = np.int64(0)
    for number in range(values.count):
        one = place(values, number)
        found = _hash(column, one)
        slot = np.int64(found >> shift)
        mark = found << np.uint64(32)
        while True:
            # The lower half of a hash, and the number of an entry, starting at 1.
            there = eight(table, 8 * slot)
            if there == np.uint64(0):
                if count > _TRIED + (number >> 1):
                    return GIVEN_UP
                put_four(entries, 4 * count, one)
                put_four(numbers, 4 * number, count)
                count += 1
                put_eight(table, 8 * slot, mark | np.uint64(count))
                break
            if (there & ~_LOW) == mark:
                entry = np.int64(there & _LOW) - 1
                if _is_same(column, four(entries, 4 * entry), one):
                    put_four(numbers, 4 * number, entry)
                    break
            slot = (slot + 1) & mask
    return count if 2 * count <= values.count else GIVEN_UP


@inlined
def _hash(column: Column, at: int) -> int:
    if column.kind == TEXT:
        begin = offset_of(column, at)
        return hash_of(column.values, begin, offset_of(column, at + 1) - begin)
    if column.kind == NUMBER:
        found = eight(column.values, 8 * at)
    else:
        begin = DECIMAL_BYTES * at
        found = eight(column.values, begin) * _MIX ^ eight(column.values, begin + 8)
    found *= _MIX
    return (found ^ found >> np.uint64(29)) * _MIX


@inlined
def _is_same(column: Column, one: int, other: int) -> bool:
    if column.kind == TEXT:
        begin, other_begin = offset_of(column, one), offset_of(column, other)
        size = offset_of(column, one + 1) - begin
        if size != offset_of(column, other + 1) - other_begin:
            return False
        return is_same(column.values, begin, other_begin, size)
    if column.kind == NUMBER:
        return eight(column.values, 8 * one) == eight(column.values, 8 * other)
    left, right = DECIMAL_BYTES * one, DECIMAL_BYTES * other
    return eight(column.values, left) == eight(column.values, right) and eight(
        column.values, left + 8
    ) == eight(column.values, right + 8)


@compiled
def put_numbers(numbers: int, count: int, entries: int, out: int, at: int) -> int:
    """Write the numbers of entries with the smallest bit width; returns the end."""
    width = 1  # not all readers support a width of 0 bits
    while (1 << width) < entries:
        width += 1
    put(out, at, width)
    at += 1
    if entries == 1:
        at = put_varint(out, at, count << 1)
        put(out, at, 0)
        return at + 1
    groups = (count + 7) >> 3
    at = put_varint(out, at, groups << 1 | 1)
    word, bits = np.uint64(0), 0
    begin = at
    for number in range(count):
        word |= np.uint64(four(numbers, 4 * number)) << np.uint64(bits)
        bits += width
        if bits >= 32:
            put_four(out, at, word)
            at += 4
            word >>= np.uint64(32)
            bits -= 32
    # The last group is filled up with zeros: it has a byte for each bit of a number, of at most 16.
    put_eight(out, at, word)
    put_eight(out, at + 8, np.uint64(0))
    put_eight(out, at + 16, np.uint64(0))
    return begin + groups * width

"""Texts by words of eight bytes, of which none is read that lies behind their memory."""

import numpy as np

from eventlake.staging.kernel.compiled import inlined
from eventlake.staging.kernel.memory import byte, copy, eight, put, put_eight
from eventlake.staging.kernel.words import reversed_bytes

_SHORT = 32  # bytes; more are copied by the system


@inlined
def short_word(values: int, begin: int, size: int) -> int:
    """A text of less than eight bytes, then zeros."""
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
    """A number by which texts that begin differently are in order."""
    if size >= 8:
        return reversed_bytes(eight(values, begin))
    return reversed_bytes(short_word(values, begin, size))


@inlined
def hash_of(values: int, begin: int, size: int) -> int:
    """A number that is the same for the same text; its highest bits are the best."""
    found = np.uint64(size) * np.uint64(0x9E3779B97F4A7C15)
    other = found
    at, end = begin, begin + size
    while at + 16 <= end:  # two at a time, of which none has to wait for the other
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
    """Whether a text comes before another, by their bytes."""
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
    """Copy a text; up to eight bytes behind it are overwritten."""
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

"""Snappy compression."""

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import copy, eight, first_one, put, put_eight
from eventlake.columnar.parquet.footer import put_varint

MOST_BITS = 12
TABLE = 1 << MOST_BITS
"""Places that are remembered, by a hash of the four bytes that stand there."""
PADDING = 16
"""Bytes behind the text that can be read, whatever stands there, and written behind the result."""

_FRAGMENT = 1 << 16  # places are told within it
_MARGIN = 15  # at its end nothing is looked for
_SHORT = 20  # bytes in which nothing is found that would be worth the search
_FOUR = np.uint64(0xFFFFFFFF)
_HASH = np.uint64(0x1E35A7BD)


def most_bytes(size: int) -> int:
    """So many at most become of a text."""
    return 32 + PADDING + size + size // 6


@compiled
def compress(source: int, size: int, out: int, at: int, table: np.ndarray) -> int:
    """Write a text, which begins at an address; the place after it. The table is room to work."""
    at = put_varint(out, at, size)
    start = 0
    while start < size:
        end = min(start + _FRAGMENT, size)
        at = _compress_fragment(source, start, end, out, at, table)
        start = end
    return at


@compiled
def _compress_fragment(
    source: int, start: int, end: int, out: int, at: int, table: np.ndarray
) -> int:
    if end - start <= _SHORT:
        return _put_literal(source, start, end, out, at)
    bits = 8
    while bits < MOST_BITS and (1 << bits) < end - start:
        bits += 1
    shift = np.uint64(32 - bits)
    table[: 1 << bits] = 0
    i, limit = start + 1, end - _MARGIN
    written = start  # all before it
    while i < limit:
        # Where nothing is found for long, look at fewer and fewer places.
        step = 32
        found = np.int64(-1)
        while i < limit:
            word = eight(source, i) & _FOUR
            slot = ((word * _HASH) & _FOUR) >> shift  # unsigned: it cannot count from the end
            before = start + np.int64(table[slot])
            table[slot] = i - start
            if before < i and eight(source, before) & _FOUR == word:
                found = before
                break
            i += step >> 5
            step += 1
        if found < 0:
            break
        at = _put_literal(source, written, i, out, at)
        length = _matched(source, found, i, end)
        at = _put_copy(out, at, i - found, length)
        i += length
        written = i
        if i < limit:
            word = eight(source, i - 1) & _FOUR
            table[((word * _HASH) & _FOUR) >> shift] = i - 1 - start
    return _put_literal(source, written, end, out, at)


@inlined
def _matched(source: int, one: int, other: int, end: int) -> int:
    """How long two places are the same, of which the latter may go on up to an end."""
    length = 4
    while other + length < end:
        unlike = eight(source, one + length) ^ eight(source, other + length)
        if unlike:
            length += first_one(unlike) >> 3
            break
        length += 8
    return min(length, end - other)


@inlined
def _put_literal(source: int, start: int, end: int, out: int, at: int) -> int:
    size = end - start
    if size == 0:
        return at
    if size <= 60:
        put(out, at, (size - 1) << 2)
        at += 1
    elif size <= 256:
        put(out, at, 60 << 2)
        put(out, at + 1, size - 1)
        at += 2
    else:
        put(out, at, 61 << 2)
        put(out, at + 1, (size - 1) & 0xFF)
        put(out, at + 2, (size - 1) >> 8)
        at += 3
    if size <= PADDING:
        put_eight(out, at, eight(source, start))
        put_eight(out, at + 8, eight(source, start + 8))
    else:
        copy(out, at, source, start, size)
    return at + size


@inlined
def _put_copy(out: int, at: int, offset: int, length: int) -> int:
    while length >= 68:
        at = _put_long_copy(out, at, offset, 64)
        length -= 64
    if length > 64:
        at = _put_long_copy(out, at, offset, 60)
        length -= 60
    if length < 12 and offset < 2048:
        put(out, at, 1 | (length - 4) << 2 | (offset >> 8) << 5)
        put(out, at + 1, offset & 0xFF)
        return at + 2
    return _put_long_copy(out, at, offset, length)


@inlined
def _put_long_copy(out: int, at: int, offset: int, length: int) -> int:
    put(out, at, 2 | (length - 1) << 2)
    put(out, at + 1, offset & 0xFF)
    put(out, at + 2, offset >> 8)
    return at + 3

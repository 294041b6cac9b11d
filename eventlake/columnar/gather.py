"""Joins rows of several parts, all columns at once, in a given order."""

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import byte, copy, eight, four, ones, put, put_eight, put_four
from eventlake.columnar.parquet.columns import WORD, bits_at

VALID, VALUES, TEXTS = range(3)
"""The buffers of a column, as addresses: bits for the rows that have a value (0: all of them), the
values or the ends of texts (0: a part does not have the column), and the texts."""
AS_TEXT, AS_WORD, AS_BIT = range(3)
"""How values lie in memory: offsets and bytes, 8 bytes each, a bit each."""
PART, FIRST, COUNT = range(3)
"""A run of rows that follow each other in one part: its number, the first row, and how many."""
FILLED, BYTES = range(2)
"""What is told of a column: the rows that have a value, and the bytes of their texts."""


@compiled
def gather(
    runs: np.ndarray,
    sources: np.ndarray,
    ways: np.ndarray,
    targets: np.ndarray,
    rows: int,
    told: np.ndarray,
) -> None:
    """Write the runs one after the other; they have so many rows in all.

    `sources` are the buffers by column and part, `targets` those that are written, by column. Bits
    have room for up to eight bytes more than they need.
    """
    for column in range(len(ways)):
        way, valid, values = ways[column], targets[column, VALID], targets[column, VALUES]
        _clear(valid, rows)
        if way == AS_BIT:
            _clear(values, rows)
        if way == AS_TEXT:
            put_four(values, 0, 0)
        to = filled = text = np.int64(0)
        for run in range(len(runs)):
            part, first, count = runs[run, PART], runs[run, FIRST], runs[run, COUNT]
            source = sources[column, part, VALUES]
            if source:
                filled += _copy_valid(valid, to, sources[column, part, VALID], first, count)
            if way == AS_TEXT:
                text += _copy_texts(
                    values, targets[column, TEXTS], to, text,
                    source, sources[column, part, TEXTS], first, count,
                )  # fmt: skip
            elif source and way == AS_WORD:
                copy(values, 8 * to, source, 8 * first, 8 * count)
            elif source:
                _copy_bits(values, to, source, first, count)
            to += count
        told[column, FILLED] = filled
        told[column, BYTES] = text


@inlined
def _clear(bits: int, rows: int) -> None:
    for place in range(0, (rows + 7) >> 3, 8):
        put_eight(bits, place, 0)


@inlined
def _copy_valid(valid: int, to: int, source: int, first: int, count: int) -> int:
    """Which rows have a value; how many they are."""
    if source:
        return _copy_bits(valid, to, source, first, count)
    at: int = np.int64(0)
    while at < count:
        some = min(WORD, count - at)
        every = ~np.uint64(0) >> np.uint64(WORD - some)
        _put_bits(valid, to + at, every)
        at += some
    return count


@inlined
def _copy_bits(bits: int, to: int, source: int, first: int, count: int) -> int:
    """How many of them are set."""
    found: int = np.int64(0)
    at: int = np.int64(0)
    while at < count:
        some = min(WORD, count - at)
        word = bits_at(source, first + at, some)
        _put_bits(bits, to + at, word)
        found += ones(word)
        at += some
    return found


@inlined
def _put_bits(bits: int, at: int, word: int) -> None:
    """Set those of 64 bits, from any place on, that are set in a word."""
    begin, shift = at >> 3, np.uint64(at & 7)
    put_eight(bits, begin, eight(bits, begin) | word << shift)
    over = word >> (np.uint64(63) - shift) >> np.uint64(1)  # 64 at once would be none at all
    if over:
        put(bits, begin + 8, byte(bits, begin + 8) | over)


@inlined
def _copy_texts(
    offsets: int,
    texts: int,
    to: int,
    text: int,
    source: int,
    source_texts: int,
    first: int,
    count: int,
) -> int:
    """How many bytes of text there are."""
    if not source:
        for k in range(count):
            put_four(offsets, 4 * (to + k + 1), text)
        return 0
    begin, end = four(source, 4 * first), four(source, 4 * (first + count))
    copy(texts, text, source_texts, begin, end - begin)
    moved = text - begin
    for k in range(count):
        put_four(offsets, 4 * (to + k + 1), four(source, 4 * (first + k + 1)) + moved)
    return end - begin

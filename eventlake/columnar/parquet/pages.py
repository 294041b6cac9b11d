"""A column as Parquet pages, before they are compressed."""

from typing import NamedTuple

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import byte, eight, four, put, put_eight, put_four
from eventlake.columnar.parquet.columns import (
    COUNT,
    IS_DICTIONARY,
    PACKED_AT,
    PACKED_SIZE,
    PAGE_CODEC,
    SIZE,
    TEXT,
    TRUTH,
    WORD,
    Column,
    Values,
    bits_at,
    values_of,
)
from eventlake.columnar.parquet.dictionary import GIVEN_UP, find_entries, put_numbers
from eventlake.columnar.parquet.footer import put_varint
from eventlake.columnar.parquet.values import bounds_of, plain_size, put_plain

_RUN = 6  # upper bound of the bytes of a row with a value, including the rows without one before it


@compiled
def put_levels(column: Column, values: Values, start: int, end: int, out: int) -> int:
    """Write them to the start of `out`, after their length; returns the end."""
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
    """The row of a value in a column with nulls."""
    if column.rows:
        return np.int64(eight(column.rows, 8 * (values.base - column.first + number)))
    return four(values.places, 4 * number) - column.first


@inlined
def _put_runs(column: Column, values: Values, start: int, end: int, out: int, at: int) -> int:
    row = np.int64(start)  # all rows before it are written
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


REPEATING = 512
"""Minimum bytes of a column to try a dictionary."""
PLAIN, SNAPPY, ZSTD = 0, 1, 6
TINY = 64
"""Maximum bytes of a column that stays uncompressed: a codec call would cost more than it saves."""


class Rows(NamedTuple):
    """The rows of a file, and its options."""

    start: int
    end: int
    various: int  # minimum bytes of columns compressed by zstd if their values do not repeat
    page: int  # approximate bytes of a page


class Room(NamedTuple):
    """Addresses of working memory."""

    bodies: int  # of uncompressed pages
    places: int
    entries: int
    numbers: int
    table: int  # of a dictionary
    out: int  # the file


class Place(NamedTuple):
    """The ends of used memory: addresses, and the number of pages."""

    body: int
    line: int


class Chunk(NamedTuple):
    """A column of a file, without its pages."""

    codec: int
    nulls: int
    lowest: int  # the index of the lowest value, -1 if there is none
    highest: int
    entries: int  # of the dictionary, 0 if there is none
    after: Place


@compiled
def put_chunk(column: Column, rows: Rows, room: Room, at: Place, pages: np.ndarray) -> Chunk:
    """Create the pages of a column from an address on."""
    values = values_of(column, rows.start, rows.end, room.places)
    nulls = rows.end - rows.start - values.count
    size = plain_size(column, values)
    if column.kind != TRUTH and size >= REPEATING:
        count = find_entries(column, values, room.table, room.entries, room.numbers)
        entries = Values(count, 0, room.entries)
        # A dictionary is one page, whatever its size.
        if count != GIVEN_UP and plain_size(column, entries) <= rows.page:
            lowest, highest = bounds_of(column, entries)
            end = put_plain(column, entries, at.body, 0)
            at = _noted(at, end, count, True, SNAPPY, pages)
            end = put_levels(column, values, rows.start, rows.end, at.body)
            end = put_numbers(room.numbers, values.count, count, at.body, end)
            at = _noted(at, end, rows.end - rows.start, False, SNAPPY, pages)
            return Chunk(SNAPPY, nulls, lowest, highest, count, at)
    lowest, highest = np.int64(-1), np.int64(-1)
    if values.count:
        lowest, highest = bounds_of(column, values)
    codec = SNAPPY if size > TINY else PLAIN
    if column.kind != TRUTH and size >= rows.various:
        codec = ZSTD
    step = (rows.end - rows.start) // (size // page_size(column, rows) + 1) + 1
    for start in range(rows.start, rows.end, step):
        end = min(start + step, rows.end)
        if step <= rows.end - rows.start:
            values = values_of(column, start, end, room.places)
        body = put_levels(column, values, start, end, at.body)
        body = put_plain(column, values, at.body, body)
        at = _noted(at, body, end - start, False, codec, pages)
    return Chunk(codec, nulls, lowest, highest, 0, at)


@inlined
def page_size(column: Column, rows: Rows) -> int:
    """zstd compresses numbers better in pages below 256 KB, and text in larger ones."""
    return rows.page if column.kind == TEXT else rows.page >> 2


@inlined
def _noted(
    at: Place, size: int, values: int, is_dictionary: bool, codec: int, pages: np.ndarray
) -> Place:
    """Register the page at an address; it is compressed later if worthwhile."""
    pages[at.line, PAGE_CODEC] = codec
    pages[at.line, IS_DICTIONARY] = is_dictionary
    pages[at.line, COUNT] = values
    pages[at.line, SIZE] = pages[at.line, PACKED_SIZE] = size
    pages[at.line, PACKED_AT] = at.body
    return Place(at.body + size, at.line + 1)

"""A column of a file as pages of Parquet, packed by Snappy or left to be packed by another."""

from typing import NamedTuple

import numpy as np

from lake.loading.kernel.columns import TRUTH, Column, Values, values_of
from lake.loading.kernel.dictionary import GIVEN_UP, find_entries, put_numbers
from lake.loading.kernel.levels import put_levels
from lake.loading.kernel.snappy import compress
from lake.loading.kernel.thrift import INT, put_end, put_number, put_struct
from lake.loading.kernel.values import bounds_of, plain_size, put_plain
from lake.staging.kernel.compiled import compiled, inlined

HEADER = 64
"""Bytes that the header of a page may have."""
REPEATING = 512
"""Bytes of a column in a file from which on it is tried whether its values repeat."""
PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
SNAPPY, ZSTD = 1, 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2


class Room(NamedTuple):
    """Memory to work in: addresses."""

    bodies: int  # of pages, as they are before they are packed
    pages: int  # packed by Snappy
    places: int
    entries: int
    numbers: int
    table: int  # of a dictionary
    out: int  # the file


class Rows(NamedTuple):
    """Rows of a file, and how it is to be written."""

    start: int
    end: int
    various: int  # bytes from which on columns are left to zstd if their values do not repeat


class Packed(NamedTuple):
    """A page without its header: its size before, where it lies, and its size."""

    unpacked: int
    address: int
    size: int


class Chunk(NamedTuple):
    """A column of a file."""

    codec: int
    nulls: int
    lowest: int  # the place of the lowest value, -1 if there is none
    highest: int
    entries: int  # of its dictionary, 0 if it has none
    dictionary: Packed
    data: Packed  # what is left to be packed lies at its address as it is


@compiled
def chunk_of(
    column: Column,
    rows: Rows,
    room: Room,
    body: int,
    page: int,
    table: np.ndarray,
) -> Chunk:
    """Some rows of a column; bodies may be written from `body` on, pages from `page` on."""
    start, end = rows.start, rows.end
    values = values_of(column, start, end, room.places)
    nulls = end - start - values.count
    size = plain_size(column, values)
    nothing = Packed(0, 0, 0)
    if column.kind != TRUTH and size >= REPEATING:
        count = find_entries(column, values, room.table, room.entries, room.numbers)
        if count != GIVEN_UP:
            entries = Values(count, 0, room.entries)
            dictionary = _packed(body, put_plain(column, entries, body, 0), page, table)
            at = put_levels(column, values, start, end, body)
            at = put_numbers(room.numbers, values.count, count, body, at)
            data = _packed(body, at, page + dictionary.size, table)
            lowest, highest = bounds_of(column, entries)
            return Chunk(SNAPPY, nulls, lowest, highest, count, dictionary, data)
    lowest, highest = np.int64(-1), np.int64(-1)
    if values.count:
        lowest, highest = bounds_of(column, values)
    at = put_levels(column, values, start, end, body)
    at = put_plain(column, values, body, at)
    if column.kind != TRUTH and size >= rows.various:
        return Chunk(ZSTD, nulls, lowest, highest, 0, nothing, Packed(at, body, at))
    data = _packed(body, at, page, table)
    return Chunk(SNAPPY, nulls, lowest, highest, 0, nothing, data)


@inlined
def _packed(body: int, size: int, page: int, table: np.ndarray) -> Packed:
    return Packed(size, page, compress(body, size, page, 0, table))


@inlined
def put_data_header(out: int, at: int, rows: int, page: Packed, encoding: int) -> int:
    at = put_number(out, at, 1, INT, _DATA_PAGE)
    at = put_number(out, at, 1, INT, page.unpacked)
    at = put_number(out, at, 1, INT, page.size)
    at = put_struct(out, at, 2)
    at = put_number(out, at, 1, INT, rows)
    at = put_number(out, at, 1, INT, encoding)
    at = put_number(out, at, 1, INT, RLE)
    at = put_number(out, at, 1, INT, RLE)
    return put_end(out, put_end(out, at))


@inlined
def put_dictionary_header(out: int, at: int, entries: int, page: Packed) -> int:
    at = put_number(out, at, 1, INT, _DICTIONARY_PAGE)
    at = put_number(out, at, 1, INT, page.unpacked)
    at = put_number(out, at, 1, INT, page.size)
    at = put_struct(out, at, 4)
    at = put_number(out, at, 1, INT, entries)
    at = put_number(out, at, 1, INT, PLAIN)
    return put_end(out, put_end(out, at))

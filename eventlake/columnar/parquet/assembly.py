"""Assembles a Parquet file in memory: the pages of each column, then the footer."""

from typing import NamedTuple

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import copy, put_four
from eventlake.columnar.parquet.columns import (
    BEGIN,
    CODEC,
    COUNT,
    DATA,
    DECIMAL_BYTES,
    ENTRIES,
    FIRST_PAGE,
    HIGHEST,
    IS_DICTIONARY,
    LOWEST,
    NULLS,
    NUMBER,
    PACKED,
    PACKED_AT,
    PACKED_SIZE,
    PAGES,
    SIZE,
    TEXT,
    TRUTH,
    UNPACKED,
    column_at,
    first_at_least,
    offset_of,
)
from eventlake.columnar.parquet.footer import (
    INT,
    PLAIN,
    RLE,
    RLE_DICTIONARY,
    Same,
    put_end,
    put_footer,
    put_number,
    put_struct,
)
from eventlake.columnar.parquet.pages import Place, Room, Rows, page_size, put_chunk

HEADER = 64
"""Upper bound of the bytes of a page header."""
_LEVELS = 64  # bytes of a page independent of its rows
_MAGIC = 0x31524150  # PAR1
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2


class Need(NamedTuple):
    """Upper bounds of the uncompressed bytes and of the pages of a file."""

    total: int
    pages: int


@compiled
def need_of(columns: np.ndarray, rows: Rows) -> Need:
    """Upper bound of the bytes of rows: values, levels, and dictionary indices."""
    total = pages = np.int64(0)
    for number in range(len(columns)):
        column = column_at(columns, number)
        low, high = np.int64(rows.start), np.int64(rows.end)
        if column.rows:
            low = first_at_least(column.rows, column.count, low)
            high = first_at_least(column.rows, column.count, high)
        size = np.int64(0)
        if column.kind == TEXT and high > low:
            begin = offset_of(column, column.first + low)
            size = 4 * (high - low) + offset_of(column, column.first + high) - begin
        elif column.kind != TEXT and column.kind != TRUTH:
            size = (8 if column.kind == NUMBER else DECIMAL_BYTES) * (high - low)
        of_column = 2 + size // page_size(column, rows)  # one for the dictionary, if there is one
        size += _LEVELS * of_column + ((rows.end - rows.start) >> 3) + 4 * (high - low)
        total += size
        pages += of_column
    return Need(total, pages)


@compiled
def encode(
    columns: np.ndarray, rows: Rows, room: Room, facts: np.ndarray, pages: np.ndarray
) -> int:
    """Create the pages of all columns; returns their number.

    The results are in the entries of columns and pages.
    """
    at = Place(room.bodies, 0)
    for number in range(len(columns)):
        chunk = put_chunk(column_at(columns, number), rows, room, at, pages)
        facts[number, CODEC] = chunk.codec
        facts[number, NULLS] = chunk.nulls
        facts[number, LOWEST] = chunk.lowest
        facts[number, HIGHEST] = chunk.highest
        facts[number, ENTRIES] = chunk.entries
        facts[number, FIRST_PAGE] = at.line
        facts[number, PAGES] = chunk.after.line - at.line
        at = chunk.after
    return at.line


@compiled
def assemble(
    columns: np.ndarray, same: Same, rows: int, out: int, facts: np.ndarray, pages: np.ndarray
) -> int:
    """Write the file from compressed pages; returns its size."""
    put_four(out, 0, _MAGIC)
    at = np.int64(4)
    for number in range(len(columns)):
        begin, spared = at, np.int64(0)
        facts[number, BEGIN] = facts[number, DATA] = at
        first = facts[number, FIRST_PAGE]
        for line in range(first, first + facts[number, PAGES]):
            at = _put_header(out, at, pages, line, facts[number, ENTRIES] > 0)
            copy(out, at, pages[line, PACKED_AT], 0, pages[line, PACKED_SIZE])
            at += pages[line, PACKED_SIZE]
            spared += pages[line, SIZE] - pages[line, PACKED_SIZE]
            if pages[line, IS_DICTIONARY]:
                facts[number, DATA] = at
        facts[number, PACKED] = at - begin
        facts[number, UNPACKED] = at - begin + spared
    footer = at
    at = put_footer(columns, same, rows, facts, out, at)
    put_four(out, at, at - footer)
    put_four(out, at + 4, _MAGIC)
    return at + 8


@inlined
def _put_header(out: int, at: int, pages: np.ndarray, line: int, has_dictionary: bool) -> int:
    is_dictionary = pages[line, IS_DICTIONARY] != 0
    at = put_number(out, at, 1, INT, _DICTIONARY_PAGE if is_dictionary else _DATA_PAGE)
    at = put_number(out, at, 1, INT, pages[line, SIZE])
    at = put_number(out, at, 1, INT, pages[line, PACKED_SIZE])
    at = put_struct(out, at, 4 if is_dictionary else 2)
    at = put_number(out, at, 1, INT, pages[line, COUNT])
    if is_dictionary:
        at = put_number(out, at, 1, INT, PLAIN)
    else:
        at = put_number(out, at, 1, INT, RLE_DICTIONARY if has_dictionary else PLAIN)
        at = put_number(out, at, 1, INT, RLE)
        at = put_number(out, at, 1, INT, RLE)
    return put_end(out, put_end(out, at))

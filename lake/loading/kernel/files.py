"""Files of Parquet: a page for each column, then the footer."""

from typing import NamedTuple

import numpy as np

from lake.loading.kernel.pages import (
    HEADER,
    NUMBER,
    TEXT,
    Columns,
    offset_of,
    page_body,
    put_four,
    put_page_header,
)
from lake.loading.kernel.snappy import compress
from lake.loading.kernel.thrift import (
    BINARY,
    LONG,
    put_end,
    put_number,
    put_struct,
    put_structs,
    put_varint,
)
from lake.staging.kernel.compiled import compiled, inlined
from lake.staging.kernel.memory import copy, put

LONGEST_BOUND = 64
"""Bytes of the lowest and highest text, if these are told."""
FOOTER = 96 + 2 * LONGEST_BOUND
"""Bytes that the footer may need for a column, beside what is the same in all files."""


class Same(NamedTuple):
    """What is the same in all files of a table, as bytes: addresses and sizes."""

    before: int  # what the footer says before the number of rows
    before_size: int
    heads: np.ndarray  # of each column, what its metadata begin with
    head_sizes: np.ndarray
    after: int  # what the footer says after the row group
    after_size: int


_AT, _UNPACKED, _PACKED, _NULLS, _LOWEST, _HIGHEST = range(6)


@compiled
def write_file(
    columns: Columns,
    same: Same,
    start: int,
    end: int,
    out: int,
    scratch: int,
    table: np.ndarray,
    facts: np.ndarray,
) -> int:
    """Write the rows from `start` to `end` as one file; its size.

    `scratch` has room for the largest page, `table` for Snappy, `facts` for each column.
    """
    at = _put_magic(out, 0)
    total = 0
    for column in range(len(columns.kind)):
        page = page_body(columns, column, start, end, scratch)
        # The header tells how long the page will be, and stands before it.
        packed = compress(scratch, page.size, out, at + HEADER, table) - (at + HEADER)
        header = put_page_header(out, at, end - start, page.size, packed) - at
        _move(out, at + HEADER, at + header, packed)
        facts[column, _AT] = at
        facts[column, _UNPACKED] = header + page.size
        facts[column, _PACKED] = header + packed
        facts[column, _NULLS] = page.nulls
        facts[column, _LOWEST] = page.lowest
        facts[column, _HIGHEST] = page.highest
        total += header + page.size
        at += header + packed
    footer = at
    copy(out, at, same.before, 0, same.before_size)
    at += same.before_size
    at = put_number(out, at, 1, LONG, end - start)
    at = put_structs(out, at, 1, 1)
    at = put_structs(out, at, 1, len(columns.kind))
    for column in range(len(columns.kind)):
        at = _put_chunk(columns, same, column, facts, end - start, out, at)
    at = put_number(out, at, 1, LONG, total)
    at = put_number(out, at, 1, LONG, end - start)
    at = put_end(out, at)
    copy(out, at, same.after, 0, same.after_size)
    at += same.after_size
    put_four(out, at, at - footer)
    return _put_magic(out, at + 4)


@inlined
def _put_magic(out: int, at: int) -> int:
    put(out, at, 0x50)
    put(out, at + 1, 0x41)
    put(out, at + 2, 0x52)
    put(out, at + 3, 0x31)
    return at + 4


@inlined
def _move(out: int, source: int, target: int, size: int) -> None:
    """To a lower place, which the source may overlap."""
    step = source - target
    done = 0
    while done < size:
        part = min(step, size - done)
        copy(out, target + done, out, source + done, part)
        done += part


@inlined
def _put_chunk(
    columns: Columns,
    same: Same,
    column: int,
    facts: np.ndarray,
    rows: int,
    out: int,
    at: int,
) -> int:
    at = put_number(out, at, 2, LONG, 0)
    at = put_struct(out, at, 1)
    copy(out, at, same.heads[column], 0, same.head_sizes[column])
    at += same.head_sizes[column]
    at = put_number(out, at, 1, LONG, rows)
    at = put_number(out, at, 1, LONG, facts[column, _UNPACKED])
    at = put_number(out, at, 1, LONG, facts[column, _PACKED])
    at = put_number(out, at, 2, LONG, facts[column, _AT])
    at = put_struct(out, at, 3)
    at = put_number(out, at, 3, LONG, facts[column, _NULLS])
    lowest, highest = facts[column, _LOWEST], facts[column, _HIGHEST]
    if lowest >= 0 and max(_length(columns, column, lowest), _length(columns, column, highest)) <= (
        LONGEST_BOUND
    ):
        at = _put_value(columns, column, highest, out, at, 2)
        at = _put_value(columns, column, lowest, out, at, 1)
    return put_end(out, put_end(out, put_end(out, at)))


@inlined
def _length(columns: Columns, column: int, row: int) -> int:
    if columns.kind[column] == TEXT:
        return offset_of(columns, column, row + 1) - offset_of(columns, column, row)
    return np.int64(8)


@inlined
def _put_value(columns: Columns, column: int, row: int, out: int, at: int, step: int) -> int:
    size = _length(columns, column, row)
    put(out, at, step << 4 | BINARY)
    at = put_varint(out, at + 1, size)
    begin = 8 * (columns.first[column] + row)
    if columns.kind[column] != NUMBER:
        begin = offset_of(columns, column, row)
    copy(out, at, columns.values[column], begin, size)
    return at + size

"""Files of Parquet: the pages of each column, then the footer."""

from typing import NamedTuple

import numpy as np

from lake.loading.kernel.columns import NUMBER, TEXT, TRUTH, column_at, first_at_least, offset_of
from lake.loading.kernel.facts import (
    CODEC,
    DATA,
    DATA_AT,
    DICTIONARY,
    DICTIONARY_AT,
    ENTRIES,
    HIGHEST,
    LOWEST,
    NULLS,
    PACKED,
    UNPACKED,
)
from lake.loading.kernel.footer import Same, put_footer
from lake.loading.kernel.pages import (
    HEADER,
    PLAIN,
    RLE_DICTIONARY,
    ZSTD,
    Packed,
    Room,
    Rows,
    chunk_of,
    put_data_header,
    put_dictionary_header,
)
from lake.staging.kernel.compiled import compiled, inlined
from lake.staging.kernel.memory import copy, put_four

_MAGIC = 0x31524150  # PAR1


class Need(NamedTuple):
    """Bytes that a file may take before it is packed."""

    largest: int  # of a column
    total: int


@compiled
def need_of(columns: np.ndarray, start: int, end: int) -> Need:
    """What the rows from `start` to `end` may take: values, levels, and numbers of entries."""
    largest = total = np.int64(0)
    for number in range(len(columns)):
        column = column_at(columns, number)
        low, high = np.int64(start), np.int64(end)
        if column.rows:
            low = first_at_least(column.rows, column.count, start)
            high = first_at_least(column.rows, column.count, end)
        size = HEADER + ((end - start) >> 3) + 4 * (high - low)
        if column.kind == TEXT:
            begin = offset_of(column, column.first + low) if high > low else np.int64(0)
            stop = offset_of(column, column.first + high) if high > low else np.int64(0)
            size += 4 * (high - low) + stop - begin
        elif column.kind != TRUTH:
            size += (8 if column.kind == NUMBER else 16) * (high - low)
        largest = max(largest, size)
        total += size
    return Need(largest, total)


@compiled
def encode(
    columns: np.ndarray, rows: Rows, room: Room, table: np.ndarray, facts: np.ndarray
) -> int:
    """Make the pages of some rows; how many are left to be packed by zstd.

    `table` is room for Snappy. What became of each column is told in its line of facts.
    """
    body, page, left = room.bodies, room.pages, 0
    for number in range(len(columns)):
        chunk = chunk_of(column_at(columns, number), rows, room, body, page, table)
        facts[number, CODEC] = chunk.codec
        facts[number, NULLS] = chunk.nulls
        facts[number, LOWEST] = chunk.lowest
        facts[number, HIGHEST] = chunk.highest
        facts[number, ENTRIES] = chunk.entries
        _note(facts, number, DICTIONARY, chunk.dictionary)
        _note(facts, number, DATA, chunk.data)
        page += chunk.dictionary.size
        if chunk.codec == ZSTD:
            body += chunk.data.size
            left += 1
        else:
            page += chunk.data.size
    return left


@inlined
def _note(facts: np.ndarray, number: int, which: int, page: Packed) -> None:
    facts[number, which] = page.unpacked
    facts[number, which + 1] = page.address
    facts[number, which + 2] = page.size


@inlined
def _noted(facts: np.ndarray, number: int, which: int) -> Packed:
    return Packed(facts[number, which], facts[number, which + 1], facts[number, which + 2])


@compiled
def assemble(columns: np.ndarray, same: Same, rows: int, out: int, facts: np.ndarray) -> int:
    """Write the file of which all pages are packed; its size."""
    put_four(out, 0, _MAGIC)
    at = np.int64(4)
    for number in range(len(columns)):
        begin, entries = at, facts[number, ENTRIES]
        unpacked = np.int64(0)
        if entries:
            page = _noted(facts, number, DICTIONARY)
            at = put_dictionary_header(out, at, entries, page)
            copy(out, at, page.address, 0, page.size)
            unpacked += page.unpacked - page.size
            at += page.size
        page = _noted(facts, number, DATA)
        facts[number, DICTIONARY_AT] = begin
        facts[number, DATA_AT] = at
        at = put_data_header(out, at, rows, page, RLE_DICTIONARY if entries else PLAIN)
        copy(out, at, page.address, 0, page.size)
        at += page.size
        unpacked += page.unpacked - page.size
        facts[number, PACKED] = at - begin
        facts[number, UNPACKED] = at - begin + unpacked
    footer = at
    at = put_footer(columns, same, rows, facts, out, at)
    put_four(out, at, at - footer)
    put_four(out, at + 4, _MAGIC)
    return at + 8

"""The footer of a file: its columns, their offsets, and statistics of their values.

A field starts with a byte: the difference of its number to the previous one, and its type. A struct
ends with a zero.
"""

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from io import BytesIO
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import copy, eight, put, put_eight, reversed_bytes
from eventlake.columnar.parquet.columns import (
    BEGIN,
    CODEC,
    DATA,
    DECIMAL,
    DECIMAL_BYTES,
    ENTRIES,
    HIGHEST,
    LOWEST,
    NULLS,
    NUMBER,
    PACKED,
    TEXT,
    UNPACKED,
    Column,
    bit,
    column_at,
    offset_of,
)

INT, LONG, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
END = 0


@inlined
def put_varint(out: int, at: int, number: int) -> int:
    """Seven bits at a time, the lowest first; all bytes but the last have the highest bit set."""
    while number > 0x7F:
        put(out, at, number & 0x7F | 0x80)
        number >>= 7
        at += 1
    put(out, at, number)
    return at + 1


@inlined
def put_number(out: int, at: int, step: int, kind: int, number: int) -> int:
    """Write a field with a nonnegative number."""
    put(out, at, step << 4 | kind)
    return put_varint(out, at + 1, number << 1)


@inlined
def put_struct(out: int, at: int, step: int) -> int:
    """Start a field that is a struct: its fields follow, then an end."""
    put(out, at, step << 4 | STRUCT)
    return at + 1


@inlined
def put_list(out: int, at: int, step: int, kind: int, count: int) -> int:
    """Start a field that is a list: its elements follow."""
    put(out, at, step << 4 | LIST)
    if count < 15:
        put(out, at + 1, count << 4 | kind)
        return at + 2
    put(out, at + 1, 0xF0 | kind)
    return put_varint(out, at + 2, count)


@inlined
def put_element(out: int, at: int, number: int) -> int:
    """Write an element of a list: a nonnegative number."""
    return put_varint(out, at, number << 1)


@inlined
def put_structs(out: int, at: int, step: int, count: int) -> int:
    """Start a field that is a list of structs: these follow."""
    return put_list(out, at, step, STRUCT, count)


@inlined
def put_end(out: int, at: int) -> int:
    put(out, at, END)
    return at + 1


PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
LONGEST_BOUND = 64
"""The length of the lowest and the highest text, if there are any."""
FOOTER = 128 + 2 * LONGEST_BOUND
"""Upper bound of the footer bytes of a column, without its name."""
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2


class Same(NamedTuple):
    """The parts of a footer that all files of a table share: addresses and sizes."""

    before: int  # the footer before the number of rows
    before_size: int
    after: int  # the footer after the row group
    after_size: int


STRING, INTEGER, MOMENT, EXACT, TRUTH_TYPE = range(5)
TYPES = {
    pa.string(): STRING,
    pa.int64(): INTEGER,
    pa.timestamp("us", tz="UTC"): MOMENT,
    pa.decimal128(38, 6): EXACT,
    pa.bool_(): TRUTH_TYPE,
}
"""Types that columns can have; Arrow's own are slow to be looked up again and again."""
_ROWS = b"\x16\x00"  # the field that follows the columns: the number of rows, here 0
_COLUMNS_REMEMBERED = 10_000  # of all tables
_NAME = "column"


def before_groups(names: Iterable[str], types: Sequence[int]) -> bytes:
    """How the footer of every file of these columns begins, up to the number of rows.

    As Arrow describes them: see `_before`.
    """
    version, root = _begin()
    elements = b"".join(map(_element, names, types))
    children = _varint(2 * len(types)) + b"\0"
    return version + _count(len(types) + 1) + root + children + elements


def after_groups(columns: int) -> bytes:
    """How it ends: who made the file, and that values are ordered as their types say."""
    return b"\x28\x08datalake\x19" + _count(columns) + b"\x1c\0\0" * columns + b"\0"


def _count(structs: int) -> bytes:
    """The header of a list of structs."""
    return bytes([structs << 4 | STRUCT]) if structs < 15 else b"\xfc" + _varint(structs)


def _varint(number: int) -> bytes:
    """The same as `put_varint`."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


@cache
def _begin() -> tuple[bytes, bytes]:
    """What comes before the count of the schema's elements, and what follows it up to the count of
    columns."""
    empty = _before(pa.schema([]))
    return empty[:3], empty[4:-2]


@lru_cache(_COLUMNS_REMEMBERED)
def _element(name: str, number: int) -> bytes:
    """How a column is described."""
    before, after = _around_name(number)
    encoded = name.encode()
    return before + _varint(len(encoded)) + encoded + after


@cache
def _around_name(number: int) -> tuple[bytes, bytes]:
    """What stands beside its name: taken from what a file with it has more than one without."""
    [kind] = [kind for kind, other in TYPES.items() if other == number]
    element = _before(pa.schema([(_NAME, kind)]))[len(_before(pa.schema([]))) :]
    before, after = element.split(_varint(len(_NAME)) + _NAME.encode())
    return before, after


def _before(schema: pa.Schema) -> bytes:
    """How the footer of a file that Arrow writes begins."""
    out = BytesIO()
    pq.ParquetWriter(out, schema, store_schema=False).close()
    file = out.getvalue()
    size = int.from_bytes(file[-8:-4], "little")
    return file[-8 - size : file.rindex(_ROWS)]


@compiled
def put_footer(
    columns: np.ndarray, same: Same, rows: int, facts: np.ndarray, out: int, at: int
) -> int:
    copy(out, at, same.before, 0, same.before_size)
    at += same.before_size
    at = put_number(out, at, 1, LONG, rows)
    at = put_structs(out, at, 1, 1)
    at = put_structs(out, at, 1, len(columns))
    total = np.int64(0)
    for number in range(len(columns)):
        at = _put_chunk(column_at(columns, number), facts, number, rows, out, at)
        total += facts[number, UNPACKED]
    at = put_number(out, at, 1, LONG, total)
    at = put_number(out, at, 1, LONG, rows)
    at = put_end(out, at)
    copy(out, at, same.after, 0, same.after_size)
    return at + same.after_size


@inlined
def _put_chunk(column: Column, facts: np.ndarray, number: int, rows: int, out: int, at: int) -> int:
    has_dictionary = facts[number, ENTRIES] > 0
    at = put_number(out, at, 2, LONG, 0)
    at = put_struct(out, at, 1)
    at = put_number(out, at, 1, INT, _physical(column.kind))
    at = put_list(out, at, 1, INT, 3 if has_dictionary else 2)
    at = put_element(out, at, PLAIN)
    at = put_element(out, at, RLE)
    if has_dictionary:
        at = put_element(out, at, RLE_DICTIONARY)
    at = put_list(out, at, 1, BINARY, 1)
    at = put_varint(out, at, column.name_size)
    copy(out, at, column.name, 0, column.name_size)
    at = put_number(out, at + column.name_size, 1, INT, facts[number, CODEC])
    at = put_number(out, at, 1, LONG, rows)
    at = put_number(out, at, 1, LONG, facts[number, UNPACKED])
    at = put_number(out, at, 1, LONG, facts[number, PACKED])
    at = put_number(out, at, 2, LONG, facts[number, DATA])
    if has_dictionary:
        at = put_number(out, at, 2, LONG, facts[number, BEGIN])
    at = put_struct(out, at, 1 if has_dictionary else 3)
    at = _put_statistics(column, facts, number, out, at)
    if has_dictionary:  # tells readers that the dictionary has all values
        at = put_structs(out, at, 1, 2)
        at = _put_encoding(out, at, _DICTIONARY_PAGE, PLAIN)
        at = _put_encoding(out, at, _DATA_PAGE, RLE_DICTIONARY)
    return put_end(out, put_end(out, at))


@inlined
def _physical(kind: int) -> int:
    """The number of the type in Parquet."""
    if kind == TEXT:
        return 6
    if kind == NUMBER:
        return 2
    return 7 if kind == DECIMAL else 0


@inlined
def _put_encoding(out: int, at: int, page: int, encoding: int) -> int:
    at = put_number(out, at, 1, INT, page)
    at = put_number(out, at, 1, INT, encoding)
    return put_end(out, put_number(out, at, 1, INT, 1))


@inlined
def _put_statistics(column: Column, facts: np.ndarray, number: int, out: int, at: int) -> int:
    at = put_number(out, at, 3, LONG, facts[number, NULLS])
    lowest, highest = facts[number, LOWEST], facts[number, HIGHEST]
    if lowest >= 0 and max(_length(column, lowest), _length(column, highest)) <= LONGEST_BOUND:
        at = _put_value(column, highest, out, at, 2)
        at = _put_value(column, lowest, out, at, 1)
    return put_end(out, at)


@inlined
def _length(column: Column, place: int) -> int:
    if column.kind == TEXT:
        return offset_of(column, place + 1) - offset_of(column, place)
    if column.kind == NUMBER:
        return np.int64(8)
    return np.int64(DECIMAL_BYTES if column.kind == DECIMAL else 1)


@inlined
def _put_value(column: Column, place: int, out: int, at: int, step: int) -> int:
    size = _length(column, place)
    put(out, at, step << 4 | BINARY)
    at = put_varint(out, at + 1, size)
    if column.kind == TEXT:
        copy(out, at, column.values, offset_of(column, place), size)
    elif column.kind == NUMBER:
        put_eight(out, at, eight(column.values, 8 * place))
    elif column.kind == DECIMAL:  # big-endian
        begin = DECIMAL_BYTES * place
        put_eight(out, at, reversed_bytes(eight(column.values, begin + 8)))
        put_eight(out, at + 8, reversed_bytes(eight(column.values, begin)))
    else:
        put(out, at, 1 if bit(column.values, place) else 0)
    return at + size

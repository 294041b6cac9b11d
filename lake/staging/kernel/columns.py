"""Cells as columns in the memory layout of Arrow: of all tables of a block at once.

A block may hold hundreds of tables: what is done for each of them, or each of their columns, has
to be little.
"""

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lake.casting.encoding import ARROW_TYPES, Encoding
from lake.kinds import Kind
from lake.staging.kernel.events import Cells, Events
from lake.staging.kernel.fill import (
    AS_BOOL,
    AS_INT,
    AS_JSON,
    AS_MOMENT,
    AS_TEXT,
    BYTES,
    FIELD,
    KINDS,
    TEXTS,
    WAY,
    count_columns,
    fill_columns,
)
from lake.staging.kernel.values import (
    ARRAY,
    ESCAPED,
    FALSE,
    FRACTION,
    INTEGER,
    LOOSE_ARRAY,
    MILLIS,
    MOMENT,
    NULL,
    NUMBER,
    TEXT,
    TRUE,
)

_TEXTS = 1 << TEXT | 1 << ESCAPED | 1 << MOMENT | 1 << MILLIS
_NUMBERS = 1 << INTEGER | 1 << FRACTION | 1 << NUMBER
_TRUTHS = 1 << TRUE | 1 << FALSE
_WORD = 1 << NULL
"""The kinds of a column's cells are a bit for each; no cell is null, and so that bit is free to say
that the column is of texts, one of which is not a date."""
_KNOWN = {
    INTEGER: Kind.INT64,
    FRACTION: Kind.NUMBER,
    TRUE: Kind.BOOL,
    FALSE: Kind.BOOL,
    MOMENT: Kind.DATE,
    MILLIS: Kind.DATE,
    ARRAY: Kind.ARRAY,
    LOOSE_ARRAY: Kind.ARRAY,
}
"""What cells are without another look."""


class Column(NamedTuple):
    """The values of a field over some rows; the first of all that has it, and its place there."""

    field: int
    encoding: Encoding
    array: pa.Array
    first_row: int
    place: int
    kinds: frozenset[Kind] | None  # of the values, if that is known without a look at them


def columns_of(
    buf: int,
    events: Events,
    cells: Cells,
    rows: np.ndarray,
    ends: np.ndarray,
    column_of: np.ndarray,
) -> list[list[Column]]:
    """The columns of some groups of events, by the fields that they have.

    `rows` are those of all groups, one after the other, `ends` where each of them ends.
    `column_of` is room to work in, a place for each field, NONE throughout before and after.
    """
    facts, last = _facts(events, cells, rows, ends, column_of)
    lengths = np.repeat(np.diff(ends, prepend=0), np.diff(last, prepend=0))
    layout, sizes = _layout(facts, lengths)
    # Arrow keeps memory that it has had for the next time; NumPy asks the system again and again.
    buffer = pa.allocate_buffer(int(np.sum(_aligned(sizes))) + 8)
    memory = np.frombuffer(buffer, np.uint8)
    memory[:] = 0
    fill_columns(
        buf, rows, ends, events.first_cell, cells, column_of, facts[:, FIELD].copy(), last, layout,
        memory, memory.view(np.int32), memory.view(np.int64),
    )  # fmt: skip
    _mark_words(facts, layout, memory)
    found = _columns(facts, lengths, layout, sizes, buffer)
    return [found[first:after] for first, after in pairwise([0, *last.tolist()])]


def _facts(
    events: Events, cells: Cells, rows: np.ndarray, ends: np.ndarray, column_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of each column what `count_columns` finds, and where the columns of each group end."""
    last = np.zeros(len(ends), np.int64)
    room = 64 * len(ends)
    while True:
        facts = np.zeros((room, 6), np.int64)
        count = count_columns(rows, ends, events.first_cell, cells, column_of, facts, last)
        if count <= room:
            return facts[:count], last
        room = count


def _encoding(kinds: int) -> Encoding:
    if kinds == 1 << MILLIS:
        return Encoding.MILLIS
    if not kinds & ~_TEXTS:
        return Encoding.TEXT
    if kinds == 1 << INTEGER:
        return Encoding.INT
    if not kinds & ~_TRUTHS:
        return Encoding.BOOL
    return Encoding.JSON if kinds & ~_NUMBERS else Encoding.NUMBER


_WAYS = {
    Encoding.TEXT: AS_TEXT,
    Encoding.NUMBER: AS_JSON,
    Encoding.JSON: AS_JSON,
    Encoding.INT: AS_INT,
    Encoding.MILLIS: AS_MOMENT,
    Encoding.BOOL: AS_BOOL,
}
_ENCODINGS = [_encoding(kinds) for kinds in range(1 << NULL)]
_WAY_OF = np.array([_WAYS[encoding] for encoding in _ENCODINGS], np.int64)


@cache
def _known_kinds(cells: int) -> frozenset[Kind] | None:
    """The kinds of values that cells of these kinds are, if there is no need to look at them."""
    if cells & _WORD:
        return frozenset({Kind.TEXT})
    seen = [kind for kind in range(NULL) if cells >> kind & 1]
    return frozenset(_KNOWN[kind] for kind in seen) if set(seen) <= _KNOWN.keys() else None


def _layout(facts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How each column is written and where its buffers begin, and how many bytes they have.

    The buffers are bits for those rows that have a value; the values, or the ends of texts; texts.
    """
    ways = _WAY_OF[facts[:, KINDS]]
    bits = (lengths + 7) // 8
    values = np.where(ways == AS_BOOL, bits, 8 * lengths)
    is_text = ways <= AS_JSON
    values[is_text] = 4 * (lengths[is_text] + 1)
    sizes = np.stack([bits, values, np.where(is_text, facts[:, BYTES], 0)], axis=1)
    room = _aligned(sizes)
    starts = (np.cumsum(room) - room.ravel()).reshape(room.shape)
    return np.column_stack([ways, starts]), sizes


def _aligned(sizes: np.ndarray) -> np.ndarray:
    return (sizes + 7) & ~7


def _mark_words(facts: np.ndarray, layout: np.ndarray, memory: np.ndarray) -> None:
    """Mark columns of texts that begin with another character than a date does."""
    first = memory[layout[:, TEXTS]]  # where all texts are empty, it is zero
    words = (layout[:, WAY] == AS_TEXT) & ((first < ord("0")) | (first > ord("9")))
    facts[words, KINDS] |= _WORD


def _columns(
    facts: np.ndarray, lengths: np.ndarray, layout: np.ndarray, sizes: np.ndarray, memory: pa.Buffer
) -> list[Column]:
    """The columns as Arrow has them."""
    found: list[Column] = []
    for fact, length, starts, size in zip(
        facts.tolist(), lengths.tolist(), layout.tolist(), sizes.tolist(), strict=True
    ):
        field, kinds, filled, _, row, place = fact
        way, valid, values, texts = starts
        encoding = _ENCODINGS[kinds & ~_WORD]
        mask = memory.slice(valid, size[0]) if filled < length else None
        buffers = [mask, memory.slice(values, size[1])]
        if way <= AS_JSON:
            buffers.append(memory.slice(texts, size[2]))
        type_ = ARROW_TYPES[encoding]
        array = pa.Array.from_buffers(type_, length, buffers, length - filled)
        found.append(Column(field, encoding, array, row, place, _known_kinds(kinds)))
    return found

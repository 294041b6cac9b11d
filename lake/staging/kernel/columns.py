"""Cells as columns in the memory layout of Arrow: of all tables of a block at once.

A block may hold hundreds of tables: what is done for each of them, or each of their columns, has
to be little. Of wide tables most fields are in few of the rows, and these have no columns: all of
their values are in lists, one for each way in which values are written.
"""

from functools import cache
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
    CELLS,
    CODES,
    FACTS,
    FIELD,
    KINDS,
    LETTER,
    LISTED,
    PLACE,
    ROW,
    VALID,
    VALUES,
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
_KNOWN_BITS = sum(1 << kind for kind in _KNOWN)
_FEW = 8
"""A field is rare if it is in one of so many rows, or fewer."""
MANY = 24
"""From so many rare fields on, lists cost less than their columns."""


class Field(NamedTuple):
    """A field of some rows; the first of all that has it, and its place there."""

    number: int
    encoding: Encoding
    first_row: int
    place: int
    kinds: frozenset[Kind] | None  # of the values, if that is known without a look at them


class Column(NamedTuple):
    """The values of a field over some rows."""

    field: Field
    array: pa.Array


class Columns(NamedTuple):
    """All fields of some rows: those with a column, and those that are rare, with their lists.

    A list has for each row the numbers and the values of its rare fields.
    """

    columns: list[Column]
    rare: list[Field]
    lists: dict[Encoding, pa.ListArray]


def columns_of(
    buf: int,
    events: Events,
    cells: Cells,
    rows: np.ndarray,
    ends: np.ndarray,
    column_of: np.ndarray,
    fields: int,
    lists: bool = True,
) -> list[Columns]:
    """The columns of some groups of events, by the fields that they have.

    `rows` are those of all groups, one after the other, `ends` where each of them ends.
    `column_of` is room to work in, a place for each field, NONE throughout before and after.
    `fields` are so many as there can be. Without lists, rare ones have columns, too.
    """
    facts, last = _facts(buf, events, cells, rows, ends, column_of, fields)
    words = _WAY_OF[facts[:, KINDS]] == AS_TEXT
    words &= (facts[:, LETTER] < ord("0")) | (facts[:, LETTER] > ord("9"))
    facts[words, KINDS] |= _WORD
    group_of = np.repeat(np.arange(len(ends)), np.diff(last, prepend=0))
    lengths = np.diff(ends, prepend=0)
    rare = _rare(facts, lengths[group_of], group_of, len(ends) if lists else 0)
    layout, sizes, of_list = _layout(facts, lengths, group_of, rare)
    last_list = np.searchsorted(of_list // len(Encoding), np.arange(len(ends)), side="right")
    # Arrow keeps memory that it has had for the next time; NumPy asks the system again and again.
    buffer = pa.allocate_buffer(int(np.sum(_aligned(sizes))) + 8)
    memory = np.frombuffer(buffer, np.uint8)
    memory[:] = 0
    fill_columns(
        buf, rows, ends, events.first_cell, cells, column_of, facts[:, FIELD].copy(), last,
        last_list, layout, memory,
    )  # fmt: skip
    told = [_field(*fact) for fact in facts[:, _TOLD].tolist()]
    found = [Columns([], [], {}) for _ in lengths]
    spots = zip(layout.tolist(), sizes.tolist(), strict=True)
    for field, group, filled, is_rare in zip(
        told, group_of.tolist(), facts[:, CELLS].tolist(), rare.tolist(), strict=True
    ):
        spot = next(spots)
        if is_rare:
            found[group].rare.append(field)
        else:
            array = _array(buffer, field.encoding, int(lengths[group]), filled, *spot)
            found[group].columns.append(Column(field, array))
    for number, spot in zip(of_list.tolist(), spots, strict=True):
        group, encoding = number // len(Encoding), _ALL[number % len(Encoding)]
        found[group].lists[encoding] = _list(buffer, encoding, int(lengths[group]), *spot)
    return found


def _facts(
    buf: int,
    events: Events,
    cells: Cells,
    rows: np.ndarray,
    ends: np.ndarray,
    column_of: np.ndarray,
    fields: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Of each column what `count_columns` finds, and where the columns of each group end."""
    last = np.zeros(len(ends), np.int64)
    in_rows = np.sum(events.first_cell[rows + 1] - events.first_cell[rows])
    facts = np.empty((min(int(in_rows), len(ends) * fields), FACTS), np.int64)
    count = count_columns(buf, rows, ends, events.first_cell, cells, column_of, facts, last)
    return facts[:count], last


_TOLD = [FIELD, KINDS, ROW, PLACE]


def _field(number: int, kinds: int, row: int, place: int) -> Field:
    return Field(number, _ENCODINGS[kinds & ~_WORD], row, place, _known_kinds(kinds))


def _rare(facts: np.ndarray, lengths: np.ndarray, group_of: np.ndarray, groups: int) -> np.ndarray:
    """Which fields are rare, in those of so many groups that have many of these."""
    rare = facts[:, CELLS] * _FEW <= lengths
    # Whoever has to look at the values needs them as a column.
    rare &= (facts[:, KINDS] & _WORD != 0) | (facts[:, KINDS] & ~_KNOWN_BITS == 0)
    many = np.bincount(group_of[rare], minlength=groups) >= MANY
    return rare & many[group_of] if groups else np.zeros(len(facts), np.bool_)


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
_ALL = list(Encoding)
_ENCODINGS = [_encoding(kinds) for kinds in range(1 << NULL)]
_NUMBER_OF = np.array([_ALL.index(encoding) for encoding in _ENCODINGS], np.int64)
_WAY_OF = np.array([_WAYS[encoding] for encoding in _ENCODINGS], np.int64)


@cache
def _known_kinds(cells: int) -> frozenset[Kind] | None:
    """The kinds of values that cells of these kinds are, if there is no need to look at them."""
    if cells & _WORD:
        return frozenset({Kind.TEXT})
    seen = [kind for kind in range(NULL) if cells >> kind & 1]
    return frozenset(_KNOWN[kind] for kind in seen) if set(seen) <= _KNOWN.keys() else None


def _layout(
    facts: np.ndarray, lengths: np.ndarray, group_of: np.ndarray, rare: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How each column is written and where its buffers begin; how many bytes they have; the same of
    lists, after the columns, and which lists these are: by group, then by encoding."""
    kinds = facts[:, KINDS] & ~_WORD
    ways = _WAY_OF[kinds]
    of_field = group_of[rare] * len(_ALL) + _NUMBER_OF[kinds[rare]]
    of_list, number = np.unique(of_field, return_inverse=True)
    rows = lengths[group_of]
    sizes = np.zeros((len(facts) + len(of_list), 4), np.int64)
    sizes[: len(facts), 0] = (rows + 7) // 8
    sizes[: len(facts), 1:3] = _sizes(ways, rows, facts[:, BYTES])
    sizes[: len(facts)][rare] = 0
    cells = np.bincount(number, facts[rare, CELLS], len(of_list)).astype(np.int64)
    texts = np.bincount(number, facts[rare, BYTES], len(of_list)).astype(np.int64)
    of_lists = np.array([_WAYS[_ALL[at]] for at in of_list % len(_ALL)], np.int64)
    sizes[len(facts) :, 0] = 4 * (lengths[of_list // len(_ALL)] + 1)
    sizes[len(facts) :, 1:3] = _sizes(of_lists, cells, texts)
    sizes[len(facts) :, 3] = 2 * cells
    room = _aligned(sizes)
    starts = (np.cumsum(room) - room.ravel()).reshape(room.shape)
    layout = np.column_stack([np.concatenate([ways, of_lists]), starts])
    layout[: len(facts)][rare, WAY] = LISTED
    layout[: len(facts)][rare, VALUES] = len(facts) + number
    return layout, sizes, of_list


def _sizes(ways: np.ndarray, values: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Bytes of so many values, or of the ends of texts, and of the texts."""
    is_text = ways <= AS_JSON
    sizes = np.where(is_text, 4 * (values + 1), 8 * values)
    sizes = np.where(ways == AS_BOOL, (values + 7) // 8, sizes)
    return np.stack([sizes, np.where(is_text, texts, 0)], axis=1)


def _aligned(sizes: np.ndarray) -> np.ndarray:
    return (sizes + 7) & ~7


def _array(
    memory: pa.Buffer,
    encoding: Encoding,
    length: int,
    filled: int,
    starts: list[int],
    size: list[int],
) -> pa.Array:
    """A column as Arrow has it."""
    _, valid, values, texts, _ = starts
    mask = memory.slice(valid, size[0]) if filled < length else None
    buffers = [mask, memory.slice(values, size[1])]
    if starts[WAY] <= AS_JSON:
        buffers.append(memory.slice(texts, size[2]))
    return pa.Array.from_buffers(ARROW_TYPES[encoding], length, buffers, length - filled)


def _list(
    memory: pa.Buffer, encoding: Encoding, length: int, starts: list[int], size: list[int]
) -> pa.ListArray:
    """A list as Arrow has it: for each row the numbers of fields, and their values."""
    codes = np.frombuffer(memory, np.uint16, size[3] // 2, starts[CODES])
    values = _array(memory, encoding, len(codes), len(codes), starts, size)
    each = pa.StructArray.from_arrays([pa.array(codes), values], ["field", "value"])
    offsets = np.frombuffer(memory, np.int32, length + 1, starts[VALID])
    return pa.ListArray.from_arrays(pa.array(offsets), each)

"""The memory layout of columns and lists: which fields get which, their encoding and offset."""

from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np

from eventlake.columnar.fill import (
    AS_BOOL,
    AS_INT,
    AS_JSON,
    AS_MOMENT,
    AS_TEXT,
    BYTES,
    CELLS,
    KINDS,
    LETTER,
    LISTED,
    VALUES,
    WAY,
)
from eventlake.columnar.kinds import Encoding, Kind
from eventlake.columnar.values import (
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

Size = TypeVar("Size", int, np.ndarray)
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
FEW = 8
"""A field is rare if it is in one of so many rows, or fewer."""
MANY = 24
"""From so many rare fields on, lists cost less than their columns."""


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


def encoding_of(kinds: int) -> Encoding:
    """How values of cells of these kinds are written."""
    return _ENCODINGS[kinds & ~_WORD]


@cache
def known_kinds(cells: int) -> frozenset[Kind] | None:
    """The kinds of values that cells of these kinds are, if there is no need to look at them."""
    if cells & _WORD:
        return frozenset({Kind.TEXT})
    seen = [kind for kind in range(NULL) if cells >> kind & 1]
    return frozenset(_KNOWN[kind] for kind in seen) if set(seen) <= _KNOWN.keys() else None


def mark_words(facts: np.ndarray) -> None:
    """Mark columns of texts of which one begins with another character than a date does."""
    words = _WAY_OF[facts[:, KINDS]] == AS_TEXT
    words &= (facts[:, LETTER] < ord("0")) | (facts[:, LETTER] > ord("9"))
    facts[words, KINDS] |= _WORD


def rare_fields(
    facts: np.ndarray, lengths: np.ndarray, group_of: np.ndarray, groups: int
) -> np.ndarray:
    """Which fields are rare, in those of so many groups that have many of these."""
    rare = facts[:, CELLS] * FEW <= lengths
    # Whoever has to look at the values needs them as a column.
    rare &= (facts[:, KINDS] & _WORD != 0) | (facts[:, KINDS] & ~_KNOWN_BITS == 0)
    many = np.bincount(group_of[rare], minlength=groups) >= MANY
    return rare & many[group_of] if groups else np.zeros(len(facts), np.bool_)


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns, and after them lists: what `fill_columns` is told of each, and how many bytes its
    buffers have. Of lists also the group and the encoding."""

    buffers: np.ndarray
    sizes: np.ndarray
    list_groups: np.ndarray
    list_encodings: list[Encoding]
    columns_end: int
    bytes: int


def laid_out(
    facts: np.ndarray,
    lengths: np.ndarray,
    group_of: np.ndarray,
    rare: np.ndarray,
    before: np.ndarray,
) -> Layout:
    """Where the fields of groups of these lengths go, if some of them are rare, and if so many
    bytes come before the columns of each group."""
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
    room = aligned(sizes)
    starts = (np.cumsum(room) - room.ravel()).reshape(room.shape)
    starts[: len(facts)] += np.cumsum(before)[group_of, None]
    starts[len(facts) :] += np.sum(before)
    columns_end = int(np.sum(room[: len(facts)]) + np.sum(before))
    layout = np.column_stack([np.concatenate([ways, of_lists]), starts])
    layout[: len(facts)][rare, WAY] = LISTED
    layout[: len(facts)][rare, VALUES] = len(facts) + number
    return Layout(
        layout,
        sizes,
        of_list // len(_ALL),
        [_ALL[at] for at in of_list % len(_ALL)],
        columns_end,
        columns_end + int(np.sum(room[len(facts) :])),
    )


def are_texts(facts: np.ndarray) -> np.ndarray:
    """Which columns have texts, and so three buffers."""
    return np.asarray(_WAY_OF[facts[:, KINDS] & ~_WORD] <= AS_JSON)


def _sizes(ways: np.ndarray, values: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Bytes of so many values, or of the ends of texts, and of the texts."""
    is_text = ways <= AS_JSON
    sizes = np.where(is_text, 4 * (values + 1), 8 * values)
    sizes = np.where(ways == AS_BOOL, (values + 7) // 8, sizes)
    return np.stack([sizes, np.where(is_text, texts, 0)], axis=1)


def aligned(size: Size) -> Size:
    """Bytes up to the next word."""
    return (size + 7) & ~7

"""Scans JSON values: where each ends, and its kind."""

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import byte, eight, put
from eventlake.columnar.numbers import FAILED, decimal
from eventlake.columnar.text import (
    BAD,
    after_character,
    after_escape,
    after_plain,
    after_space,
    escaped_again,
    hashed,
)

TEXT, DATE, ESCAPED = range(3)
"""Texts: a timestamp, one with escapes, which may be a timestamp as well, or any other."""
INTEGER, OVERFLOW, NUMBER, HUGE, TRUE, FALSE, ARRAY, LOOSE_ARRAY, NULL = range(3, 12)
"""Other values: an integer of 64 bits, a longer one, another number, one that no decimal column can
hold; a truth value; an array as we write it, or one with white space or escapes in it; nothing."""

_FOUR, _FIVE = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFFFF)
_TRUE, _FALSE, _NULL = (
    np.uint64(int.from_bytes(word, "little")) for word in (b"true", b"false", b"null")
)
_SAFE_DIGITS, _MOST_DIGITS = 31, 32  # of an integer part: rounding may carry one digit more
MOST_KEYS = 256  # of the objects in an array at one time


@inlined
def is_verbatim(kind: int) -> bool:
    """Whether a cell is a text that stands in the line as it is."""
    return kind < ESCAPED


@compiled
def after_text(buf: int, i: int, end: int) -> tuple[int, bool]:
    """The place of the closing quote of a text that begins at `i`, and whether it has escapes."""
    escapes = False
    while True:
        i = after_plain(buf, i, end)
        if i >= end:
            return BAD, escapes
        c = byte(buf, i)
        if c == 0x22:
            return i, escapes
        if c == 0x5C:
            i = after_escape(buf, i, end)
            escapes = True
        elif c >= 0x80:
            i = after_character(buf, i, end)
        else:
            return BAD, escapes
        if i < 0:
            return BAD, escapes


@compiled
def after_number(buf: int, i: int, end: int) -> tuple[int, int]:
    """The place after a number, and which kind it is of."""
    start = i
    if byte(buf, i) == 0x2D:
        i += 1
    first = i
    value = np.uint64(0)
    while i < end and 0x30 <= byte(buf, i) <= 0x39:
        value = value * np.uint64(10) + np.uint64(byte(buf, i) - 0x30)
        i += 1
    digits = i - first
    if digits == 0 or (digits > 1 and byte(buf, first) == 0x30):
        return BAD, NUMBER
    most = np.uint64(0x7FFFFFFFFFFFFFFF) + np.uint64(first - start)  # one more below zero
    kind = INTEGER
    if digits > 19 or (digits == 19 and value > most):
        kind = OVERFLOW if digits <= _MOST_DIGITS else HUGE
    odd = False
    if i < end and byte(buf, i) == 0x2E:
        kind, odd = NUMBER, digits > _SAFE_DIGITS
        i += 1
        first = i
        while i < end and 0x30 <= byte(buf, i) <= 0x39:
            i += 1
        if i == first:
            return BAD, NUMBER
    if i < end and byte(buf, i) | 0x20 == 0x65:
        kind, odd = NUMBER, True
        i += 1
        if i < end and (byte(buf, i) == 0x2B or byte(buf, i) == 0x2D):
            i += 1
        first = i
        while i < end and 0x30 <= byte(buf, i) <= 0x39:
            i += 1
        if i == first:
            return BAD, NUMBER
    if odd and decimal(buf, start, i)[2] == FAILED:
        kind = HUGE
    return i, kind


@compiled
def after_word(buf: int, i: int, end: int) -> tuple[int, int]:
    """The place after `true`, `false` or `null`, and which it is."""
    word = eight(buf, i)
    if word & _FOUR == _TRUE and i + 4 <= end:
        return i + 4, TRUE
    if word & _FIVE == _FALSE and i + 5 <= end:
        return i + 5, FALSE
    if word & _FOUR == _NULL and i + 4 <= end:
        return i + 4, NULL
    return BAD, NULL


@compiled
def after_array(
    buf: int,
    i: int,
    end: int,
    depth: int,
    is_object: np.ndarray,
    first_key: np.ndarray,
    keys: np.ndarray,
) -> tuple[int, bool]:
    """The place after an array that begins at `i`, and whether `tight` would write it otherwise.

    BAD if it goes deeper than `depth` levels, or if a key is escaped or stands twice in an object.
    The last three arguments are room to work in: two places for each level, and `MOST_KEYS`.
    """
    n_keys = 0
    level = 0
    loose = False
    value_next = True  # else: a comma or an end
    may_end = False  # nothing is in the innermost one yet
    while True:
        before = i
        i = after_space(buf, i, end)
        loose |= i > before
        if i >= end:
            return BAD, loose
        c = byte(buf, i)
        if not value_next or may_end:
            if c == 0x5D or c == 0x7D:
                if is_object[level] != (c == 0x7D):
                    return BAD, loose
                if is_object[level]:
                    n_keys = first_key[level]
                level -= 1
                i += 1
                if level == 0:
                    return i, loose
                value_next, may_end = False, False
                continue
            if not value_next:
                if c != 0x2C:
                    return BAD, loose
                i += 1
                value_next = True
                continue
        if level > 0 and is_object[level]:
            if c != 0x22:
                return BAD, loose
            close, escapes = after_text(buf, i + 1, end)
            if close < 0 or escapes or n_keys == len(keys):
                return BAD, loose
            key = hashed(buf, i + 1, close, np.uint64(7))
            for k in range(first_key[level], n_keys):
                if keys[k] == key:
                    return BAD, loose
            keys[n_keys] = key
            n_keys += 1
            i = after_space(buf, close + 1, end)
            loose |= i > close + 1
            if i >= end or byte(buf, i) != 0x3A:
                return BAD, loose
            before = i + 1
            i = after_space(buf, before, end)
            loose |= i > before
            if i >= end:
                return BAD, loose
            c = byte(buf, i)
        value_next, may_end = False, False
        if c == 0x22:
            i, escapes = after_text(buf, i + 1, end)
            loose |= escapes
            i += 1 if i >= 0 else 0
        elif c == 0x5B or c == 0x7B:
            level += 1
            if level > depth:
                return BAD, loose
            is_object[level] = c == 0x7B
            first_key[level] = n_keys
            i += 1
            value_next, may_end = True, True
        elif c == 0x2D or 0x30 <= c <= 0x39:
            i, _ = after_number(buf, i, end)
        else:
            i, _ = after_word(buf, i, end)
        if i < 0:
            return BAD, loose


@compiled
def tight(buf: int, start: int, end: int, out: int, at: int) -> int:
    """Write a value as it is encoded again: no white space, and no escapes but those it takes."""
    quoted = False
    i = start
    while i < end:
        c = byte(buf, i)
        if c == 0x5C:
            at = escaped_again(buf, i, out, at)
            i = after_escape(buf, i, end)
            continue
        if c == 0x22:
            quoted = not quoted
        if quoted or (c != 0x20 and c != 0x09 and c != 0x0D and c != 0x0A):
            put(out, at, c)
            at += 1
        i += 1
    return at

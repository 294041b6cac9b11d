"""Scans JSON text: eight bytes at a time where possible, else byte by byte.

A buffer is an address. Its memory ends with `PADDING` zeros, so that eight bytes can be read at
every position.
"""

from typing import Any

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import byte, eight, put

PADDING = 16
BAD = -1
"""Instead of a position: the text is not plain JSON."""

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_QUOTES = _ONES * np.uint64(ord('"'))
_BACKSLASHES = _ONES * np.uint64(ord("\\"))
_BREAKS = _ONES * np.uint64(0x0A)
_SPACES = _ONES * np.uint64(0x20)


@inlined
def after_plain(buf: int, i: int, end: int) -> int:
    """The first position from `i` on with a quote, a backslash, a control or a non-ASCII byte."""
    while i < end:
        word = eight(buf, i)
        quote = word ^ _QUOTES
        slash = word ^ _BACKSLASHES
        odd = (
            ((quote - _ONES) & ~quote)
            | ((slash - _ONES) & ~slash)
            | ((word - _SPACES) & ~word)
            | word
        ) & _HIGH
        if odd == 0:
            i += 8
            continue
        # The lowest mark is exact; a borrow can only set wrong marks above it.
        while odd & np.uint64(0xFF) == 0:
            odd >>= np.uint64(8)
            i += 1
        break
    return min(i, end)


@compiled
def find_lines(buf: int, start: int, end: int, ends: np.ndarray) -> int:
    """Write the positions of line breaks as far as they fit; returns their total number."""
    found = 0
    i = start
    while i < end:
        word = eight(buf, i) ^ _BREAKS
        marks = (word - _ONES) & ~word & _HIGH
        if marks == 0:
            i += 8
            continue
        while marks & np.uint64(0xFF) == 0:
            marks >>= np.uint64(8)
            i += 1
        if i >= end:
            break
        if found < len(ends):
            ends[found] = i
        found += 1
        i += 1
    return found


@inlined
def after_space(buf: int, i: int, end: int) -> int:
    """The first position from `i` on without white space of JSON."""
    while i < end:
        c = byte(buf, i)
        if c != 0x20 and c != 0x09 and c != 0x0D and c != 0x0A:
            break
        i += 1
    return i


@compiled
def after_character(buf: int, i: int, end: int) -> int:
    """The position after a non-ASCII character in UTF-8, or BAD."""
    c = byte(buf, i)
    if c < 0xC2 or c > 0xF4:
        return BAD
    more = 1 if c < 0xE0 else (2 if c < 0xF0 else 3)
    if i + more >= end:
        return BAD
    second = byte(buf, i + 1)
    if (
        (c == 0xE0 and second < 0xA0)  # overlong
        or (c == 0xED and second > 0x9F)  # a lone surrogate
        or (c == 0xF0 and second < 0x90)
        or (c == 0xF4 and second > 0x8F)  # beyond the last character
    ):
        return BAD
    for k in range(1, more + 1):
        if byte(buf, i + k) & 0xC0 != 0x80:
            return BAD
    return i + more + 1


@inlined
def hex_digit(c: int) -> int:
    if 0x30 <= c <= 0x39:
        return np.int64(c) - 0x30
    c |= 0x20
    if 0x61 <= c <= 0x66:
        return np.int64(c) - 0x61 + 10
    return np.int64(BAD)


@compiled
def code_unit(buf: int, i: int) -> int:
    """The value of four hexadecimal digits at `i`, or BAD."""
    unit = np.int64(0)
    for k in range(4):
        digit = hex_digit(byte(buf, i + k))
        if digit < 0:
            return np.int64(BAD)
        unit = unit << 4 | digit
    return unit


@compiled
def after_escape(buf: int, i: int, end: int) -> int:
    """The position after the escape at `i`, or BAD; a surrogate pair is one escape."""
    if i + 1 >= end:
        return BAD
    c = byte(buf, i + 1)
    if c == 0x22 or c == 0x5C or c == 0x2F:
        return i + 2
    if c == 0x62 or c == 0x66 or c == 0x6E or c == 0x72 or c == 0x74:
        return i + 2
    if c != 0x75 or i + 6 > end:
        return BAD
    unit = code_unit(buf, i + 2)
    if unit < 0 or 0xDC00 <= unit <= 0xDFFF:
        return BAD
    if 0xD800 <= unit <= 0xDBFF:
        if i + 12 > end or byte(buf, i + 6) != 0x5C or byte(buf, i + 7) != 0x75:
            return BAD
        low = code_unit(buf, i + 8)
        if not 0xDC00 <= low <= 0xDFFF:
            return BAD
        return i + 12
    return i + 6


@compiled
def unescaped(buf: int, start: int, end: int, out: int, at: int) -> int:
    """Write the text between two quotes without escapes; returns the end."""
    i = start
    while i < end:
        c = byte(buf, i)
        if c == 0x5C:
            at = _put_character(out, at, meant(buf, i))
            i = after_escape(buf, i, end)
        else:
            put(out, at, c)
            at += 1
            i += 1
    return at


@compiled
def meant(buf: int, i: int) -> int:
    """The character of the escape at `i`."""
    c = byte(buf, i + 1)
    if c == 0x75:
        unit = code_unit(buf, i + 2)
        if 0xD800 <= unit <= 0xDBFF:
            return 0x10000 + ((unit - 0xD800) << 10) + (code_unit(buf, i + 8) - 0xDC00)
        return unit
    if c == 0x62:
        return np.int64(0x08)
    if c == 0x66:
        return np.int64(0x0C)
    if c == 0x6E:
        return np.int64(0x0A)
    if c == 0x72:
        return np.int64(0x0D)
    if c == 0x74:
        return np.int64(0x09)
    return np.int64(c)


@compiled
def escaped_again(buf: int, i: int, out: int, at: int) -> int:
    """Write the character of the escape at `i` to JSON, escaped only if necessary."""
    return put_json(out, at, meant(buf, i))


@compiled
def put_json(out: int, at: int, code: int) -> int:
    """Write a character of a JSON string, escaped only if necessary."""
    short = 0
    if code == 0x22 or code == 0x5C:
        short = code
    elif code == 0x08:
        short = 0x62
    elif code == 0x09:
        short = 0x74
    elif code == 0x0A:
        short = 0x6E
    elif code == 0x0C:
        short = 0x66
    elif code == 0x0D:
        short = 0x72
    elif code >= 0x20:
        return _put_character(out, at, code)
    put(out, at, 0x5C)
    if short:
        put(out, at + 1, short)
        return at + 2
    put(out, at + 1, 0x75)
    put(out, at + 2, 0x30)
    put(out, at + 3, 0x30)
    put(out, at + 4, 0x30 + (code >> 4))
    low = code & 0xF
    put(out, at + 5, low + (0x30 if low < 10 else 0x61 - 10))
    return at + 6


@compiled
def _put_character(out: int, at: int, code: int) -> int:
    if code < 0x80:
        put(out, at, code)
        return at + 1
    if code < 0x800:
        put(out, at, 0xC0 | code >> 6)
        put(out, at + 1, 0x80 | code & 0x3F)
        return at + 2
    if code < 0x10000:
        put(out, at, 0xE0 | code >> 12)
        put(out, at + 1, 0x80 | code >> 6 & 0x3F)
        put(out, at + 2, 0x80 | code & 0x3F)
        return at + 3
    put(out, at, 0xF0 | code >> 18)
    put(out, at + 1, 0x80 | code >> 12 & 0x3F)
    put(out, at + 2, 0x80 | code >> 6 & 0x3F)
    put(out, at + 3, 0x80 | code & 0x3F)
    return at + 4


_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)


@inlined
def mixed(h: Any) -> Any:
    h ^= h >> np.uint64(32)
    h *= _MIX_2
    h ^= h >> np.uint64(29)
    return h


@inlined
def hashed(buf: int, start: int, end: int, seed: Any) -> Any:
    """64 bits from bytes, eight at a time."""
    h = seed ^ np.uint64(end - start)
    i = start
    while i + 8 <= end:
        h = (h ^ eight(buf, i)) * _MIX_1
        h ^= h >> np.uint64(32)
        i += 8
    left = end - i
    if left > 0:
        # Bytes beyond the end are shifted out.
        word = eight(buf, i) << np.uint64(8 * (8 - left))
        h = (h ^ word) * _MIX_1
        h ^= h >> np.uint64(32)
    return mixed(h)

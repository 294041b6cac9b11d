"""Exact numbers of any length: the compiled form of `rules/numbers.py`.

A number is its significant digits, and a point among them, before them or after them: `0.00120` has
the digits 120 with the point two places before them.
"""

from typing import Any

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import byte

EXACT, LOSSY, FAILED = range(3)
_NO_NUMBER = np.int64(-1)
_ENDLESS = 10**12  # longer than any line: the exact exponent no longer matters
_MOST_INTEGER_DIGITS, _PLACES = 32, 6
_BIGINT_DIGITS = 19
_HALF = np.uint64(0xFFFFFFFF)
_END_HIGH, _END_LOW = (np.uint64(10**38 >> 64), np.uint64(10**38 & (2**64 - 1)))


@inlined
def is_digit(c: int) -> bool:
    return 0x30 <= c <= 0x39


@compiled
def scan_number(buf: int, start: int, end: int) -> tuple[int, int, int]:
    """The first significant digit (the end of the digits for zero), the end of the digits, and the
    number of digits from there to the point. The first is -1 if the text is not a number of JSON.
    """
    i = start + 1 if start < end and byte(buf, start) == 0x2D else start
    first = i
    while i < end and is_digit(byte(buf, i)):
        i += 1
    whole = i - first
    if whole == 0 or (whole > 1 and byte(buf, first) == 0x30):
        return _NO_NUMBER, 0, 0
    significant, point = first, np.int64(whole)
    if byte(buf, first) == 0x30:
        significant, point = i, np.int64(0)
    if i < end and byte(buf, i) == 0x2E:
        i += 1
        fraction = i
        while i < end and is_digit(byte(buf, i)):
            i += 1
        if i == fraction:
            return _NO_NUMBER, 0, 0
        if point == 0:  # leading zeros are not significant
            significant = fraction
            while significant < i and byte(buf, significant) == 0x30:
                significant += 1
                point -= 1
    stop = i
    if i < end and byte(buf, i) | 0x20 == 0x65:
        i += 1
        down = False
        if i < end and (byte(buf, i) == 0x2B or byte(buf, i) == 0x2D):
            down = byte(buf, i) == 0x2D
            i += 1
        power, first = np.int64(0), i
        while i < end and is_digit(byte(buf, i)):
            power = min(10 * power + np.int64(byte(buf, i)) - 0x30, _ENDLESS)
            i += 1
        if i == first:
            return _NO_NUMBER, 0, 0
        point += -power if down else power
    if i != end:
        return _NO_NUMBER, 0, 0
    return significant, stop, point


@compiled
def bigint(buf: int, start: int, end: int) -> tuple[int, int]:
    """The number truncated toward zero, and the outcome."""
    i, stop, point = scan_number(buf, start, end)
    if i < 0:
        return 0, FAILED
    value, taken, rest, any_digit = np.uint64(0), np.int64(0), False, False
    while i < stop:
        c = byte(buf, i)
        i += 1
        if c == 0x2E:
            continue
        any_digit |= c != 0x30
        if taken < point:
            if taken == _BIGINT_DIGITS:
                return 0, FAILED
            value = value * np.uint64(10) + np.uint64(c - 0x30)
            taken += 1
        else:
            rest |= c != 0x30
    if not any_digit:
        return 0, EXACT
    if point > _BIGINT_DIGITS:
        return 0, FAILED
    while taken < point:
        value *= np.uint64(10)
        taken += 1
    negative = byte(buf, start) == 0x2D
    if value > np.uint64(0x7FFFFFFFFFFFFFFF) + np.uint64(negative):
        return 0, FAILED
    whole = np.int64(value)
    return -whole if negative else whole, LOSSY if rest else EXACT


@inlined
def _times_ten(high: Any, low: Any, digit: Any) -> Any:
    """128 bits times ten, plus a digit."""
    bottom = (low & _HALF) * np.uint64(10) + digit
    top = (low >> np.uint64(32)) * np.uint64(10) + (bottom >> np.uint64(32))
    high = high * np.uint64(10) + (top >> np.uint64(32))
    return high, top << np.uint64(32) | bottom & _HALF


@compiled
def decimal(buf: int, start: int, end: int) -> tuple[Any, Any, int]:
    """The number half-even at six places, as the high and the low half of 128 bits; the outcome."""
    high, low = np.uint64(0), np.uint64(0)
    i, stop, point = scan_number(buf, start, end)
    if i < 0:
        return high, low, FAILED
    kept, taken = point + _PLACES, np.int64(0)
    any_digit, rest, half = False, False, np.int64(0)  # half: the first digit that is cut
    while i < stop:
        c = byte(buf, i)
        i += 1
        if c == 0x2E:
            continue
        digit = np.uint64(c - 0x30)
        any_digit |= digit != 0
        if point > _MOST_INTEGER_DIGITS:
            continue
        if taken < kept:
            if taken < 18:
                low = low * np.uint64(10) + digit
            else:
                high, low = _times_ten(high, low, digit)
        elif taken == kept:
            half = np.int64(digit)
        else:
            rest |= digit != 0
        taken += 1
    if not any_digit:
        return np.uint64(0), np.uint64(0), EXACT
    if point > _MOST_INTEGER_DIGITS:
        return high, low, FAILED
    while taken < kept:
        high, low = _times_ten(high, low, np.uint64(0))
        taken += 1
    if half > 5 or (half == 5 and (rest or low & np.uint64(1) != 0)):
        low += np.uint64(1)
        high += np.uint64(low == 0)
    if high > _END_HIGH or (high == _END_HIGH and low >= _END_LOW):
        return high, low, FAILED
    if byte(buf, start) == 0x2D:
        low = ~low + np.uint64(1)
        high = ~high + np.uint64(low == 0)
    return high, low, LOSSY if rest or half or kept < 0 else EXACT

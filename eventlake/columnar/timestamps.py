"""Parses timestamps: the compiled form of `rules/dates.py`, all of its forms."""

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import byte

NO_DATE = np.iinfo(np.int64).min
"""Instead of microseconds: the text is not a timestamp."""
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_FIRST, _AFTER_LAST = -719_162 * _DAY, 2_932_897 * _DAY  # the years 1 to 9999


@inlined
def _two(buf: int, i: int) -> int:
    """The value of two digits; above 99 if they are not digits."""
    high, low = np.int64(byte(buf, i)) - 0x30, np.int64(byte(buf, i + 1)) - 0x30
    return 10 * high + low if 0 <= high <= 9 and 0 <= low <= 9 else np.int64(100)


@inlined
def may_be_date(buf: int, start: int, end: int) -> bool:
    """Whether the hyphens of a date are in place; most texts fail this test."""
    return end - start >= 10 and byte(buf, start + 4) == 0x2D and byte(buf, start + 7) == 0x2D


@compiled
def timestamp(buf: int, start: int, end: int) -> tuple[int, bool]:
    """Microseconds since 1970 or `NO_DATE`, and whether nonzero digits were cut."""
    if not may_be_date(buf, start, end):
        return NO_DATE, False
    century, year = _two(buf, start), _two(buf, start + 2)
    month, day = _two(buf, start + 5), _two(buf, start + 8)
    if century > 99 or year > 99:
        return NO_DATE, False
    year += 100 * century
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = 31
    if month == 4 or month == 6 or month == 9 or month == 11:
        days = 30
    elif month == 2:
        days = 29 if leap else 28
    if year < 1 or month < 1 or month > 12 or day < 1 or day > days:
        return NO_DATE, False
    # Days since 1970, of years that begin in March: the leap day comes last.
    y = year - (1 if month <= 2 else 0)
    m = month + (9 if month <= 2 else -3)
    of_year = (153 * m + 2) // 5 + day - 1
    micros = (y * 365 + y // 4 - y // 100 + y // 400 + of_year - 719468) * _DAY
    i = start + 10
    if i == end:
        return micros, False
    if end - i < 6 or (byte(buf, i) != 0x54 and byte(buf, i) != 0x20) or byte(buf, i + 3) != 0x3A:
        return NO_DATE, False
    hour, minute = _two(buf, i + 1), _two(buf, i + 4)
    if hour > 23 or minute > 59:
        return NO_DATE, False
    micros += (hour * 60 + minute) * 60 * _SECOND
    i += 6
    cut = False
    if end - i >= 3 and byte(buf, i) == 0x3A:
        second = _two(buf, i + 1)
        if second > 59:
            return NO_DATE, False
        micros += second * _SECOND
        i += 3
        if i < end and byte(buf, i) == 0x2E:
            first = i + 1
            i = first
            unit = np.int64(100_000)
            while i < end and 0x30 <= byte(buf, i) <= 0x39:
                digit = np.int64(byte(buf, i)) - 0x30
                micros += unit * digit
                cut |= unit == 0 and digit != 0
                unit //= 10
                i += 1
            if i == first:
                return NO_DATE, False
    if i < end and byte(buf, i) == 0x5A:
        i += 1
    elif i < end:
        sign = byte(buf, i)
        if (sign != 0x2B and sign != 0x2D) or end - i < 3:
            return NO_DATE, False
        hour, minute = _two(buf, i + 1), np.int64(0)
        i += 3
        if i < end:
            i += 1 if byte(buf, i) == 0x3A else 0
            minute = _two(buf, i) if end - i == 2 else np.int64(100)
            i += 2
        if hour > 23 or minute > 59:
            return NO_DATE, False
        offset = (hour * 60 + minute) * 60 * _SECOND
        micros += offset if sign == 0x2D else -offset
    if i != end or micros < _FIRST or micros >= _AFTER_LAST:
        return NO_DATE, False
    return micros, cut

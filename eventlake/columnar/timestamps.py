"""Parses timestamps in the common formats."""

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import byte

UNREAD = np.iinfo(np.int64).min
"""Not in these forms: `parse_timestamp` knows whether it is a moment at all."""


@inlined
def _number(buf: int, start: int, end: int) -> int:
    """What some digits say, or -1."""
    value = np.int64(0)
    for i in range(start, end):
        digit = np.int64(byte(buf, i)) - 0x30
        if digit < 0 or digit > 9:
            return np.int64(-1)
        value = value * 10 + digit
    return value


@compiled
def moment(buf: int, start: int, end: int) -> int:
    """Microseconds since 1970 of `YYYY-MM-DDTHH:MM:SS[.f]Z` with up to six digits of fraction."""
    length = end - start
    if length < 20 or length > 27 or length == 21 or byte(buf, end - 1) != 0x5A:
        return UNREAD
    if byte(buf, start + 4) != 0x2D or byte(buf, start + 7) != 0x2D:
        return UNREAD
    if byte(buf, start + 10) != 0x54 and byte(buf, start + 10) != 0x20:
        return UNREAD
    if byte(buf, start + 13) != 0x3A or byte(buf, start + 16) != 0x3A:
        return UNREAD
    year, month = _number(buf, start, start + 4), _number(buf, start + 5, start + 7)
    day, hour = _number(buf, start + 8, start + 10), _number(buf, start + 11, start + 13)
    minute, second = _number(buf, start + 14, start + 16), _number(buf, start + 17, start + 19)
    micros = np.int64(0)
    if length > 20:
        micros = _number(buf, start + 20, end - 1)
        if micros < 0 or byte(buf, start + 19) != 0x2E:
            return UNREAD
        for _ in range(27 - length):
            micros *= 10
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = 31
    if month == 4 or month == 6 or month == 9 or month == 11:
        days = 30
    elif month == 2:
        days = 29 if leap else 28
    if year < 1 or month < 1 or month > 12 or day < 1 or day > days:
        return UNREAD
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return UNREAD
    # Days since 1970, of years that begin in March: the leap day comes last.
    y = year - (1 if month <= 2 else 0)
    m = month + (9 if month <= 2 else -3)
    of_year = (153 * m + 2) // 5 + day - 1
    since = y * 365 + y // 4 - y // 100 + y // 400 + of_year - 719468
    return ((since * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000 + micros


@inlined
def is_to_the_millisecond(buf: int, start: int, end: int) -> bool:
    """Whether a moment is written as browsers do: `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    return end - start == 24 and byte(buf, start + 10) == 0x54

"""Parsing timestamps: strict ISO 8601 with valid calendar dates.

`YYYY-MM-DD`, then optionally `T` or a space and `HH:MM[:SS[.f…]]`, then optionally `Z` or an offset
(`+02:00`, `+0200` or `+02`). A date alone has no zone. There is no year 0, no 24:00 and no 61st
second, and the time in UTC must also be in the years 1 to 9999, because readers support no others.
"""

import re
from datetime import date
from functools import lru_cache

_HOUR, _MINUTE = "([01][0-9]|2[0-3])", "([0-5][0-9])"
_FORM = re.compile(
    rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})"
    rf"(?:[T ]{_HOUR}:{_MINUTE}(?::{_MINUTE}(?:\.([0-9]+))?)?"
    rf"(?:Z|([+-]){_HOUR}(?::?{_MINUTE})?)?)?"
)
_MICROS_A_SECOND = 1_000_000
_MICROS_A_DAY = 86_400 * _MICROS_A_SECOND
_FIRST = (date.min.toordinal() - date(1970, 1, 1).toordinal()) * _MICROS_A_DAY
_AFTER_LAST = (date.max.toordinal() + 1 - date(1970, 1, 1).toordinal()) * _MICROS_A_DAY


def parse_timestamp(text: str) -> tuple[int, bool] | None:
    """Microseconds since 1970, and whether nonzero digits were cut; None if not a date."""
    match = _FORM.fullmatch(text)
    midnight = _midnight(match[1]) if match else None
    if match is None or midnight is None:
        return None
    _, hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups("00")
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    offset = int(offset_hour) * 3600 + int(offset_minute) * 60
    seconds += offset if sign == "-" else -offset
    micros = midnight + seconds * _MICROS_A_SECOND + int(fraction[:6].ljust(6, "0"))
    cut = fraction[6:].strip("0")
    return (micros, cut != "") if _FIRST <= micros < _AFTER_LAST else None


@lru_cache(10_000)
def _midnight(day: str) -> int | None:
    """The start of a day in microseconds since 1970; None for an invalid date."""
    try:
        ordinal = date.fromisoformat(day).toordinal()
    except ValueError:
        return None
    return (ordinal - date(1970, 1, 1).toordinal()) * _MICROS_A_DAY

"""Which texts are dates, and which moment each names: strictly ISO 8601, on a real calendar.

`YYYY-MM-DD`, then optionally `T` or a space and `HH:MM[:SS[.f…]]`, then optionally `Z` or an offset
(`+02:00`, `+0200` or `+02`). A date alone has no zone. There is no year 0, no 24:00 and no 61st
second, and the moment in UTC lies in the years 1 to 9999 too, since no reader knows others.
"""

import re
from datetime import UTC, datetime, timedelta

_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?"
    r"(?:Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MINUTE = 60_000_000
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def parse_timestamp(text: str) -> tuple[int, bool] | None:
    """Microseconds since 1970 and whether digits other than 0 were cut; None for no date."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    *clock, fraction, sign, offset_hours, offset_minutes = match.groups(default="0")
    year, month, day, hour, minute, second = map(int, clock)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    micros = (moment - _EPOCH) // _MICROSECOND + int(fraction[:6].ljust(6, "0"))
    offset = (int(offset_hours) * 60 + int(offset_minutes)) * _MINUTE
    micros += offset if sign == "-" else -offset
    return (micros, bool(fraction[6:].strip("0"))) if _FIRST <= micros <= _LAST else None

"""Facts as text for people, and text from senders as one line that shows what it is."""

from datetime import UTC, datetime
from typing import Any

import msgspec

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
# Control characters are shown, not executed: names and values contain what others sent. The last
# lines have those that change the direction of text or have no width, and lone surrogates, which no
# terminal can encode.
_CONTROLS = (
    {n: f"\\x{n:02x}" for n in (*range(0x20), *range(0x7F, 0xA0))}
    | {n: f"\\u{n:04x}" for n in (0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F))}
    | {n: f"\\u{n:04x}" for n in (*range(0x2066, 0x206A), 0xFEFF, *range(0xD800, 0xE000))}
    | {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
)
_SEVERAL_LINES = {sign: to for sign, to in _CONTROLS.items() if sign != 0x0A}


def plain(value: object) -> str:
    """Text that is safe to print on one line."""
    return str(value).translate(_CONTROLS)


def plain_lines(text: object) -> str:
    """Text that is safe to print, on as many lines as it has."""
    return str(text).translate(_SEVERAL_LINES)


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size(count: float) -> str:
    """Bytes with at most three digits."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 1 if unit and value < 9.95 else 0
    return f"{value:.{digits}f} {_UNITS[unit]}"


def headline(error: object) -> str:
    """The first line of an error, with the first of what it lists, or the last of a stack trace."""
    lines = [line.strip() for line in str(error or "unknown").splitlines() if line.strip()]
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        return plain(lines[-1])
    return plain(" ".join(lines[: 1 + lines[0].endswith(":")]))


def number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def percent(share: float | None) -> str:
    """A share with at most three digits; the least ones are not shown as none."""
    if share is None:
        return "-"
    if not share:
        return "0 %"
    if share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def span(seconds: float) -> str:
    """A duration in its two largest units."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    rest, parts = round(seconds), list[str]()
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if rest >= length or (unit == "s" and not parts):
            parts.append(f"{rest // length} {unit}")
            rest %= length
        elif parts:
            break
    return " ".join(parts[:2])


def moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def shown(value: Any) -> str:
    """A value as text: times without zone, as all are UTC; nested values as JSON."""
    if isinstance(value, datetime):
        precision = "microseconds" if value.microsecond % 1000 else "milliseconds"
        return value.replace(tzinfo=None).isoformat(" ", precision)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return msgspec.json.Encoder(decimal_format="number").encode(value).decode()
    return str(value)

"""Numbers, times and foreign text in the words of a terminal."""

from datetime import UTC, datetime

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
# What would move the cursor or ring the bell is shown, not done: cells hold what others sent.
_CONTROLS = {n: f"\\x{n:02x}" for n in (*range(0x20), *range(0x7F, 0xA0))} | {
    0x09: "\\t",
    0x0A: "\\n",
    0x0D: "\\r",
}


def plain(value: object) -> str:
    """Text that is safe to print on one line."""
    return str(value).translate(_CONTROLS)


def headline(error: object) -> str:
    """An error in one line: its first, or, of a stack trace, its last."""
    lines = [line for line in str(error or "unknown").splitlines() if line.strip()]
    traced = any(line.startswith("Traceback (most recent call last)") for line in lines)
    return plain(lines[-1 if traced else 0].strip())


def number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size(count: int | None) -> str:
    """Bytes with three digits at most."""
    if count is None:
        return number(None)
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 1 if unit and value < 9.95 else 0
    return f"{value:.{digits}f} {_UNITS[unit]}"


def span(seconds: float) -> str:
    """A length of time in its two largest units."""
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

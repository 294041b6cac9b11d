"""Text for people: counts and sizes, and text from senders as one line that shows what it is."""

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

"""JSON values of every kind and spelling, as strategies of Hypothesis."""

import json
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from eventlake.rules.parse import parse_value


def numbers(most_digits: int, most_places: int) -> SearchStrategy[str]:
    """Numbers as JSON spells them, with up to about this many digits on each side of the point."""
    digits = st.one_of(
        st.text("0123456789", min_size=1, max_size=most_digits),
        # All nines are carried by rounding, fives are halves.
        st.builds(lambda digit, n: digit * n, st.sampled_from("0159"), st.integers(1, most_digits)),
    )
    places = st.one_of(
        st.text("0123456789", max_size=most_places),
        st.builds(lambda digit, n: digit * n, st.sampled_from("059"), st.integers(0, most_places)),
        st.builds(
            lambda lead, end: lead + end,
            st.text("0129", max_size=6),
            st.sampled_from(["5", "50", "51", "49"]),
        ),
    )
    return st.builds(
        lambda sign, whole, part: f"{sign}{whole.lstrip('0') or '0'}{'.' * bool(part)}{part}",
        st.sampled_from(["", "-"]),
        digits,
        places,
    )


PLAIN_NUMBERS = st.one_of(numbers(5, 8), numbers(33, 7), numbers(21, 19))
EXPONENTS = st.builds(
    lambda number, e, sign, power: f"{number}{e}{sign}{power}",
    numbers(4, 4),
    st.sampled_from("eE"),
    st.sampled_from(["", "+", "-"]),
    st.sampled_from([0, 1, 3, 6, 7, 18, 31, 32, 33, 400]),
)
INTEGERS = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**32 - 1, 10**32, 10**40]),
)
DAYS = st.one_of(
    st.dates().map(str),
    st.sampled_from([
        "0000-01-01", "0001-01-01", "9999-12-31", "2026-02-29", "2026-02-30", "2024-02-29",
        "1970-01-01", "2026-13-01", "2026-00-10", "2026-10-00", "1900-02-29", "2000-02-29",
        "20261001", "2026-1-1",
    ]),
)  # fmt: skip
CLOCKS = st.one_of(
    st.times().map(lambda t: f"{t:%H:%M:%S}"),
    st.sampled_from([
        "00:00:00", "23:59:59", "23:59:60", "24:00:00", "12:60:00", "12:00", "7:00:00", "12",
        "120000",
    ]),
)  # fmt: skip
FRACTIONS = st.one_of(
    st.just(""),
    st.text("0123456789", min_size=1, max_size=9).map(lambda digits: f".{digits}"),
    st.sampled_from([".", ",5", ".000000000", ".123456000", ".1234560001"]),
)
ZONES = st.sampled_from(
    ["", "Z", "z", "+02:00", "-02:00", "+0200", "+02", "+14:00", "-23:59", "+24:00", " Z", "UTC"]
)
DATES = st.one_of(
    DAYS,
    st.builds(
        lambda day, gap, clock, fraction, zone: f"{day}{gap}{clock}{fraction}{zone}",
        DAYS,
        st.sampled_from(["T", "T", "T", "t", " ", "  "]),
        CLOCKS,
        FRACTIONS,
        ZONES,
    ),
)


def plain_dates(gap: str, zone: str, places: int) -> SearchStrategy[str]:
    """Date-times of one form, as one producer writes them."""
    return st.builds(
        lambda day, clock, part: f"{day}{gap}{clock}{f'.{part:0{places}}' if places else ''}{zone}",
        st.dates(),
        st.times().map(lambda t: f"{t:%H:%M:%S}"),
        st.integers(0, 10 ** max(places, 1) - 1),
    )


TEXTS = st.one_of(
    st.sampled_from(["", " ", "true", "False", "TRUE", "null", "NaN", "[1]", "\0", "😀", "007"]),
    st.text(max_size=6).filter(lambda text: text.isascii() or text.isprintable()),
    PLAIN_NUMBERS,
    EXPONENTS,
    DATES,
)
SCALARS: SearchStrategy[Any] = st.one_of(
    INTEGERS, PLAIN_NUMBERS.map(parse_value), EXPONENTS.map(parse_value), st.booleans(), TEXTS
)
ARRAYS = st.recursive(
    st.lists(st.one_of(st.none(), SCALARS), max_size=3),
    lambda inner: st.lists(
        st.one_of(inner, st.dictionaries(st.text(max_size=3), SCALARS, max_size=2)), max_size=2
    ),
    max_leaves=4,
)
ANY = st.one_of(SCALARS, ARRAYS)


def column_of(values: SearchStrategy[Any]) -> SearchStrategy[list[Any]]:
    """Values of one kind, so that a column of nothing else takes the fast way."""
    return st.lists(values, min_size=1, max_size=6)


COLUMNS: SearchStrategy[list[Any]] = st.one_of(
    column_of(ANY),
    column_of(st.integers(-(2**63), 2**63 - 1)),
    column_of(INTEGERS),
    column_of(st.booleans()),
    column_of(TEXTS),
    column_of(ARRAYS),
    column_of(PLAIN_NUMBERS.map(parse_value)),
    column_of(numbers(32, 6).map(parse_value)),
    column_of(numbers(19, 18).map(parse_value)),
    column_of(st.one_of(PLAIN_NUMBERS, EXPONENTS).map(parse_value)),
    column_of(DATES),
    column_of(DAYS),
    column_of(plain_dates("T", "Z", 3)),
    st.tuples(
        st.sampled_from("T "), st.sampled_from(["", "Z", "+02:00"]), st.integers(0, 9)
    ).flatmap(lambda form: column_of(st.one_of(plain_dates(*form), plain_dates(*form), DAYS))),
)


def json_of(value: Any) -> str:
    """A value as JSON, numbers as they were written."""
    return msgspec.json.encode(value).decode()


_SPACE = st.sampled_from(["", "", "", "", " ", "\t", " \r "])
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@st.composite
def spelled(draw: DrawFn, value: Any, tidy: bool = False) -> str:
    """A value as JSON text; objects are dicts or, where keys stand twice, lists of pairs."""
    if tidy:
        return msgspec.json.encode(value).decode()
    if isinstance(value, str):
        return draw(_text(value))
    if isinstance(value, dict):
        members = [
            f"{draw(_SPACE)}{draw(_text(key))}{draw(_SPACE)}:{draw(_SPACE)}{draw(spelled(inner))}"
            for key, inner in value.items()
        ]
        return "{" + f"{draw(_SPACE)},".join(members) + draw(_SPACE) + "}"
    if isinstance(value, list):
        inner = [draw(_SPACE) + draw(spelled(item)) + draw(_SPACE) for item in value]
        return "[" + ",".join(inner) + draw(_SPACE) + "]"
    return msgspec.json.encode(value).decode()


def _text(text: str) -> SearchStrategy[str]:
    return st.tuples(*(_character(c) for c in text)).map(lambda parts: f'"{"".join(parts)}"')


def _character(c: str) -> SearchStrategy[str]:
    escaped = [json.dumps(c)[1:-1], json.dumps(c)[1:-1].upper().replace("\\U", "\\u")]
    if len(escaped[1]) < 6:
        escaped[1] = f"\\u{ord(c):04X}"
    if c == "/":
        escaped.append("\\/")
    if c in _SHORT or ord(c) < 0x20:
        return st.sampled_from([*escaped, _SHORT.get(c, f"\\u{ord(c):04x}")])
    return st.sampled_from([c, c, c, c, c, c, *escaped])

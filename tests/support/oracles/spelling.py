"""JSON written in every way it may be written: with white space, escapes, and keys twice."""

import json
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

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

"""Parsing a line of the raw archive: strict JSON, numbers as written.

Objects are `dict`, arrays `list`, text `str`; integers are `int`, and every number that an `int`
cannot give back as it was written (a fraction, an exponent, `-0`, thousands of digits) is
`msgspec.Raw`, its text. A key that occurs twice in one object has its last value.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from eventlake.rules.events import Reason, Reject

Event = dict[str, Any]

_DECODER = msgspec.json.Decoder(float_hook=msgspec.Raw)
# msgspec reads -0 as 0, the only number that it does not preserve.
_MINUS_ZERO = re.compile(rb"-0[,}\]\s]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN = 60


class LineLimits(Protocol):
    """The limits that apply to one line."""

    @property
    def line_bytes(self) -> int: ...
    @property
    def depth(self) -> int: ...


def parse_line(line: bytes, limits: LineLimits) -> Event:
    """Parse the event on a line (without line break); raises `Reject`."""
    if len(line) > limits.line_bytes:
        raise Reject(Reason.TOO_LONG, f"over {limits.line_bytes} bytes")
    try:
        value = _decode(line)
    except RecursionError as error:
        raise _too_deep(limits) from error
    if type(value) is not dict:
        raise Reject(Reason.NOT_AN_OBJECT, f"it is {_shown(line)}")
    # Nesting cannot exceed the number of opening brackets, so most lines need no full check.
    if line.count(b"{") + line.count(b"[") > limits.depth and _depth(value) > limits.depth:
        raise _too_deep(limits)
    return value


def _decode(line: bytes) -> Any:
    try:
        value = _DECODER.decode(line)
    except msgspec.ValidationError:
        return _exact(line)  # an integer of thousands of digits
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _explained(line, error) from error
    return _exact(line) if _MINUS_ZERO.search(line) else value


def parse_value(text: str) -> Any:
    """Parse any JSON value, with numbers as written."""
    return _exact(text.encode())


def _exact(line: bytes) -> Any:
    """The slow parser, which receives the text of every number."""
    try:
        return json.loads(
            line.decode(),
            parse_int=_integer,
            parse_float=msgspec.Raw,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise _explained(line, error) from error


def _integer(text: str) -> int | msgspec.Raw:
    if text == "-0":
        return msgspec.Raw(text)
    try:
        return int(text)
    except ValueError:
        return msgspec.Raw(text)


def _refuse_constant(text: str) -> None:
    raise Reject(Reason.NOT_JSON, f"{text} is no JSON value")


def _object(pairs: list[tuple[str, Any]]) -> Event:
    """Build an object; reject invalid strings, including those of overwritten keys."""
    for key, value in pairs:
        _refuse_surrogates((key, value))
    return dict(pairs)


def _refuse_surrogates(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, str) and _SURROGATE.search(value):
            raise Reject(Reason.LONE_SURROGATE)
        if isinstance(value, list):
            _refuse_surrogates(value)


def _explained(line: bytes, error: Exception) -> Reject:
    """The reason to reject a line, from the parser with the best error message."""
    try:
        line.decode()
    except UnicodeDecodeError as bad:
        return Reject(Reason.BAD_UTF8, f"byte {bad.start + 1} is 0x{line[bad.start]:02x}")
    if isinstance(error, json.JSONDecodeError):
        return Reject(Reason.NOT_JSON, f"{_in_words(error)} at character {error.pos + 1}")
    try:
        _exact(line)
    except Reject as reject:
        return reject
    return Reject(Reason.NOT_JSON, str(error))


def _too_deep(limits: LineLimits) -> Reject:
    return Reject(Reason.TOO_DEEP, f"allowed are {limits.depth} levels")


def _in_words(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "something follows the end of the value"
    return error.msg[0].lower() + error.msg[1:].removesuffix(" at").removesuffix(" starting")


def _depth(value: Any) -> int:
    """The nesting depth of a value."""
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in (dict, list)
        ]
    return depth


def _shown(line: bytes) -> str:
    text = line.decode().strip()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

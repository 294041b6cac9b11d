"""Kinds of values, and the type of a new column from the kinds of its values."""

from collections.abc import Collection
from enum import StrEnum

import msgspec

from eventlake.rules.dates import parse_timestamp
from eventlake.rules.numbers import BIGINT_MAX, BIGINT_MIN, DECIMAL_INTEGER_DIGITS, Number
from eventlake.rules.types import LakeType


class Kind(StrEnum):
    """The kind of a value, for type inference."""

    INT64 = "int64"
    BIGINT_OVERFLOW = "bigint_overflow"
    NUMBER = "number"
    HUGE = "huge"
    BOOL = "bool"
    DATE = "date"
    TEXT = "text"
    ARRAY = "array"


# Numbers with a fraction or exponent, `-0`, and integers too long for Python to convert come as
# `msgspec.Raw`: their text. Other integers are `int`.
Leaf = str | bool | int | msgspec.Raw | list[object]


_TYPES = {
    frozenset({Kind.INT64}): LakeType.BIGINT,
    frozenset({Kind.BOOL}): LakeType.BOOLEAN,
    frozenset({Kind.DATE}): LakeType.TIMESTAMP,
}
_DECIMALS = frozenset({Kind.INT64, Kind.BIGINT_OVERFLOW, Kind.NUMBER})
_HUGE = 10**DECIMAL_INTEGER_DIGITS


def kind_of(value: Leaf) -> Kind:
    """The kind of one value that is neither null nor an object; `""` is a string."""
    if isinstance(value, bool):
        return Kind.BOOL
    if isinstance(value, int):
        return _kind_of_integer(value)
    if isinstance(value, str):
        return Kind.DATE if parse_timestamp(value) else Kind.TEXT
    if isinstance(value, msgspec.Raw):
        return _kind_of_number(bytes(value).decode())
    if isinstance(value, list):
        return Kind.ARRAY
    raise TypeError(f"{type(value).__name__} is not a value of a column")


def infer(kinds: Collection[Kind]) -> LakeType:
    """The type of a new column from the kinds of all its values."""
    seen = frozenset(kinds)
    if not seen:
        raise ValueError("a column without values has no type")
    if seen in _TYPES:
        return _TYPES[seen]
    return LakeType.DECIMAL if seen <= _DECIMALS else LakeType.STRING


def _kind_of_integer(value: int) -> Kind:
    if BIGINT_MIN <= value <= BIGINT_MAX:
        return Kind.INT64
    return Kind.BIGINT_OVERFLOW if -_HUGE < value < _HUGE else Kind.HUGE


def _kind_of_number(text: str) -> Kind:
    number = Number.parse(text)
    if number is None:
        raise ValueError(f"{text!r} is not a JSON number")
    if number.to_decimal() is None:
        return Kind.HUGE
    if text.lstrip("-").isdigit():
        return Kind.INT64 if number.to_bigint() else Kind.BIGINT_OVERFLOW
    return Kind.NUMBER

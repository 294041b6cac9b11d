"""Casting values to column types: the simple reference for faster implementations.

The same rules apply to numbers and to strings that contain numbers. An empty string becomes null
in all but string columns, and counts as exact.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import StrEnum

import msgspec

from eventlake.rules.dates import parse_timestamp
from eventlake.rules.inference import Leaf
from eventlake.rules.numbers import Number
from eventlake.rules.types import LakeType

# Timestamps are microseconds since 1970; decimals have a scale of six.
Cell = int | bool | Decimal | str | None


class Outcome(StrEnum):
    """The result of a cast; lossy and failed values are rescued, failed ones become null."""

    EXACT = "exact"
    LOSSY = "lossy"
    FAILED = "failed"


Cast = tuple[Cell, Outcome]
_FAILED: Cast = (None, Outcome.FAILED)
_BOOLEANS = {"true": True, "false": False}


def cast(value: Leaf, type: LakeType) -> Cast:
    """Cast a value that is neither null nor an object."""
    if value == "" and type is not LakeType.STRING:
        return None, Outcome.EXACT
    return _CASTS[type](value)


def text_of(value: Leaf) -> str:
    """A value as a string: numbers as written, arrays as JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _to_bigint(value: Leaf) -> Cast:
    number = Number.parse(text_of(value))
    fitted = number.to_bigint() if number else None
    return _outcome(*fitted) if fitted else _FAILED


def _to_decimal(value: Leaf) -> Cast:
    number = Number.parse(text_of(value))
    fitted = number.to_decimal() if number else None
    return _outcome(*fitted) if fitted else _FAILED


def _to_boolean(value: Leaf) -> Cast:
    if isinstance(value, str):
        spelled = _BOOLEANS.get(value.lower())
        return _FAILED if spelled is None else (spelled, Outcome.EXACT)
    return (value, Outcome.EXACT) if isinstance(value, bool) else _FAILED


def _to_timestamp(value: Leaf) -> Cast:
    moment = parse_timestamp(value) if isinstance(value, str) else None
    if moment is None:
        return _FAILED
    micros, cut = moment
    return _outcome(micros, not cut)


def _to_string(value: Leaf) -> Cast:
    return text_of(value), Outcome.EXACT


_CASTS: Mapping[LakeType, Callable[[Leaf], Cast]] = {
    LakeType.BIGINT: _to_bigint,
    LakeType.DECIMAL: _to_decimal,
    LakeType.BOOLEAN: _to_boolean,
    LakeType.TIMESTAMP: _to_timestamp,
    LakeType.STRING: _to_string,
}


def _outcome(cell: Cell, exact: bool) -> Cast:
    return cell, Outcome.EXACT if exact else Outcome.LOSSY

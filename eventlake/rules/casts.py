"""How a value goes into a column that has its type already: slow, plain, and the measure of others.

Numbers, whether sent as such or spelled by a text, go by the same rules. An empty text is null in
every column but a string one, and nothing is lost by that.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import StrEnum

import msgspec

from eventlake.rules.dates import parse_timestamp
from eventlake.rules.inference import Leaf
from eventlake.rules.numbers import Number
from eventlake.rules.types import LakeType

# Timestamps are microseconds since 1970; decimals have six places.
Cell = int | bool | Decimal | str | None


class Outcome(StrEnum):
    """What became of a value; all but exact ones are rescued, failed ones are null."""

    EXACT = "exact"
    LOSSY = "lossy"
    FAILED = "failed"


Cast = tuple[Cell, Outcome]
_FAILED: Cast = (None, Outcome.FAILED)
_BOOLEANS = {"true": True, "false": False}


def cast(value: Leaf, type: LakeType) -> Cast:
    """The cell for a value that is neither null nor an object, and how well it fits."""
    if value == "" and type is not LakeType.STRING:
        return None, Outcome.EXACT
    return _CASTS[type](value)


def text_of(value: Leaf) -> str:
    """A value as text: numbers as they were written, arrays as JSON."""
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

"""How values of one field are staged: exactly, and as plainly as their kinds allow.

A staged column says in its metadata how its values are written:

    int     int64
    bool    bool
    text    string
    number  string: any JSON number, verbatim
    json    string: any JSON value, verbatim (arrays, or several kinds mixed)

Nothing is cast here. The type of a column is known only when every task has been heard.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.casting.dates import all_dates
from lake.kinds import Kind, kind_of
from lake.parse import parse_value


class Encoding(StrEnum):
    INT = "int"
    BOOL = "bool"
    TEXT = "text"
    NUMBER = "number"
    JSON = "json"


def encode(values: list[Any]) -> tuple[Encoding, pa.Array, set[Kind]]:
    """The values in the plainest encoding that holds them all, and the kinds they are of."""
    types = set(map(type, values))
    if types == {str}:
        texts = pa.array(values, pa.string())
        return Encoding.TEXT, texts, {Kind.DATE if all_dates(texts) else Kind.TEXT}
    if types == {int}:
        try:
            return Encoding.INT, pa.array(values, pa.int64()), {Kind.INT64}
        except (OverflowError, pa.ArrowInvalid):
            return _numbers(values)
    if types == {bool}:
        return Encoding.BOOL, pa.array(values, pa.bool_()), {Kind.BOOL}
    if types <= {int, msgspec.Raw}:
        return _numbers(values)
    return Encoding.JSON, _verbatim(values), set(map(kind_of, values))


# Of these forms nothing but the kind need be known, and most numbers have one of them.
_FORMS = {r"^-?\d{1,18}$": Kind.INT64, r"^-?\d{1,31}\.\d+$": Kind.NUMBER}


def _numbers(values: list[Any]) -> tuple[Encoding, pa.Array, set[Kind]]:
    texts = _verbatim(values)
    kinds: set[Kind] = set()
    others = np.ones(len(texts), dtype=bool)
    for form, kind in _FORMS.items():
        found = pc.match_substring_regex(texts, form).to_numpy(zero_copy_only=False)
        if found.any():
            kinds.add(kind)
            others &= ~found
    kinds.update(kind_of(values[place]) for place in np.flatnonzero(others))
    return Encoding.NUMBER, texts, kinds


def _verbatim(values: list[Any]) -> pa.Array:
    encode_one = msgspec.json.Encoder().encode
    return pa.array(map(encode_one, values), pa.binary(), size=len(values)).cast(pa.string())


def decoder(encoding: Encoding) -> Callable[[Any], Any]:
    """The way back from a staged value to the value that was parsed."""
    if encoding in (Encoding.NUMBER, Encoding.JSON):
        return parse_value
    return lambda value: value

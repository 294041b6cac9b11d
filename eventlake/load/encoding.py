"""How values of one field are staged: exactly, and as plainly as their kinds allow.

A staged column says in its metadata how its values are written:

    int     int64
    bool    bool
    text    string
    millis  timestamp: a text `YYYY-MM-DDTHH:MM:SS.mmmZ`, no other form of the same moment
    number  string: any JSON number, verbatim
    json    string: any JSON value, verbatim (arrays, or several kinds mixed)

Nothing is cast here. The type of a column is known only when every task has been heard.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.columnar.kinds import Encoding, Kind
from eventlake.rules.dates import parse_timestamp
from eventlake.rules.inference import kind_of
from eventlake.rules.parse import parse_value
from eventlake.rules.types import LakeType

_PLAIN = {
    # What Arrow reads as we do; year 0, offsets and finer fractions go the slow way.
    r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?Z$": pa.timestamp("us", tz="UTC"),
    r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d{1,6})?)?$": pa.timestamp("us"),
}
_MILLIS, _MILLIS_LENGTH = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", 24


def plain_dates(texts: pa.Array) -> pa.Array | None:
    """The texts as timestamps if all are dates in a form that Arrow reads exactly, else None."""
    for form, read_as in _PLAIN.items():
        if _have_form(texts, form):
            if pc.any(pc.starts_with(texts, "0000")).as_py():
                return None
            try:
                return texts.cast(read_as).cast(LakeType.TIMESTAMP.arrow)
            except pa.ArrowInvalid:
                return None
    return None


def _have_form(texts: pa.Array, form: str) -> bool:
    if model := _model_of(texts):
        return re.fullmatch(form, model, re.ASCII) is not None
    # Arrow takes longer to compile an expression than to look at some hundred texts.
    return pc.all(pc.match_substring_regex(texts, form)).as_py() is not False


def _model_of(texts: pa.Array) -> str:
    """One of the texts if all are like it, but for what digits they have; else none."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    sizes, count = np.diff(offsets), len(texts) - texts.null_count
    size = int(np.max(sizes, initial=0))
    if not size or np.count_nonzero(sizes == size) != count or np.sum(sizes) != size * count:
        return ""
    data = np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    letters = data.reshape(count, size)
    are_digits = (letters[0] >= ord("0")) & (letters[0] <= ord("9"))
    digits, others = letters[:, are_digits], letters[:, ~are_digits]
    alike = np.all((digits >= ord("0")) & (digits <= ord("9"))) and np.all(others == others[0])
    return letters[0].tobytes().decode() if alike else ""


def millis(texts: pa.Array) -> pa.Array | None:
    """The texts as timestamps if all are dates as browsers write them, to the millisecond."""
    # Nearly all columns of other texts have another length in the first of them.
    if len(next(text for text in texts if text.is_valid).as_py()) != _MILLIS_LENGTH:
        return None
    written_so = pc.all(pc.match_substring_regex(texts, _MILLIS)).as_py()
    return plain_dates(texts) if written_so else None


def millis_texts(moments: pa.Array) -> pa.Array:
    """The way back: how moments to the millisecond were written."""
    return pc.strftime(moments.cast(pa.timestamp("ms", tz="UTC")), "%Y-%m-%dT%H:%M:%SZ")


def all_dates(texts: pa.Array) -> bool:
    """Whether every text is a real date; the first that is not ends the search."""
    first = next(text for text in texts if text.is_valid)
    if parse_timestamp(first.as_py()) is None:
        return False
    if plain_dates(texts) is not None:
        return True
    return all(
        parse_timestamp(text) is not None for text in pc.unique(texts.drop_null()).to_pylist()
    )


def encode(values: list[Any]) -> tuple[Encoding, pa.Array]:
    """The values in the plainest encoding that holds them all.

    None is no value: there has to be another, and null stands in its place.
    """
    types = set(map(type, values))
    types.discard(type(None))
    if types == {str}:
        texts = pa.array(values, pa.string())
        moments = millis(texts)
        return (Encoding.TEXT, texts) if moments is None else (Encoding.MILLIS, moments)
    if types == {int}:
        try:
            return Encoding.INT, pa.array(values, pa.int64())
        except (OverflowError, pa.ArrowInvalid):
            return Encoding.NUMBER, _verbatim(values)
    if types == {bool}:
        return Encoding.BOOL, pa.array(values, pa.bool_())
    number = types <= {int, msgspec.Raw}
    return Encoding.NUMBER if number else Encoding.JSON, _verbatim(values)


_KINDS = {Encoding.INT: Kind.INT64, Encoding.BOOL: Kind.BOOL, Encoding.MILLIS: Kind.DATE}


def kinds_of(encoding: Encoding, array: pa.Array) -> set[Kind]:
    """The kinds that the values of a column are of, given how they are encoded."""
    if encoding in _KINDS:
        return {_KINDS[encoding]}
    if encoding is Encoding.TEXT:
        return {Kind.DATE if all_dates(array) else Kind.TEXT}
    kinds: set[Kind] = set()
    others = array.is_valid()
    for form, kind in _FORMS.items():
        matches = pc.match_substring_regex(array, form).fill_null(False)
        if pc.any(matches).as_py():
            kinds.add(kind)
            others = pc.and_not(others, matches)
    odd = pc.unique(array.filter(others)).to_pylist()
    return kinds.union(kind_of(parse_value(text)) for text in odd)


# Of these forms nothing but the kind need be known, and most values have one of them.
_FORMS = {
    r"^-?\d{1,18}$": Kind.INT64,
    r"^-?\d{1,31}\.\d+$": Kind.NUMBER,
    r"^\[": Kind.ARRAY,
}


def _verbatim(values: list[Any]) -> pa.Array:
    """JSON texts; all at once, since no JSON text has a line break in it."""
    texts: list[bytes | None] = list(_ENCODER.encode_lines(values).split(b"\n"))
    texts.pop()
    if None in values:
        texts = [None if v is None else text for v, text in zip(values, texts, strict=True)]
    return pa.array(texts, pa.binary()).cast(pa.string())


_ENCODER = msgspec.json.Encoder()


def joined(parts: Sequence[tuple[Encoding, pa.Array]]) -> tuple[Encoding, pa.Array]:
    """Parts of one column as one, in the plainest encoding that holds them all."""
    if len(parts) == 1:
        return parts[0]
    encodings = {encoding for encoding, _ in parts}
    if len(encodings) == 1:
        [encoding] = encodings
    else:
        encoding = next((e for e, holds in _HOLDS.items() if encodings <= holds), Encoding.JSON)
        parts = [(encoding, _widened(array, of, encoding)) for of, array in parts]
    return encoding, pa.concat_arrays([array for _, array in parts])


_HOLDS = {
    Encoding.NUMBER: {Encoding.INT, Encoding.NUMBER},
    Encoding.TEXT: {Encoding.MILLIS, Encoding.TEXT},
}
"""What becomes one of these without losing anything."""


def as_written(encoding: Encoding, array: pa.Array) -> tuple[Encoding, pa.Array]:
    """Moments as the texts that they are; all else stays."""
    moments = encoding is Encoding.MILLIS
    return (Encoding.TEXT, millis_texts(array)) if moments else (encoding, array)


def _widened(array: pa.Array, encoding: Encoding, into: Encoding) -> pa.Array:
    encoding, array = as_written(encoding, array)
    if encoding is Encoding.TEXT and into is Encoding.JSON:
        return _verbatim(array.to_pylist())
    return array.cast(pa.string())


def decoded(encoding: Encoding, array: pa.Array) -> list[Any]:
    """The way back from staged values to those that were parsed."""
    encoding, array = as_written(encoding, array)
    values = array.to_pylist()
    if encoding in (Encoding.NUMBER, Encoding.JSON):
        return [parse_value(text) for text in values]
    return list(values)

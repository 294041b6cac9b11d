"""Columns of texts as timestamps."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.rules.dates import parse_timestamp
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

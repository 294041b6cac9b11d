"""The cast of a staged column into the type of its column in the lake."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.columnar.kinds import Encoding
from eventlake.load.encoding import as_written, decoded, plain_dates
from eventlake.rules.casts import Outcome, cast
from eventlake.rules.counts import CastCounts
from eventlake.rules.types import LakeType


@dataclass(frozen=True, slots=True)
class CastColumn:
    """A column in its type; masks (None: nowhere) of the cells that lost something on the way."""

    array: pa.Array
    lossy: pa.Array | None = None
    failed: pa.Array | None = None

    @property
    def rescued(self) -> pa.Array | None:
        """Where the original value has to be kept beside the column."""
        return _either(self.lossy, self.failed)

    def counts(self, values: int) -> CastCounts:
        lossy, failed = _count(self.lossy), _count(self.failed)
        return CastCounts(values - lossy - failed, lossy, failed)


def _either(one: pa.Array | None, other: pa.Array | None) -> pa.Array | None:
    if one is None or other is None:
        return one if other is None else other
    return pc.or_(one, other)


def _count(mask: pa.Array | None) -> int:
    return 0 if mask is None else int(pc.sum(mask).as_py() or 0)


def cast_column(staged: pa.Array, encoding: Encoding, into: LakeType) -> CastColumn:
    """Cast all values; the same as `eventlake.rules.casts.cast` on each of them."""
    if into is not LakeType.TIMESTAMP:
        encoding, staged = as_written(encoding, staged)
    shortcut = _SHORTCUTS.get((encoding, into))
    done = shortcut(staged) if shortcut is not None else None
    return done if done is not None else _one_by_one(staged, encoding, into)


def _one_by_one(staged: pa.Array, encoding: Encoding, into: LakeType) -> CastColumn:
    """The reference on every distinct value."""
    coded = staged.dictionary_encode()
    results = [cast(value, into) for value in decoded(encoding, coded.dictionary)]
    cells = pa.array([cell for cell, _ in results], _carrier(into)).cast(into.arrow)
    return CastColumn(
        cells.take(coded.indices),
        _mask(results, Outcome.LOSSY, coded.indices),
        _mask(results, Outcome.FAILED, coded.indices),
    )


def _carrier(into: LakeType) -> pa.DataType:
    """Timestamps come as microseconds."""
    return pa.int64() if into is LakeType.TIMESTAMP else into.arrow


def _mask(results: list[tuple[Any, Outcome]], outcome: Outcome, rows: pa.Array) -> pa.Array | None:
    hits = np.array([found is outcome for _, found in results], dtype=bool)
    return pa.array(hits).take(rows).fill_null(False) if hits.any() else None


def _as_is(staged: pa.Array) -> CastColumn:
    return CastColumn(staged)


def _to_string(staged: pa.Array) -> CastColumn:
    return CastColumn(staged.cast(pa.string()))


def _int_to_decimal(staged: pa.Array) -> CastColumn:
    return CastColumn(staged.cast(LakeType.DECIMAL.arrow))


def _text_to_timestamp(staged: pa.Array) -> CastColumn | None:
    read = plain_dates(staged)
    return None if read is None else CastColumn(read)


_SHORT = 32  # characters: Arrow casts numbers with more digits than that wrongly, without a word
# Of the 20 digits that 18 places leave, one is for what rounding carries over.
_EIGHTEEN_PLACES = r"^-?\d{1,19}(\.\d{1,18})?$"
_EIGHTEEN_DIGITS = r"^-?\d{1,18}(\.\d+)?$"
_WHOLE = r"^-?\d+(\.0+)?$"


def _number_to_decimal(staged: pa.Array) -> CastColumn:
    """Prices and coordinates; exponents and giants go the slow way."""
    if _are_short_and_plain(staged):
        with suppress(pa.ArrowInvalid):  # there are more than six places
            return CastColumn(staged.cast(LakeType.DECIMAL.arrow))
    return _apart(staged, _EIGHTEEN_PLACES, _eighteen_places_to_decimal, LakeType.DECIMAL)


def _are_short_and_plain(numbers: pa.Array) -> bool:
    """Whether no number has an exponent, or so many digits that Arrow would not know what to do.

    A look at the bytes: for few numbers a regular expression takes longer to be compiled.
    """
    offsets = np.frombuffer(numbers.buffers()[1], np.int32)
    offsets = offsets[numbers.offset : numbers.offset + len(numbers) + 1]
    text = np.frombuffer(numbers.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    longest = np.max(np.diff(offsets), initial=0)
    return bool(np.max(text, initial=0) <= ord("9") and longest <= _SHORT)


def _eighteen_places_to_decimal(staged: pa.Array) -> CastColumn:
    exact = staged.cast(pa.decimal128(38, 18))
    rounded = pc.round(exact, 6, round_mode="half_to_even")
    lossy = _if_any(pc.not_equal(rounded, exact))
    return CastColumn(rounded.cast(LakeType.DECIMAL.arrow), lossy)


def _number_to_bigint(staged: pa.Array) -> CastColumn:
    return _apart(staged, _EIGHTEEN_DIGITS, _eighteen_digits_to_bigint, LakeType.BIGINT)


def _eighteen_digits_to_bigint(staged: pa.Array) -> CastColumn:
    whole = pc.replace_substring_regex(staged, r"\..*", "").cast(pa.int64())
    return CastColumn(whole, _if_any(pc.invert(pc.match_substring_regex(staged, _WHOLE))))


def _apart(
    staged: pa.Array, form: str, fast: Callable[[pa.Array], CastColumn], into: LakeType
) -> CastColumn:
    """Numbers of this form the fast way, one by one only the others: there may be a single one."""
    plain = pc.match_substring_regex(staged, form).fill_null(True)
    if pc.all(plain).as_py() is not False:
        return fast(staged)
    nothing = pa.scalar(None, staged.type)
    done = fast(pc.if_else(plain, staged, nothing))
    others = _one_by_one(pc.if_else(plain, nothing, staged), Encoding.NUMBER, into)
    cells = pc.coalesce(done.array, others.array)
    return CastColumn(cells, _either(done.lossy, others.lossy), others.failed)


def _if_any(mask: pa.Array) -> pa.Array | None:
    return mask.fill_null(False) if pc.any(mask).as_py() else None


def _json_to_string(staged: pa.Array) -> CastColumn | None:
    """Arrays are stored as their JSON text."""
    return CastColumn(staged) if pc.all(pc.starts_with(staged, "[")).as_py() else None


_SHORTCUTS: dict[tuple[Encoding, LakeType], Callable[[pa.Array], CastColumn | None]] = {
    (Encoding.INT, LakeType.BIGINT): _as_is,
    (Encoding.INT, LakeType.DECIMAL): _int_to_decimal,
    (Encoding.INT, LakeType.STRING): _to_string,
    (Encoding.BOOL, LakeType.BOOLEAN): _as_is,
    (Encoding.BOOL, LakeType.STRING): _to_string,
    (Encoding.TEXT, LakeType.STRING): _as_is,
    (Encoding.MILLIS, LakeType.TIMESTAMP): _as_is,
    (Encoding.TEXT, LakeType.TIMESTAMP): _text_to_timestamp,
    (Encoding.NUMBER, LakeType.BIGINT): _number_to_bigint,
    (Encoding.NUMBER, LakeType.DECIMAL): _number_to_decimal,
    (Encoding.NUMBER, LakeType.STRING): _as_is,
    (Encoding.JSON, LakeType.STRING): _json_to_string,
}


def json_values(staged: pa.Array, encoding: Encoding, where: pa.Array) -> pa.Array:
    """The original values as JSON text in the rows asked for, null in all others."""
    asked = pc.if_else(where, staged, pa.scalar(None, staged.type))
    encoding, asked = as_written(encoding, asked)
    if encoding is not Encoding.TEXT:
        return asked.cast(pa.string())
    coded = asked.dictionary_encode()
    quoted = [msgspec.json.encode(text).decode() for text in coded.dictionary.to_pylist()]
    return pa.array(quoted, pa.string()).take(coded.indices)

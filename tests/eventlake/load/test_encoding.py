"""Values staged as plainly as their kinds allow, and found again as they were."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.columnar.kinds import Encoding, Kind
from eventlake.load.encoding import all_dates, decoded, encode, joined, kinds_of, plain_dates
from eventlake.rules.dates import parse_timestamp
from eventlake.rules.inference import infer, kind_of
from eventlake.rules.types import LakeType
from tests.support.oracles.leaves import COLUMNS, DATES, DAYS, column_of, json_of

Raw = msgspec.Raw


@pytest.mark.parametrize(
    ("values", "encoding", "staged", "kinds"),
    [
        ([1, -2], Encoding.INT, [1, -2], {Kind.INT64}),
        ([1, 2**63], Encoding.NUMBER, ["1", str(2**63)], {Kind.INT64, Kind.BIGINT_OVERFLOW}),
        ([10**40], Encoding.NUMBER, ["1" + "0" * 40], {Kind.HUGE}),
        ([1, Raw("0.10")], Encoding.NUMBER, ["1", "0.10"], {Kind.INT64, Kind.NUMBER}),
        ([Raw("1e3"), Raw("-0")], Encoding.NUMBER, ["1e3", "-0"], {Kind.NUMBER, Kind.INT64}),
        ([True, False], Encoding.BOOL, [True, False], {Kind.BOOL}),
        (["x", ""], Encoding.TEXT, ["x", ""], {Kind.TEXT}),
        (
            ["2026-10-01", "2026-10-01 07:00Z"],
            Encoding.TEXT,
            ["2026-10-01", "2026-10-01 07:00Z"],
            {Kind.DATE},
        ),
        (
            ["2026-10-01T07:00:00.120Z"],
            Encoding.MILLIS,
            [datetime(2026, 10, 1, 7, 0, 0, 120_000, UTC)],
            {Kind.DATE},
        ),
        (
            ["2026-10-01T07:00:00.120Z", "2026-10-01T07:00:00.12Z"],
            Encoding.TEXT,
            ["2026-10-01T07:00:00.120Z", "2026-10-01T07:00:00.12Z"],
            {Kind.DATE},
        ),
        (["2026-10-01", ""], Encoding.TEXT, ["2026-10-01", ""], {Kind.TEXT}),
        ([[1, Raw("2.0"), "é"]], Encoding.JSON, ['[1,2.0,"é"]'], {Kind.ARRAY}),
        ([True, 1], Encoding.JSON, ["true", "1"], {Kind.BOOL, Kind.INT64}),
        (["1", 1], Encoding.JSON, ['"1"', "1"], {Kind.TEXT, Kind.INT64}),
        (['a"b', []], Encoding.JSON, ['"a\\"b"', "[]"], {Kind.TEXT, Kind.ARRAY}),
    ],
)
def test_values_are_staged_in_the_plainest_encoding_that_holds_them_all(
    values: list[Any], encoding: Encoding, staged: list[Any], kinds: set[Kind]
) -> None:
    how, array = encode(values)
    assert (how, array.to_pylist()) == (encoding, staged)
    assert kinds_of(how, array) == kinds


@given(COLUMNS)
def test_every_value_comes_back_as_it_was(values: list[Any]) -> None:
    encoding, array = encode(values)
    back = decoded(encoding, array)
    assert [(type(v), json_of(v)) for v in back] == [(type(v), json_of(v)) for v in values]
    assert array.type in (pa.int64(), pa.bool_(), pa.string(), LakeType.TIMESTAMP.arrow)


@given(COLUMNS)
def test_the_kinds_of_a_column_lead_to_the_type_that_its_values_do(values: list[Any]) -> None:
    kinds = kinds_of(*encode(values))
    assert infer(kinds) is infer(set(map(kind_of, values)))


@given(COLUMNS)
def test_none_is_no_value_and_leaves_a_gap(values: list[Any]) -> None:
    encoding, array = encode(values)
    with_gaps = [None, *(cell for value in values for cell in (value, None))]
    same, gappy = encode(with_gaps)
    assert (same, gappy.drop_null().to_pylist()) == (encoding, array.to_pylist())
    assert [cell is None for cell in gappy.to_pylist()] == [cell is None for cell in with_gaps]
    assert kinds_of(same, gappy) == kinds_of(encoding, array)


@given(st.lists(COLUMNS, min_size=1, max_size=4))
def test_parts_of_a_column_are_joined_as_if_they_had_been_one(parts: list[list[Any]]) -> None:
    encoding, array = joined([encode(part) for part in parts])
    whole = [value for part in parts for value in part]
    back = decoded(encoding, array)
    assert [(type(v), json_of(v)) for v in back] == [(type(v), json_of(v)) for v in whole]


@pytest.mark.parametrize(
    "texts",
    [
        ["2026-10-01", "1970-01-01", None],
        ["2026-10-01T07:00:00.123Z", "0001-01-01 00:00:00Z"],
        ["2026-10-01T07:00:00.123456", "2026-10-01", "9999-12-31 23:59:59.9"],
        [None],
    ],
)
def test_usual_dates_are_read_at_once(texts: list[str | None]) -> None:
    read = plain_dates(pa.array(texts, pa.string()))
    assert read is not None
    micros = read.cast(pa.int64()).to_pylist()
    assert micros == [parse_timestamp(text)[0] if text else None for text in texts]  # type: ignore[index]


@pytest.mark.parametrize(
    "texts",
    [
        ["2026-10-01T07:00:00+02:00"],  # an offset
        ["2026-10-01T07:00:00.1234567Z"],  # beyond microseconds
        ["2026-10-01T07:00Z"],  # no seconds
        ["2026-10-01Z"],
        ["2026-10-01T07:00:00Z", "2026-10-01T07:00:00"],  # with and without zone
        ["0000-10-01"],
        ["2026-02-30"],
        ["2026-10-01T24:00:00Z"],
        ["2026-10-01", "yesterday"],
        ["2026-10-01\n"],
        ["٢٠٢٦-10-01"],
    ],
)
def test_others_are_left_to_the_slow_way(texts: list[str]) -> None:
    assert plain_dates(pa.array(texts, pa.string())) is None


def test_what_stands_in_place_of_a_null_is_not_taken_for_a_part_of_dates() -> None:
    letters = "2026-10-01T07:00:002026-10-01T07:00:00"  # the last three are of no text
    offsets = np.array([0, 19, 35, 38], np.int32)
    buffers = [pa.py_buffer(b"\x03"), pa.py_buffer(offsets), pa.py_buffer(letters.encode())]
    texts = pa.Array.from_buffers(pa.string(), 3, buffers, 1)
    assert texts.to_pylist() == ["2026-10-01T07:00:00", "2026-10-01T07:00", None]
    assert plain_dates(texts) is None


@given(st.one_of(column_of(DATES), column_of(DAYS)))
def test_a_column_is_of_dates_if_every_text_is_one(texts: list[str]) -> None:
    each = [parse_timestamp(text) is not None for text in texts]
    assert all_dates(pa.array(texts, pa.string())) is all(each)

"""Values staged as plainly as their kinds allow, and found again as they were."""

from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given

from lake.casting.encoding import Encoding, decoder, encode
from lake.kinds import Kind, infer, kind_of
from tests.lake.casting.leaves import COLUMNS, json_of

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
    how, array, seen = encode(values)
    assert (how, array.to_pylist(), seen) == (encoding, staged, kinds)


@given(COLUMNS)
def test_every_value_comes_back_as_it_was(values: list[Any]) -> None:
    encoding, array, _ = encode(values)
    decode = decoder(encoding)
    back = [decode(staged) for staged in array.to_pylist()]
    assert [(type(v), json_of(v)) for v in back] == [(type(v), json_of(v)) for v in values]
    assert array.type in (pa.int64(), pa.bool_(), pa.string())


@given(COLUMNS)
def test_the_kinds_of_a_column_lead_to_the_type_that_its_values_do(values: list[Any]) -> None:
    _, _, kinds = encode(values)
    assert infer(kinds) is infer(set(map(kind_of, values)))

"""The table of casts: every kind of value into every type."""

from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.rules.casts import Outcome, cast, text_of
from eventlake.rules.inference import infer, kind_of
from eventlake.rules.types import LakeType

Raw = msgspec.Raw
FAILED = (None, "failed")
NOON = 1_790_856_000_000_000  # 2026-10-01T12:00Z


def exact(cell: Any) -> tuple[Any, str]:
    return cell, "exact"


def lossy(cell: Any) -> tuple[Any, str]:
    return cell, "lossy"


def dec(text: str) -> Decimal:
    return Decimal(text)


@pytest.mark.parametrize(
    ("value", "bigint", "decimal"),
    [
        (9007199254740993, exact(9007199254740993), exact(dec("9007199254740993.000000"))),
        (2**63 - 1, exact(2**63 - 1), exact(dec("9223372036854775807.000000"))),
        (2**63, FAILED, exact(dec("9223372036854775808.000000"))),
        (-(2**63), exact(-(2**63)), exact(dec("-9223372036854775808.000000"))),
        (10**32 - 1, FAILED, exact(dec("9" * 32 + ".000000"))),
        (10**32, FAILED, FAILED),
        (int("1234567890" * 4), FAILED, FAILED),
        (Raw("9" * 5000), FAILED, FAILED),
        (Raw("-0"), exact(0), exact(dec("0.000000"))),
        (Raw("0.1"), lossy(0), exact(dec("0.100000"))),
        (Raw("-0.9"), lossy(0), exact(dec("-0.900000"))),
        (Raw("3.0"), exact(3), exact(dec("3.000000"))),
        (Raw("1e3"), exact(1000), exact(dec("1000.000000"))),
        (Raw("-3.7"), lossy(-3), exact(dec("-3.700000"))),
        (Raw("9223372036854775807.9"), lossy(2**63 - 1), exact(dec("9223372036854775807.900000"))),
        (Raw("9223372036854775808.0"), FAILED, exact(dec("9223372036854775808.000000"))),
        (Raw("12345678901234567890.123456"), FAILED, exact(dec("12345678901234567890.123456"))),
        (Raw("12345678901234567890.1234565"), FAILED, lossy(dec("12345678901234567890.123456"))),
        (Raw("12345678901234567890.1234575"), FAILED, lossy(dec("12345678901234567890.123458"))),
        (Raw("0.1234560000"), lossy(0), exact(dec("0.123456"))),
        (Raw("52.5200065999"), lossy(52), lossy(dec("52.520007"))),
        (Raw("1e-400"), lossy(0), lossy(dec("0.000000"))),
        (Raw("1e400"), FAILED, FAILED),
        (Raw("9" * 32 + ".9999996"), FAILED, FAILED),
        ("12", exact(12), exact(dec("12.000000"))),
        ("-3.7", lossy(-3), exact(dec("-3.700000"))),
        ("1e3", exact(1000), exact(dec("1000.000000"))),
        ("9223372036854775808", FAILED, exact(dec("9223372036854775808.000000"))),
        ("0.1234567", lossy(0), lossy(dec("0.123457"))),
        ("12,50", FAILED, FAILED),
        ("007", FAILED, FAILED),
        (" 12", FAILED, FAILED),
        ("twelve", FAILED, FAILED),
        ("NaN", FAILED, FAILED),
        ("2026-10-01", FAILED, FAILED),
        ("", exact(None), exact(None)),
        (" ", FAILED, FAILED),
        (True, FAILED, FAILED),
        ([1], FAILED, FAILED),
        ([], FAILED, FAILED),
    ],
)
def test_into_numbers(value: Any, bigint: Any, decimal: Any) -> None:
    assert cast(value, LakeType.BIGINT) == bigint
    assert repr(cast(value, LakeType.DECIMAL)[0]) == repr(decimal[0])
    assert cast(value, LakeType.DECIMAL)[1] == decimal[1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, exact(True)),
        (False, exact(False)),
        ("true", exact(True)),
        ("FALSE", exact(False)),
        ("tRuE", exact(True)),
        ("", exact(None)),
        ("yes", FAILED),
        (" true", FAILED),
        ("1", FAILED),
        ("fal\u017fe", FAILED),
        (1, FAILED),
        (0, FAILED),
        (Raw("1.0"), FAILED),
        ([True], FAILED),
    ],
)
def test_into_booleans(value: Any, expected: Any) -> None:
    assert cast(value, LakeType.BOOLEAN) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-10-01T12:00Z", exact(NOON)),
        ("2026-10-01 14:00:00.000001+02:00", exact(NOON + 1)),
        ("2026-10-01T12:00:00.0000019Z", lossy(NOON + 1)),
        ("2026-10-01T12:00:00.0000010Z", exact(NOON + 1)),
        ("", exact(None)),
        ("2026-02-30", FAILED),
        ("yesterday", FAILED),
        (1_790_856_000, FAILED),
        (Raw("1790856000.5"), FAILED),
        (True, FAILED),
        (["2026-10-01"], FAILED),
    ],
)
def test_into_timestamps(value: Any, expected: Any) -> None:
    assert cast(value, LakeType.TIMESTAMP) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        ("as it is\u0000 ", "as it is\u0000 "),
        (9007199254740993, "9007199254740993"),
        (10**39, "1" + "0" * 39),
        (Raw("1e3"), "1e3"),
        (Raw("0.10"), "0.10"),
        (Raw("-0"), "-0"),
        (Raw("7" * 5000), "7" * 5000),
        (True, "true"),
        (False, "false"),
        ([], "[]"),
        ([1, Raw("0.10"), "é", None, {"a": [Raw("1E3")]}], '[1,0.10,"é",null,{"a":[1E3]}]'),
        ([2**70, "\u0000\n"], '[1180591620717411303424,"\\u0000\\n"]'),
    ],
)
def test_into_strings_everything_goes_as_it_was_written(value: Any, text: str) -> None:
    assert cast(value, LakeType.STRING) == exact(text)
    assert text_of(value) == text


LEAVES = st.one_of(
    st.text(),
    st.sampled_from(["", "true", "2026-10-01", "12", "-1.5", "2026-10-01T12:00:00.1234567Z"]),
    st.booleans(),
    st.integers(),
    st.integers(-(10**45), 10**45),
    st.decimals(allow_nan=False, allow_infinity=False)
    .map(lambda number: f"{number:f}")
    .map(lambda text: Raw(text if "." in text else f"{text}.0")),
    st.lists(st.one_of(st.integers(), st.text())),
)


@given(LEAVES, st.sampled_from(LakeType))
def test_every_cell_fits_its_arrow_type(value: Any, type: LakeType) -> None:
    cell, outcome = cast(value, type)
    [back] = pa.array([cell], type.arrow).cast(
        pa.int64() if type is LakeType.TIMESTAMP else type.arrow
    )
    assert back.as_py() == cell
    assert outcome is not Outcome.FAILED or cell is None
    assert cell is not None or outcome is Outcome.FAILED or value == ""


@given(st.lists(LEAVES, min_size=1))
def test_no_value_fails_in_the_column_it_helped_to_make(values: list[Any]) -> None:
    type = infer({kind_of(value) for value in values})
    assert Outcome.FAILED not in {cast(value, type)[1] for value in values}

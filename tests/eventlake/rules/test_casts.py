"""Types: inference, casts, and how dates and numbers are parsed."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.rules.casts import Outcome, cast, text_of
from eventlake.rules.dates import parse_timestamp
from eventlake.rules.inference import Kind, infer, kind_of
from eventlake.rules.numbers import Number
from eventlake.rules.types import LakeType

Raw = msgspec.Raw
FAILED = (None, "failed")
NOON = 1_790_856_000_000_000  # 2026-10-01T12:00Z


def exact(cell: Any) -> tuple[Any, str]:
    return cell, "exact"


dec = Decimal


def lossy(cell: Any) -> tuple[Any, str]:
    return cell, "lossy"


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


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-10-01", "2026-10-01T00:00:00+00:00"),
        ("2026-10-01T11:30", "2026-10-01T11:30:00+00:00"),
        ("2026-10-01 11:30", "2026-10-01T11:30:00+00:00"),
        ("2026-10-01T11:30:15", "2026-10-01T11:30:15+00:00"),
        ("2026-10-01T11:30:15Z", "2026-10-01T11:30:15+00:00"),
        ("2026-10-01T11:30Z", "2026-10-01T11:30:00+00:00"),
        ("2026-10-01 11:30:15.5Z", "2026-10-01T11:30:15.500000+00:00"),
        ("2026-10-01T11:30:15.000001Z", "2026-10-01T11:30:15.000001+00:00"),
        ("2026-10-01T11:30:15.123456000Z", "2026-10-01T11:30:15.123456+00:00"),
        ("2026-10-01T11:30:15+02:00", "2026-10-01T09:30:15+00:00"),
        ("2026-10-01T11:30:15+0200", "2026-10-01T09:30:15+00:00"),
        ("2026-10-01T11:30:15+02", "2026-10-01T09:30:15+00:00"),
        ("2026-10-01T11:30-05:45", "2026-10-01T17:15:00+00:00"),
        ("2026-10-01T11:30-00:00", "2026-10-01T11:30:00+00:00"),
        ("2026-10-01T00:00+23:59", "2026-09-30T00:01:00+00:00"),
        ("2024-02-29", "2024-02-29T00:00:00+00:00"),
        ("2000-02-29", "2000-02-29T00:00:00+00:00"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999+00:00"),
        ("0001-01-01", "0001-01-01T00:00:00+00:00"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999+00:00"),
    ],
)
def test_a_date_names_a_moment(text: str, moment: str) -> None:
    assert parse_timestamp(text) == (micros(datetime.fromisoformat(moment)), False)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("2026-10-01T11:30:15.1234567Z", "2026-10-01T11:30:15.123456+00:00"),
        ("2026-10-01T11:30:15.999999999999Z", "2026-10-01T11:30:15.999999+00:00"),
        ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999+00:00"),
        ("9999-12-31T23:59:59.9999999", "9999-12-31T23:59:59.999999+00:00"),
    ],
)
def test_beyond_microseconds_digits_are_cut_and_that_is_lossy(text: str, kept: str) -> None:
    assert parse_timestamp(text) == (micros(datetime.fromisoformat(kept)), True)


@pytest.mark.parametrize(
    "text",
    [
        "", "2026", "2026-10", "20261001", "2026-1-1", "26-10-01", "02026-10-01", "-2026-10-01",
        "2026/10/01", "01.10.2026", "2026-274", "2026-W40-4", "Oct 1, 2026", "1790812800",
        # Not in the calendar, not on the clock.
        "0000-01-01", "2026-00-01", "2026-13-01", "2026-02-29", "1900-02-29", "2026-04-31",
        "2026-10-00", "2026-10-01T24:00", "2026-10-01T24:00:00", "2026-10-01T11:60",
        "2016-12-31T23:59:60Z",
        # Forms that others allow.
        "2026-10-01T11", "2026-10-01T1130", "2026-10-01t11:30", "2026-10-01T11:30z",
        "2026-10-01T11:30:15,5", "2026-10-01T11:30:15.", "2026-10-01T11:30 Z", "2026-10-01  11:30",
        "2026-10-01T11:30 UTC", "2026-10-01T11:30:15.5.5Z", "2026-10-01_11:30",
        # A date alone has no zone, and a zone is a real one.
        "2026-10-01Z", "2026-10-01+02:00", "2026-10-01T11:30+24:00", "2026-10-01T11:30+02:60",
        "2026-10-01T11:30+2", "2026-10-01T11:30+020", "2026-10-01T11:30+02:", "2026-10-01T11:30+",
        "2026-10-01T11:30+02:00:00", "2026-10-01T11:30Z+02:00",
        # Nothing around it, and no foreign digits.
        " 2026-10-01", "2026-10-01 ", "2026-10-01\n", "\uff12026-10-01", "2026-10-01T1\u0661:30",
        # The moment itself lies outside the years 1 to 9999.
        "0001-01-01T00:00+00:01", "0001-01-01T23:58+23:59", "9999-12-31T23:59-00:01",
    ],
)  # fmt: skip
def test_anything_else_is_no_date(text: str) -> None:
    assert parse_timestamp(text) is None


@given(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)),
    st.integers(-1439, 1439),
    st.sampled_from("T "),
    st.sampled_from(["auto", "minutes", "seconds", "milliseconds", "microseconds"]),
)
def test_python_dates_are_read(wall: datetime, offset: int, separator: str, precision: str) -> None:
    moment = wall.replace(tzinfo=timezone(timedelta(minutes=offset)))
    text = moment.isoformat(separator, precision)
    assert parse_timestamp(text) == (micros(datetime.fromisoformat(text)), False)


NEARLY_DATES = (
    r"[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-6][0-9](:[0-6][0-9])?)?"
    r"(\.[0-9]{1,6})?(Z|[+-][0-2][0-9]:[0-6][0-9])?"
)


@given(st.from_regex(NEARLY_DATES, fullmatch=True))
def test_nothing_is_a_date_that_python_does_not_know(text: str) -> None:
    found = parse_timestamp(text)
    if found is not None:
        moment = datetime.fromisoformat(text)
        assert found == (micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC)), False)


DIGITS = st.text("0123456789", min_size=1, max_size=45)
NUMBERS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.one_of(st.just("0"), DIGITS.map(lambda d: d.lstrip("0") or "7")),
    st.one_of(st.just(""), DIGITS.map(".{}".format)),
    st.one_of(
        st.just(""),
        st.builds(
            "{}{}{}".format,
            st.sampled_from("eE"),
            st.sampled_from(["", "+", "-"]),
            DIGITS.map(lambda digits: digits[:2]),
        ),
    ),
)


def number(text: str) -> Number:
    parsed = Number.parse(text)
    assert parsed is not None
    return parsed


@given(NUMBERS)
@example("-0.5")
@example("9223372036854775807.5")
@example("-9223372036854775808")
@example("-9223372036854775809")
def test_a_bigint_is_the_number_cut_towards_zero(text: str) -> None:
    exact = Fraction(text)
    if -(2**63) <= int(exact) < 2**63:
        assert number(text).to_bigint() == (int(exact), exact.denominator == 1)
    else:
        assert number(text).to_bigint() is None


@given(NUMBERS)
@example("0.0000005")
@example("0.0000015")
@example("0.00000050000001")
@example("-0.0000004")
@example("-0.000001")
@example("-1e-6")
@example("99999999999999999999999999999999.9999994")
@example("99999999999999999999999999999999.9999995")
@example("99999999999999999999999999999999.9999985")
def test_a_decimal_is_the_number_rounded_half_even_at_six_places(text: str) -> None:
    exact = Fraction(text)
    scaled = round(exact * 10**6)  # Python rounds fractions half-even
    if abs(scaled) < 10**38:
        value, is_exact = number(text).to_decimal() or (None, None)
        assert value is not None
        assert Fraction(value) == Fraction(scaled, 10**6)
        assert value.as_tuple().exponent == -6
        assert is_exact == (scaled == exact * 10**6)
    else:
        assert number(text).to_decimal() is None


@given(NUMBERS)
def test_integer_digits_are_those_before_the_point(text: str) -> None:
    whole = abs(int(Fraction(text)))
    assert number(text).integer_digits == (len(str(whole)) if whole else 0)


@pytest.mark.parametrize("text", ["0", "-0", "0.0", "-0.000", "0e400", "-0E-999999999999999999"])
def test_zero_is_zero_however_it_is_written(text: str) -> None:
    assert number(text).to_bigint() == (0, True)
    assert str(number(text).to_decimal()) == str((Decimal("0.000000"), True))


@pytest.mark.parametrize("power", ["400", "999999999999999999999", "9" * 5000])
def test_huge_and_tiny_powers_cost_nothing(power: str) -> None:
    for huge in (power, f"+{power}", "33", "0" * 20 + "99"):
        assert number(f"1e{huge}").to_bigint() is None
        assert number(f"-1e{huge}").to_decimal() is None
    for tiny in (f"-{power}", "-8"):
        assert number(f"9e{tiny}").to_bigint() == (0, False)
        assert str(number(f"-9e{tiny}").to_decimal()) == str((Decimal("0.000000"), False))


def test_a_number_may_be_long() -> None:
    third = "0." + "3" * 100_000
    assert number(third).to_decimal() == (Decimal("0.333333"), False)
    assert number("1" + "0" * 100_000 + "e-100000").to_bigint() == (1, True)
    assert number("1" * 100_000).to_decimal() is None


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "12 ", " 12", "+5", "007", "-01", ".5", "5.", "1e", "1e+", "e3", "1,000", "1_000",
        "0x10", "NaN", "Infinity", "-", "--1", "1.2.3", "½", "\uff11\uff12", "12\n",
    ],
)  # fmt: skip
def test_what_json_would_not_read_as_a_number_spells_none(text: str) -> None:
    assert Number.parse(text) is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (0, Kind.INT64),
        (2**63 - 1, Kind.INT64),
        (-(2**63), Kind.INT64),
        (Raw("-0"), Kind.INT64),
        (2**63, Kind.BIGINT_OVERFLOW),
        (-(2**63) - 1, Kind.BIGINT_OVERFLOW),
        (10**32 - 1, Kind.BIGINT_OVERFLOW),
        (1 - 10**32, Kind.BIGINT_OVERFLOW),
        (10**32, Kind.HUGE),
        (-(10**32), Kind.HUGE),
        (Raw("9" * 5000), Kind.HUGE),
        (Raw("0.1"), Kind.NUMBER),
        (Raw("1.0"), Kind.NUMBER),
        (Raw("1e3"), Kind.NUMBER),
        (Raw("-0.0"), Kind.NUMBER),
        (Raw("1e-400"), Kind.NUMBER),
        (Raw("9" * 32 + ".9999994"), Kind.NUMBER),
        (Raw("9" * 32 + ".9999996"), Kind.HUGE),
        (Raw("1e32"), Kind.HUGE),
        (Raw("1e400"), Kind.HUGE),
        (True, Kind.BOOL),
        (False, Kind.BOOL),
        ("2026-10-01", Kind.DATE),
        ("2026-10-01T11:30:00.123456789+02:00", Kind.DATE),
        ("2026-02-30", Kind.TEXT),
        ("12", Kind.TEXT),
        ("true", Kind.TEXT),
        ("", Kind.TEXT),
        ([], Kind.ARRAY),
        ([1, "a"], Kind.ARRAY),
    ],
)
def test_a_value_is_of_one_kind(value: Any, kind: Kind) -> None:
    assert kind_of(value) is kind


@pytest.mark.parametrize("value", [None, {}, 1.5, Raw("NaN")])
def test_what_cannot_be_in_a_column_has_no_kind(value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="is not"):
        kind_of(value)


@pytest.mark.parametrize(
    ("values", "type"),
    [
        ([1, -5, Raw("-0")], "bigint"),
        ([9007199254740993, 2**63 - 1], "bigint"),
        ([1, 2**63], "decimal(38,6)"),
        ([10**40], "string"),
        ([1, 10**32], "string"),
        ([Raw("0.10")], "decimal(38,6)"),
        ([Raw("1e3")], "decimal(38,6)"),
        ([Raw("1.0")], "decimal(38,6)"),
        ([1, Raw("0.5"), 2**70], "decimal(38,6)"),
        ([Raw("0.5"), Raw("1e400")], "string"),
        ([True, False], "boolean"),
        ([True, 1], "string"),
        ([True, "true"], "string"),
        (["2026-10-01", "2026-10-01T11:30Z"], "timestamp"),
        (["2026-10-01", "soon"], "string"),
        (["2026-10-01", ""], "string"),
        (["2026-10-01", 20261001], "string"),
        (["12", "13"], "string"),
        ([1, "2"], "string"),
        ([[1, 2]], "string"),
        ([1, [1]], "string"),
        ([""], "string"),
    ],
)
def test_a_new_column_gets_the_type_that_fits_all_its_values(values: list[Any], type: str) -> None:
    assert infer({kind_of(value) for value in values}) == type
    assert infer([kind_of(value) for value in reversed(values)]) == type
    with pytest.raises(ValueError, match="without values"):
        infer([])


@given(st.sets(st.sampled_from(Kind), min_size=1), st.sets(st.sampled_from(Kind)))
def test_more_kinds_never_make_a_column_narrower(kinds: set[Kind], more: set[Kind]) -> None:
    before, after = infer(kinds), infer(kinds | more)
    wider = {LakeType.DECIMAL} if before is LakeType.BIGINT else set()
    assert after in {before, LakeType.STRING} | wider

"""Numbers by their text, held to Python's fractions."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.rules.numbers import Number

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


@pytest.mark.parametrize(
    "power", ["400", "33", "+999999999999999999999", "9" * 5000, "0" * 20 + "99"]
)
def test_huge_powers_cost_nothing(power: str) -> None:
    assert number(f"1e{power}").to_bigint() is None
    assert number(f"-1e{power}").to_decimal() is None


@pytest.mark.parametrize("power", ["-400", "-8", "-999999999999999999999", "-" + "9" * 5000])
def test_tiny_powers_cost_nothing(power: str) -> None:
    assert number(f"9e{power}").to_bigint() == (0, False)
    assert str(number(f"-9e{power}").to_decimal()) == str((Decimal("0.000000"), False))


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

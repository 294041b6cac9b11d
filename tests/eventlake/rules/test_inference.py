"""What values are, and the types that new columns get from them."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.columnar.kinds import Kind
from eventlake.rules.inference import infer, kind_of
from eventlake.rules.types import LakeType

Raw = msgspec.Raw


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


@given(st.sets(st.sampled_from(Kind), min_size=1), st.sets(st.sampled_from(Kind)))
def test_more_kinds_never_make_a_column_narrower(kinds: set[Kind], more: set[Kind]) -> None:
    wider = {
        LakeType.BIGINT: {LakeType.BIGINT, LakeType.DECIMAL, LakeType.STRING},
        LakeType.DECIMAL: {LakeType.DECIMAL, LakeType.STRING},
    }
    before, after = infer(kinds), infer(kinds | more)
    assert after in wider.get(before, {before, LakeType.STRING})


def test_a_column_without_values_has_no_type() -> None:
    with pytest.raises(ValueError, match="without values"):
        infer([])

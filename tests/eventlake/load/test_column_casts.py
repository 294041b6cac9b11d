"""Whole columns cast at once: in every cell the same as one value after the other."""

from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlake.load.column_casts import cast_column, json_values
from eventlake.load.encoding import encode
from eventlake.rules.casts import Outcome, cast
from eventlake.rules.counts import CastCounts
from eventlake.rules.parse import parse_value
from eventlake.rules.types import LakeType
from tests.support.oracles.leaves import COLUMNS, json_of

Raw = msgspec.Raw


def staged_with_nulls(values: list[Any], nulls: bool) -> tuple[Any, pa.Array]:
    """The staged values, each followed by a row without one, if so wanted."""
    encoding, array = encode(values)
    if nulls:
        rows = [row for n in range(len(values)) for row in (n, None)]
        array = array.take(pa.array(rows, pa.int64()))
    return encoding, array


def comparable(array: pa.Array) -> list[Any]:
    """Cells as `eventlake.rules.casts` has them: timestamps are microseconds."""
    return (array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array).to_pylist()


@pytest.mark.parametrize("into", list(LakeType))
@settings(max_examples=150)
@given(values=COLUMNS, nulls=st.booleans())
@example(values=[Raw("9" * 20 + "." + "9" * 18)], nulls=False)
@example(values=[Raw("9" * 32 + ".999999")], nulls=True)
@example(values=[Raw("-0.0000005"), Raw("0.0000015")], nulls=False)
@example(values=["0000-12-31", "2026-10-01"], nulls=False)
@example(values=["2026-10-01T24:00:00Z"], nulls=False)
@example(values=["0001-01-01T00:00:00+02:00", "9999-12-31 23:59:59.999999Z"], nulls=True)
def test_a_column_is_cast_as_each_of_its_values(
    into: LakeType, values: list[Any], nulls: bool
) -> None:
    encoding, array = staged_with_nulls(values, nulls)
    done = cast_column(array, encoding, into)
    wanted = [cast(value, into) for value in values]
    gap = [(None, Outcome.EXACT)] if nulls else []
    wanted = [one for value in wanted for one in (value, *gap)]
    lossy = done.lossy.to_pylist() if done.lossy is not None else [False] * len(wanted)
    failed = done.failed.to_pylist() if done.failed is not None else [False] * len(wanted)
    assert done.array.type == into.arrow
    assert comparable(done.array) == [cell for cell, _ in wanted]
    assert lossy == [outcome is Outcome.LOSSY for _, outcome in wanted]
    assert failed == [outcome is Outcome.FAILED for _, outcome in wanted]
    assert done.counts(len(values)) == CastCounts(
        exact=sum(outcome is Outcome.EXACT for _, outcome in wanted) - len(gap) * len(values),
        lossy=sum(lossy),
        failed=sum(failed),
    )


@settings(max_examples=150)
@given(values=COLUMNS, data=st.data())
def test_the_original_values_are_given_back_where_asked_for(
    values: list[Any], data: st.DataObject
) -> None:
    encoding, array = staged_with_nulls(values, nulls=False)
    where = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    texts = json_values(array, encoding, pa.array(where, pa.bool_())).to_pylist()
    assert [text is not None for text in texts] == where
    for text, value in zip(texts, values, strict=True):
        assert text is None or json_of(parse_value(text)) == json_of(value)


@pytest.mark.parametrize(
    ("values", "into", "cells", "lossy", "failed"),
    [
        ([1, 2], LakeType.DECIMAL, [Decimal("1.000000"), Decimal("2.000000")], None, None),
        (
            [Raw("1.25"), Raw("7")],
            LakeType.DECIMAL,
            [Decimal("1.250000"), Decimal("7.000000")],
            None,
            None,
        ),
        (
            [Raw("52.5200065"), Raw("13.4")],
            LakeType.DECIMAL,
            [Decimal("52.520006"), Decimal("13.400000")],
            [True, False],
            None,
        ),
        (
            [Raw("52.5200065"), Raw("5e-7"), Raw("1e400"), Raw("1e3")],
            LakeType.DECIMAL,
            [Decimal("52.520006"), Decimal("0.000000"), None, Decimal("1000.000000")],
            [True, True, False, False],
            [False, False, True, False],
        ),
        (  # which Arrow by itself makes other numbers of
            [Raw("3745165167707963833718155772407520"), Raw("0.18e41"), Raw("1.5")],
            LakeType.DECIMAL,
            [None, None, Decimal("1.500000")],
            None,
            [True, True, False],
        ),
        (
            [Raw("-12345678901234567890123456789012"), Raw("-1.2345678901234567890123456789")],
            LakeType.DECIMAL,
            [Decimal("-12345678901234567890123456789012.000000"), Decimal("-1.234568")],
            [False, True],
            None,
        ),
        ([Raw("1.5"), Raw("2.0")], LakeType.BIGINT, [1, 2], [True, False], None),
        (
            [Raw("-1.5"), Raw("2"), Raw("25e-1"), Raw("1e400"), Raw("-0.0")],
            LakeType.BIGINT,
            [-1, 2, 2, None, 0],
            [True, False, True, False, False],
            [False, False, False, True, False],
        ),
        (["12,50", "3", ""], LakeType.BIGINT, [None, 3, None], None, [True, False, False]),
        ([True, "TRUE", 1], LakeType.BOOLEAN, [True, True, None], None, [False, False, True]),
        ([[1, "a"], []], LakeType.STRING, ['[1,"a"]', "[]"], None, None),
        ([[1], "a"], LakeType.STRING, ["[1]", "a"], None, None),
    ],
)
def test_the_cells_and_what_they_lost(
    values: list[Any],
    into: LakeType,
    cells: list[Any],
    lossy: list[bool] | None,
    failed: list[bool] | None,
) -> None:
    encoding, array = encode(values)
    done = cast_column(array, encoding, into)
    assert done.array.to_pylist() == cells
    assert (done.lossy.to_pylist() if done.lossy is not None else None) == lossy
    assert (done.failed.to_pylist() if done.failed is not None else None) == failed


def test_what_lost_or_failed_is_to_be_rescued() -> None:
    encoding, array = encode(["1.5", "x", "3"])
    rescued = cast_column(array, encoding, LakeType.BIGINT).rescued
    assert rescued is not None
    assert rescued.to_pylist() == [True, True, False]
    assert cast_column(array, encoding, LakeType.STRING).rescued is None

"""Any archive becomes the lake that the reference implementation makes of it."""

import os
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from eventlake.load import blobs, cells, stage, typed_rows
from eventlake.rules.counts import CastCounts
from tests.support.lakes.archive import order
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.random_archives import Story, Sync, stories
from tests.support.lakes.runs import Runs
from tests.support.oracles.stories import (
    ReferenceStory,
    check_index,
    check_lake,
    check_records,
    check_report,
    play,
)


@settings(max_examples=30)
@given(
    stories(suppression=True),
    st.sampled_from([1, 5_000, blobs.LARGEST]),
    st.sampled_from([0, typed_rows.FEW]),
    st.sampled_from([0, stage.TOGETHER]),
    st.sampled_from([1, cells.STROKE]),
)
def test_the_lake_agrees_with_a_reference(
    story: Story, share: int, few: int, together: int, stroke: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # this lake need not survive a power cut
        runs = Runs(Path(folder), **story.settings)
        patch.setattr(InProcess, "slots", story.tasks)
        patch.setattr(blobs, "LARGEST", share)
        patch.setattr(typed_rows, "FEW", few)  # 0: every column is sparse
        patch.setattr(typed_rows, "ROOM", 1)
        patch.setattr(stage, "TOGETHER", together)
        patch.setattr(cells, "STROKE", stroke)
        reference = ReferenceStory(runs)
        for step in story.steps:
            report = play(step, runs)
            accounts = reference.sync(step) if isinstance(step, Sync) else reference.replay(step)
            check_report(report, accounts, reference)
            check_records(runs, report)
            check_lake(runs, reference.lake)
            check_index(runs, reference.lake)


Cell = tuple[Any, str]
FAILED: Cell = (None, "failed")


def exact(cell: Any) -> Cell:
    return cell, "exact"


dec = Decimal


def lossy(cell: Any) -> Cell:
    return cell, "lossy"


@dataclass(frozen=True)
class Number:
    """The type of a new column, and what becomes of a number in a bigint and in a decimal one.

    In a string column each is as it was written; in a boolean and a timestamp column all fail.
    """

    written: str
    new_type: str
    bigint: Cell
    decimal: Cell

    @property
    def new_cell(self) -> Any:
        cells = {"bigint": self.bigint[0], "decimal(38,6)": self.decimal[0]}
        return cells.get(self.new_type, self.written)


DECIMAL = "decimal(38,6)"
PRECISE = "12345678901234567890.123456"


NUMBERS = [
    Number("9007199254740993", "bigint", exact(2**53 + 1), exact(dec("9007199254740993.000000"))),
    Number("9223372036854775807", "bigint", exact(2**63 - 1), exact(dec(f"{2**63 - 1}.000000"))),
    Number("9223372036854775808", DECIMAL, FAILED, exact(dec("9223372036854775808.000000"))),
    Number(PRECISE, DECIMAL, FAILED, exact(dec(PRECISE))),
    Number(f"{PRECISE}5", DECIMAL, FAILED, lossy(dec(PRECISE))),
    Number("0.1", DECIMAL, lossy(0), exact(dec("0.100000"))),
    Number("1e3", DECIMAL, exact(1000), exact(dec("1000.000000"))),
    Number("1.0", DECIMAL, exact(1), exact(dec("1.000000"))),
    Number("-0", "bigint", exact(0), exact(dec("0.000000"))),
    Number("1234567890" * 4, "string", FAILED, FAILED),
]
each_number = pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.written)
COLUMNS = ("whole", "amount", "words", "flag", "moment")


@each_number
@pytest.mark.parametrize("spelled", [False, True], ids=["number", "text"])
def test_a_number_into_every_type(runs: Runs, number: Number, spelled: bool) -> None:
    """A text that spells the number fares like the number itself."""
    value: Any = number.written if spelled else Raw(number.written)
    original = f'"{number.written}"' if spelled else number.written
    day = runs.archive.day("2026-10-01")
    first = dict(zip(COLUMNS, (1, 0.5, "one", True, "2026-10-01"), strict=True))
    day.file("a", order("m1", "2026-10-01T07:00", **first))
    runs.sync()
    day.file("b", order("m2", "2026-10-01T07:00", **dict.fromkeys(COLUMNS, value)))
    report = runs.sync().tables["shop.track_order"]
    _, row = runs.rows("track_order")

    expected = (number.bigint, number.decimal, exact(number.written), FAILED, FAILED)
    cells = dict(zip(COLUMNS, expected, strict=True))
    assert {name: repr(row[f"properties_{name}"]) for name in COLUMNS} == {
        name: repr(cell) for name, (cell, _) in cells.items()
    }
    inexact = [name for name, (_, outcome) in cells.items() if outcome != "exact"]
    members = ",".join(f'"/properties/{name}":{original}' for name in inexact)
    assert row["rescued_data"] == f"{{{members}}}"
    assert {name: report.casts[f"properties_{name}"] for name in COLUMNS} == {
        name: CastCounts(**{outcome: 1}) for name, (_, outcome) in cells.items()
    }
    assert report.rescued_cells == len(inexact)


@each_number
def test_a_number_in_a_new_column(runs: Runs, number: Number) -> None:
    """It makes the type that holds it; only digits beyond the sixth place are rescued."""
    written = Raw(number.written)
    runs.archive.day("2026-10-01").file(
        "a", order("m1", "2026-10-01T07:00", n=written, list=[written])
    )
    report = runs.sync().tables["shop.track_order"]
    types = {name: type for name, type, _ in runs.columns("track_order")}
    [row] = runs.rows("track_order")
    assert types["properties_n"] == number.new_type
    assert repr(row["properties_n"]) == repr(number.new_cell)
    assert row["properties_list"] == f"[{number.written}]"
    cut = number.decimal[1] == "lossy"
    rescued = f'{{"/properties/n":{number.written}}}' if cut else None
    assert row.get("rescued_data") == rescued
    assert report.casts["properties_n"] == CastCounts(exact=int(not cut), lossy=int(cut))


@pytest.mark.parametrize(
    ("together", "type_", "cells"),
    [
        (["-0", "9223372036854775807"], "bigint", [0, 9223372036854775807]),
        (
            ["9223372036854775807", "9223372036854775808"],
            "decimal(38,6)",
            [dec("9223372036854775807.000000"), dec("9223372036854775808.000000")],
        ),
        (
            ["9007199254740993", "0.1", "1e3"],
            "decimal(38,6)",
            [dec("9007199254740993.000000"), dec("0.100000"), dec("1000.000000")],
        ),
        (["1", "1.0", "1234567890" * 4], "string", ["1", "1.0", "1234567890" * 4]),
        (["1", '"1"', "-0", "1e3"], "string", ["1", "1", "-0", "1e3"]),
        (["1", "true"], "string", ["1", "true"]),
        (["1", '""'], "string", ["1", ""]),
    ],
)
def test_numbers_that_make_a_column_together(
    runs: Runs, together: list[str], type_: str, cells: list[Any]
) -> None:
    values = enumerate(map(Raw, together))
    lines = (order(f"m{number}", "2026-10-01T07:00", n=value) for number, value in values)
    runs.load("2026-10-01", *lines)
    assert runs.columns("track_order")[16:] == [("properties_n", type_, "/properties/n")]
    assert [repr(row["properties_n"]) for row in runs.rows("track_order")] == list(map(repr, cells))

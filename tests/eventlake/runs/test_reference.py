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

from eventlake.load import blobs, table_rows
from eventlake.rules.counts import CastCounts
from tests.support.lakes.archive import track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.random_archives import Story, Sync, all_are_rare, stories
from tests.support.lakes.runs import Runs
from tests.support.oracles.stories import (
    Told,
    check_index,
    check_lake,
    check_records,
    check_report,
    play,
)


@settings(max_examples=30)
@given(
    stories(suppression=True),
    st.sampled_from([1, 2, 3, table_rows.CHUNK]),
    st.sampled_from([1, 5_000, blobs.LARGEST]),
    st.booleans(),
)
def test_the_lake_is_what_the_plain_rules_make_of_the_archive(
    story: Story, chunk: int, share: int, rare: bool
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # this lake need not survive a power cut
        runs = Runs(Path(folder), **story.settings)
        patch.setattr(InProcess, "slots", story.tasks)
        patch.setattr(table_rows, "CHUNK", chunk)
        patch.setattr(blobs, "LARGEST", share)
        if rare:
            all_are_rare(patch)
        told = Told(runs)
        for step in story.steps:
            report = play(step, runs)
            accounts = told.sync(step) if isinstance(step, Sync) else told.replay(step)
            check_report(report, accounts, told)
            check_records(runs, report)
            check_lake(runs, told.lake)
            check_index(runs, told.lake)


Cell = tuple[Any, str]
FAILED: Cell = (None, "failed")


def exact(cell: Any) -> Cell:
    return cell, "exact"


def lossy(cell: Any) -> Cell:
    return cell, "lossy"


def dec(text: str) -> Decimal:
    return Decimal(text)


@dataclass(frozen=True)
class Number:
    """What becomes of a number in a new column, in a bigint and in a decimal one.

    In a string column each is as it was written; in a boolean and a timestamp column all fail.
    """

    written: str
    new: tuple[str, Any]
    bigint: Cell
    decimal: Cell


NUMBERS = [
    Number(
        "9007199254740993",
        new=("bigint", 9007199254740993),
        bigint=exact(9007199254740993),
        decimal=exact(dec("9007199254740993.000000")),
    ),
    Number(
        "9223372036854775807",
        new=("bigint", 9223372036854775807),
        bigint=exact(9223372036854775807),
        decimal=exact(dec("9223372036854775807.000000")),
    ),
    Number(
        "9223372036854775808",
        new=("decimal(38,6)", dec("9223372036854775808.000000")),
        bigint=FAILED,
        decimal=exact(dec("9223372036854775808.000000")),
    ),
    Number(
        "12345678901234567890.123456",
        new=("decimal(38,6)", dec("12345678901234567890.123456")),
        bigint=FAILED,
        decimal=exact(dec("12345678901234567890.123456")),
    ),
    Number(
        "12345678901234567890.1234565",
        new=("decimal(38,6)", dec("12345678901234567890.123456")),
        bigint=FAILED,
        decimal=lossy(dec("12345678901234567890.123456")),
    ),
    Number(
        "0.1",
        new=("decimal(38,6)", dec("0.100000")),
        bigint=lossy(0),
        decimal=exact(dec("0.100000")),
    ),
    Number(
        "1e3",
        new=("decimal(38,6)", dec("1000.000000")),
        bigint=exact(1000),
        decimal=exact(dec("1000.000000")),
    ),
    Number(
        "1.0",
        new=("decimal(38,6)", dec("1.000000")),
        bigint=exact(1),
        decimal=exact(dec("1.000000")),
    ),
    Number("-0", new=("bigint", 0), bigint=exact(0), decimal=exact(dec("0.000000"))),
    Number(
        "1234567890" * 4,
        new=("string", "1234567890123456789012345678901234567890"),
        bigint=FAILED,
        decimal=FAILED,
    ),
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
    day.file(
        "a",
        track(
            "Order",
            "m1",
            "2026-10-01T07:00",
            whole=1,
            amount=0.5,
            words="one",
            flag=True,
            moment="2026-10-01",
        ),
    )
    runs.sync()
    day.file("b", track("Order", "m2", "2026-10-01T07:00", **dict.fromkeys(COLUMNS, value)))
    report = runs.sync().tables["shop.track_order"]
    _, row = runs.rows("track_order")

    cells = {
        "whole": number.bigint,
        "amount": number.decimal,
        "words": exact(number.written),
        "flag": FAILED,
        "moment": FAILED,
    }
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
        "a", track("Order", "m1", "2026-10-01T07:00", n=written, list=[written])
    )
    report = runs.sync().tables["shop.track_order"]
    type_, cell = number.new
    types = {name: type_ for name, type_, _ in runs.columns("track_order")}
    [row] = runs.rows("track_order")

    assert (types["properties_n"], repr(row["properties_n"])) == (type_, repr(cell))
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
    runs.archive.day("2026-10-01").file(
        "a",
        *(
            track("Order", f"m{number}", "2026-10-01T07:00", n=Raw(written))
            for number, written in enumerate(together)
        ),
    )
    runs.sync()
    assert runs.columns("track_order")[16:] == [("properties_n", type_, "/properties/n")]
    assert [repr(row["properties_n"]) for row in runs.rows("track_order")] == list(map(repr, cells))

"""What `retype` says before anything is wished: the counts that the replay will come to."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlake.retype.preview import EXAMPLES, PartitionPreview, preview
from eventlake.rules.casts import Outcome
from eventlake.rules.counts import CastCounts
from eventlake.rules.types import LakeType
from tests.support.lakes.archive import track
from tests.support.lakes.retyping import lake_of, target, wish
from tests.support.lakes.runs import Runs
from tests.support.oracles.leaves import ANY, COLUMNS


def shown(runs: Runs, into: LakeType, column: str = "track_order.n") -> PartitionPreview:
    return preview(lake_of(runs), target(runs, column), into).total


def load(runs: Runs, *values: Any, day: str = "2026-10-01") -> None:
    """A file with an event for each value, and a sync of it."""
    name = f"{sum(1 for _ in runs.root.rglob('*.gz'))}"
    runs.archive.day(day).file(
        name,
        *(track("Order", f"{day}{name}-{n}", f"{day}T07:00", n=v) for n, v in enumerate(values)),
    )
    runs.sync()


def test_outcomes_are_counted_by_partition_and_in_all(runs: Runs) -> None:
    load(runs, "1", "2.5", "x", "", day="2026-10-01")
    load(runs, "4", None, day="2026-10-02")
    seen = preview(lake_of(runs), target(runs, "track_order.n"), LakeType.BIGINT)
    assert seen.partitions == [
        PartitionPreview(("2026-10-01", "07"), 4, CastCounts(exact=2, lossy=1, failed=1)),
        PartitionPreview(("2026-10-02", "07"), 2, CastCounts(exact=1)),
    ]
    assert seen.total == PartitionPreview((), 6, CastCounts(exact=3, lossy=1, failed=1))
    assert seen.examples == {Outcome.LOSSY: ["2.5"], Outcome.FAILED: ["x"]}


def test_values_that_are_rescued_now_count_as_they_were_sent(runs: Runs) -> None:
    load(runs, 1)
    load(runs, "12,50", 2.5, [1], True, 10**20)
    assert shown(runs, LakeType.STRING) == PartitionPreview((), 6, CastCounts(exact=6), 5)
    decimal = preview(lake_of(runs), target(runs, "track_order.n"), LakeType.DECIMAL)
    assert decimal.total == PartitionPreview((), 6, CastCounts(exact=3, failed=3), 2)
    assert decimal.examples == {Outcome.FAILED: ["12,50", "[1]", "true"]}


def test_a_lossy_cell_is_judged_by_what_it_was(runs: Runs) -> None:
    load(runs, 1)
    load(runs, 2.25, 3.0)
    assert shown(runs, LakeType.DECIMAL) == PartitionPreview((), 3, CastCounts(exact=3), 1)
    load(runs, 0.1234567)
    assert shown(runs, LakeType.DECIMAL).casts == CastCounts(exact=3, lossy=1)


def test_a_rescued_value_that_belongs_to_another_column_does_not_count(runs: Runs) -> None:
    load(runs, 1)
    runs.archive.day("2026-10-01").file("a", track("Order", "m0", "2026-10-01T07:00", price=1))
    runs.sync()
    runs.archive.day("2026-10-01").file(
        "b",
        track("Order", "null here", "2026-10-01T07:00", price="dear"),
        track("Order", "m1", "2026-10-01T07:00", n=2, N="loser", other=1),
        track("Order", "m2", "2026-10-01T07:00", N="two", day="no column"),
        track("Order", "m3", "2026-10-01T07:00", N="2026-10-01", n="loses to nobody"),
    )
    runs.sync()
    assert shown(runs, LakeType.STRING) == PartitionPreview((), 6, CastCounts(exact=4), 2)
    assert shown(runs, LakeType.TIMESTAMP).casts == CastCounts(failed=4)


def test_files_from_before_the_column_have_nothing_in_it(runs: Runs) -> None:
    load(runs, None, None)
    load(runs, 1)
    assert shown(runs, LakeType.STRING) == PartitionPreview((), 3, CastCounts(exact=1))


def test_an_empty_text_leaves_a_trace_in_string_columns_only(runs: Runs) -> None:
    load(runs, "", "x")
    assert shown(runs, LakeType.BIGINT).casts == CastCounts(exact=1, failed=1)
    day = runs.archive.day("2026-10-02")
    for id, n in enumerate([1, ""]):
        day.file(f"paid {id}", track("Paid", f"p{id}", "2026-10-02T07:00", n=n))
        runs.sync()
    assert shown(runs, LakeType.STRING, "track_paid.n").casts == CastCounts(exact=1)


def test_few_examples_are_shown_and_none_twice(runs: Runs) -> None:
    load(runs, *(f"x{n % 7}" for n in range(50)))
    seen = preview(lake_of(runs), target(runs, "track_order.n"), LakeType.BOOLEAN)
    assert seen.examples == {Outcome.FAILED: [f"x{n}" for n in range(EXAMPLES)]}


@settings(max_examples=100)
@given(COLUMNS, st.lists(ANY, max_size=6), st.booleans(), st.sampled_from(LakeType))
def test_the_replay_counts_what_the_preview_said(
    first: list[Any], later: list[Any], rivals: bool, into: LakeType
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        runs = Runs(Path(folder))
        kept = [value for value in first if value not in ("", None)] or [1]
        load(runs, *kept)
        more = [value for value in later if value != ""]
        load(runs, *more)
        if rivals:
            event = track("Order", "rivals", "2026-10-01T07:00", n=5, N="loser")
            runs.archive.day("2026-10-02").file("z", event)
            runs.sync()
        if into is target(runs, "track_order.n").column.type:
            return
        said = shown(runs, into)
        wish(runs, "track_order.n", into.value)
        report = runs.replay("2026-10-01", "2026-10-02").tables["shop.track_order"]
        assert runs.state().wishes == {}
        assert said.casts == report.casts["properties_n"]
        assert said.rows == report.row_count

"""A dry run says exactly what the run would do, and leaves everything as it was."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings

from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import SettingsError
from eventlake.rules.types import LakeType
from eventlake.runs import placement
from eventlake.runs.dry_run import PlannedUnit, dry_replay, dry_sync
from eventlake.runs.unit import Window
from eventlake.state.manifest import RunKind
from tests.support.faults.flows import Counting, Raises, cancel, flow, load_days
from tests.support.lakes.archive import identify, order, page
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.random_archives import Replay, Story, stories
from tests.support.lakes.retyping import request_type, suppress_only
from tests.support.lakes.runs import Runs, utc
from tests.support.oracles.stories import play

DAY = ("2026-10-01", "2026-10-02")


def planned(runs: Runs, *replayed: str) -> list[PlannedUnit]:
    """A dry sync; of a range (and tables) given, a dry replay. Nothing is written by it."""
    before = runs.contents()
    if replayed:
        start, end, *tables = replayed
        window = Window(utc(start), utc(end))
        context = runs.context(RunKind.REPLAY, window)
        units = list(dry_replay(context, window, frozenset(tables) or None))
    else:
        units = list(dry_sync(runs.context()))
    assert runs.contents() == before
    return units


def counted(report: UnitReport) -> UnitReport:
    """A report without what only written files can tell."""
    tables = {k: msgspec.structs.replace(t, bytes_written=0) for k, t in report.tables.items()}
    return msgspec.structs.replace(report, tables=tables)


def rows_then(runs: Runs, units: list[PlannedUnit]) -> dict[tuple[str, ...], int]:
    """The rows of every partition after a dry run, from those of now and what it says."""
    rows = rows_now(runs)
    for partition in (partition for unit in units for partition in unit.partitions):
        key = (partition.table, *partition.values)
        assert rows.get(key, 0) == partition.rows_now
        rows.pop(key, None)
        if partition.rows_then is not None:
            rows[key] = partition.rows_then
    return rows


def rows_now(runs: Runs) -> dict[tuple[str, ...], int]:
    database = runs.source.database
    partitions = ((table, runs.partitions(table).items()) for table in runs.tables())
    return {(f"{database}.{t}", *values): p.rows for t, held in partitions for values, p in held}


@settings(max_examples=40)
@given(stories(suppression=True))
def test_for_any_archive_a_dry_run_has_the_numbers_of_the_run(story: Story) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(InProcess, "slots", story.tasks)
        patch.setattr(placement, "SPLIT_BYTES", 220)
        runs = Runs(Path(folder), **story.settings)
        for step in story.steps:
            suppress_only(runs.storage, step.suppressed.users, step.suppressed.visitors)
            if isinstance(step, Replay):
                units = planned(runs, step.start, step.end, *step.tables)
            else:
                for (day, name), lines in step.files.items():
                    runs.archive.day(day).file(name, *lines)
                units = planned(runs)
            then = rows_then(runs, units)
            report = play(step, runs)
            assert sum((unit.report for unit in units), UnitReport()) == counted(report)
            assert then == rows_now(runs)


def test_each_folder_builds_on_those_before_it(runs: Runs) -> None:
    runs.archive.day(DAY[0]).file("a", order("m1", "2026-10-01T07:00", n=1))
    runs.archive.day(DAY[1]).file(
        "a",
        order("m1", "2026-10-02T07:00", n=1),  # a copy
        order("m2", "2026-10-01T07:10", n="dear", new=True),
        identify("m3", "2026-10-02T07:00"),
        "no JSON",
    )
    first, second = planned(runs)
    assert first.report.tables["shop.track_order"].is_new
    orders = second.report.tables["shop.track_order"]
    assert (orders.is_new, orders.duplicates, orders.row_count) == (False, 1, 1)
    assert [column.name for column in orders.new_columns] == ["properties_new", "rescued_data"]
    assert orders.casts["properties_n"].failed == 1
    assert second.report.rejected == 1
    assert [(p.table, p.values, p.rows_now, p.rows_then) for p in second.partitions] == [
        ("shop.identify", ("2026-10-02", "07"), 0, 1),
        ("shop.track_order", ("2026-10-01", "07"), 1, 2),
    ]
    assert runs.tables() == []


def test_a_replay_reports_rows_and_partitions_to_be_dropped(runs: Runs) -> None:
    runs.archive.day(DAY[0]).file(
        "a", order("m1", "2026-10-01T07:00"), order("m2", "2026-10-01T08:00")
    )
    path = runs.archive.day(DAY[0]).file("b", page("m3", "2026-10-01T07:00"))
    runs.sync()
    runs.set(skip_events=["Order"])
    path.unlink()
    [unit] = planned(runs, *DAY)
    assert unit.report.skipped == 2
    assert [(p.table, p.values, p.rows_now, p.rows_then) for p in unit.partitions] == [
        ("shop.page", ("2026-10-01", "07"), 1, None),
        ("shop.track_order", ("2026-10-01", "07"), 1, None),
        ("shop.track_order", ("2026-10-01", "08"), 1, None),
    ]
    assert any("removed: segment-logs/S1/" in warning for warning in runs.warnings)


def test_a_replay_that_would_give_other_types_counts_in_these(runs: Runs) -> None:
    runs.archive.day(DAY[0]).file(
        "a", order("m1", "2026-10-01T07:00", n="7"), order("m2", "2026-10-01T07:00", n="seven")
    )
    runs.load(DAY[0], order("m0", "2026-09-30T23:00", n="0"), name="early")
    request_type(runs, "track_order.n", "bigint")
    day, evening_before = planned(runs, *DAY)
    assert day.switches == {"shop.track_order": {"properties_n": LakeType.BIGINT}}
    casts = day.report.tables["shop.track_order"].casts["properties_n"]
    assert (casts.exact, casts.failed) == (1, 1)
    assert evening_before.report.row_count == 1


def test_an_interrupted_replay_has_days_left(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("rows", 0), ("units", 0)):
        monkeypatch.setattr(Counting, name, value)
    span = load_days(runs, 3)
    cancel(runs, 2, *span)
    days = [("2026-09-02T00", "2026-09-03T00"), ("2026-09-03T00", "2026-09-04T00")]
    labels = [unit.label for unit in planned(runs, *span)]
    assert labels == [f"replay of {start} to {end}" for start, end in days]


@pytest.mark.parametrize("replayed", [(), DAY], ids=["sync", "replay"])
@pytest.mark.parametrize("changed", [{"date_partition": "day"}, {"naming": "warehouse"}])
def test_a_changed_layout_or_naming_is_refused_as_by_the_run(
    runs: Runs, replayed: tuple[str, ...], changed: dict[str, str]
) -> None:
    runs.load(DAY[0], order("m1", "2026-10-01T07:00"))
    runs.archive.day(DAY[0]).file("b", order("m2", "2026-10-01T07:00"))
    runs.set(**changed)
    [name] = changed
    with pytest.raises(SettingsError, match=f"{name}: .* were made with"):
        planned(runs, *replayed)


def test_a_concurrent_commit_is_a_warning(runs: Runs) -> None:
    for day in DAY:
        runs.archive.day(day).file("a", order(day, f"{day}T07:00"))
    units = dry_sync(runs.context())
    next(units)
    runs.sync()
    list(units)
    assert any("Another run has changed the lake meanwhile" in text for text in runs.warnings)


def test_a_dry_run_that_fails_leaves_nothing_either(runs: Runs) -> None:
    runs.archive.day(DAY[0]).file("a", order("m1", "2026-10-01T07:00"))
    runs.flow = flow(before_load=Raises(OSError("a node is lost")))
    before = runs.contents()
    with pytest.raises(OSError, match="a node is lost"):
        planned(runs)
    assert runs.contents() == before

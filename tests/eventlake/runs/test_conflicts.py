"""Two runs at once: who commits second plans again, and nothing is lost or doubled."""

import pytest

from eventlake.runs import placement
from eventlake.runs.replay import replay_units
from eventlake.runs.unit import Window
from eventlake.state.manifest import RunKind
from tests.support.faults.flows import overtaken, warned_of_conflict
from tests.support.lakes.archive import track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import Runs, utc


def test_a_sync_overtaken_by_the_same_sync_has_nothing_left_to_do(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.flow = overtaken(runs, runs.sync)
    assert runs.sync().row_count == 0
    assert warned_of_conflict(runs)
    assert runs.ids("track_order") == ["m1"]
    counts = {run: lines[0]["row_count"] for run, lines in runs.reports().items()}
    assert counts == {"R1": 0, "R2": 1}
    assert {lines[0]["status"] for lines in runs.reports().values()} == {"finished"}
    assert runs.storage.files("segment-stage") == []


def test_a_sync_overtaken_in_its_second_folder_uses_no_name_twice(runs: Runs) -> None:
    """All rows fall into one hour, so that files of one name would hide each other."""
    first, second = runs.archive.day("2026-10-01"), runs.archive.day("2026-10-02")
    first.file("a", track("Order", "m1", "2026-10-01T07:00"))
    second.file("a", track("Order", "m2", "2026-10-01T07:00"))

    def late_file() -> None:
        first.file("late", track("Order", "m3", "2026-10-01T07:00"))
        runs.replay("2026-10-03", "2026-10-04")

    runs.flow = overtaken(runs, late_file, unit=2)
    report = runs.sync()
    assert warned_of_conflict(runs)
    assert report.row_count == 3
    assert runs.ids("track_order") == ["m1", "m2", "m3"]
    assert {len(entries) for entries in runs.index().values()} == {3}
    assert runs.sync().rows_in == 0


def test_a_sync_overtaken_by_a_replay_builds_on_it(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.sync()
    day.file("b", track("Order", "m2", "2026-10-01T07:00"))
    runs.flow = overtaken(runs, lambda: runs.replay("2026-10-01", "2026-10-02"))
    report = runs.sync()
    # The replay has brought the row of the new file, too.
    assert (report.row_count, report.duplicates) == (0, 1)
    assert runs.ids("track_order") == ["m1", "m2"]
    assert list(runs.ledger()) == ["a.gz", "b.gz"]


@pytest.mark.parametrize("slots", [1, 3])
def test_a_replay_overtaken_by_a_sync_takes_its_rows_along(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    monkeypatch.setattr(InProcess, "slots", slots)
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)
    day = runs.archive.day("2026-10-01")
    for name in "abc":
        day.file(name, track("Order", name, "2026-10-01T07:00"))
    runs.sync()

    def late_file() -> None:
        runs.archive.day("2026-10-02").file("late", track("Order", "d", "2026-10-01T07:00"))
        runs.sync()

    runs.flow = overtaken(runs, late_file)
    assert runs.replay("2026-10-01", "2026-10-02").row_count == 4
    assert warned_of_conflict(runs)
    assert runs.ids("track_order") == ["a", "b", "c", "d"]
    assert [len(entries) for entries in runs.index().values()] == [4]


def test_a_sync_between_two_days_of_a_replay_loses_nothing_to_the_second(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", track("Order", day, f"{day}T07:00"))
    runs.sync()
    window = Window(utc("2026-10-01"), utc("2026-10-03"))
    days = replay_units(runs.context(RunKind.REPLAY, window), window)
    next(days)
    runs.archive.day("2026-10-02").file("late", track("Order", "late", "2026-10-02T07:00"))
    assert runs.sync().row_count == 1  # the lease is free between the days
    list(days)
    assert runs.ids("track_order") == ["2026-10-01", "2026-10-02", "late"]
    assert not warned_of_conflict(runs)


def test_partitions_that_grow_by_several_files_are_copied_from_where_they_lie_now(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InProcess, "slots", 2)
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)
    day = runs.archive.day("2026-10-01")
    gone = day.file("a", track("Order", "m1", "2026-10-01T07:00"))
    day.file("b", track("Order", "m2", "2026-10-01T07:00"))
    runs.sync()
    day.file("c", track("Order", "m3", "2026-10-01T07:00"))
    day.file("d", track("Order", "m4", "2026-10-01T07:00"))

    def replay_without_a_file() -> None:
        gone.unlink()
        runs.replay("2026-10-01", "2026-10-02")

    runs.flow = overtaken(runs, replay_without_a_file)
    runs.sync()
    assert runs.ids("track_order") == ["m2", "m3", "m4"]

"""Replays: a range made anew from the archive, its duplicates judged without what it held."""

from pathlib import Path

import pytest

from eventlake.rules import paths
from tests.support.lakes.archive import identify, page, track
from tests.support.lakes.runs import SOURCE_ID, Runs


def test_a_replay_brings_all_tables_of_its_days_as_the_archive_has_them_now(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", track("Order", "m1", "2026-10-01T07:00", n=1), identify("m2", "2026-10-01T08:00"))
    runs.archive.day("2026-10-02").file("a", track("Order", "m3", "2026-10-02T07:00", n=1))
    runs.sync()
    day.file("a", track("Order", "m1", "2026-10-01T07:00", n=2), page("m4", "2026-10-01T09:00"))
    report = runs.replay("2026-10-01", "2026-10-02")
    assert (report.rows_in, report.row_count) == (2, 2)
    assert runs.tables() == ["identify", "page", "track_order"]
    assert runs.rows("track_order", "message_id", "properties_n") == [
        {"message_id": "m1", "properties_n": 2},
        {"message_id": "m3", "properties_n": 1},
    ]
    assert runs.rows("identify") == []
    assert runs.ids("page") == ["m4"]


def test_a_replay_of_one_table_leaves_the_others_alone(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", track("Order", "m1", "2026-10-01T07:00"), identify("m2", "2026-10-01T07:00"))
    runs.sync()
    day.file("a", track("Order", "m3", "2026-10-01T07:00"), identify("m4", "2026-10-01T07:00"))
    report = runs.replay("2026-10-01", "2026-10-02", "track_order")
    assert list(report.tables) == ["shop.track_order"]
    assert report.rows_in == 1
    assert (runs.ids("track_order"), runs.ids("identify")) == (["m3"], ["m2"])


def test_a_replay_of_an_hour_keeps_the_ids_of_the_rest_of_the_day(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file(
        "a", track("Order", "m1", "2026-10-01T07:00"), track("Order", "m2", "2026-10-01T08:00")
    )
    runs.sync()
    index = runs.index()
    report = runs.replay("2026-10-01T07:00", "2026-10-01T08:00")
    assert report.row_count == 1
    assert runs.index() == index
    day.file(
        "b", track("Order", "m1", "2026-10-01T09:00"), track("Order", "m2", "2026-10-01T09:00")
    )
    assert runs.sync().duplicates == 2


def test_partitions_outside_of_the_range_stay_as_they_are_whatever_the_files_hold(
    runs: Runs,
) -> None:
    """One file has rows of three days; the middle one is replayed, then an hour of it."""
    days = ("2026-10-01", "2026-10-02", "2026-10-03")
    runs.archive.day(days[1]).file(
        "a",
        *(
            track("Order", f"{day}T{hour}", f"{day}T{hour}:00")
            for day in days
            for hour in ("07", "08")
        ),
    )
    runs.sync()
    before, rows = runs.partitions("track_order"), runs.rows("track_order")
    runs.replay(days[1], days[2])
    runs.replay(f"{days[1]}T07:00", f"{days[1]}T08:00")
    after = runs.partitions("track_order")
    assert {key for key in after if after[key] != before[key]} == {
        (days[1], "07"),
        (days[1], "08"),
    }
    assert runs.rows("track_order") == rows


def test_a_replay_changes_nothing_where_nothing_has_changed(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02", "2026-10-03"):
        runs.archive.day(day).file(
            "a",
            track("Order", f"{day}", f"{day}T07:00", n=1),
            track("Order", "copy", f"{day}T08:00", n="x"),
            "no JSON",
        )
    runs.sync()
    rows, index, state = runs.rows("track_order"), runs.index(), runs.state()
    ledger = runs.ledger()
    report = runs.replay("2026-10-01", "2026-10-04")
    assert (report.row_count, report.duplicates, report.rejected) == (4, 2, 0)
    assert runs.rows("track_order") == rows
    assert runs.index() == index
    assert runs.ledger() == ledger
    assert runs.state().tables == state.tables
    assert runs.state().rows == state.rows == {"shop.track_order": 4}


def test_a_row_whose_copy_was_kept_returns_when_the_copy_is_gone(runs: Runs) -> None:
    first = runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.archive.day("2026-10-02").file("a", track("Order", "m1", "2026-10-02T07:00"))
    runs.sync()
    assert list(runs.partitions("track_order")) == [("2026-10-01", "07")]
    first.unlink()
    runs.replay("2026-10-01", "2026-10-03")
    assert list(runs.partitions("track_order")) == [("2026-10-02", "07")]


def test_what_the_lake_has_around_the_range_is_kept_against_what_is_replayed(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.sync()
    # It came first, but was found later: the one in the lake stays, also in a replay of the other.
    runs.archive.day("2026-10-02").file("late", track("Order", "m1", "2026-09-30T07:00"))
    assert runs.sync().duplicates == 1
    assert runs.replay("2026-09-30", "2026-10-01").duplicates == 1
    assert list(runs.partitions("track_order")) == [("2026-10-01", "07")]


def test_files_that_a_replay_has_brought_are_recognised_by_their_ids(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.ledger() == {}
    day.file("b", track("Order", "m2", "2026-10-01T07:00"))
    report = runs.sync()
    assert (report.row_count, report.duplicates) == (1, 1)
    assert runs.ids("track_order") == ["m1", "m2"]


def test_skipped_events_leave_the_range_and_come_back(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file(
        "a", track("Order", "m1", "2026-10-01T07:00"), page("m2", "2026-10-01T07:00")
    )
    runs.sync()
    runs.set(skip_events=["Order"])
    report = runs.replay("2026-10-01", "2026-10-02")
    assert (report.row_count, report.skipped, report.rows_in) == (1, 1, 2)
    assert runs.rows("track_order") == []
    runs.set()
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.ids("track_order") == ["m1"]


@pytest.mark.parametrize("kind", ["file", "all"])
def test_an_index_that_is_gone_is_made_again_from_the_lake(tmp_path: Path, kind: str) -> None:
    """The same archive with and without the loss ends in the same lake."""
    ends = []
    for lost in (False, True):
        runs = Runs(tmp_path / str(lost))
        for day in ("2026-10-01", "2026-10-03", "2026-10-08"):
            runs.archive.day(day).file(
                "a", *(track("Order", f"{day}{n}", f"{day}T0{n}:00") for n in range(3))
            )
        runs.sync()
        if lost:
            files = runs.storage.files(f"{paths.source_state(SOURCE_ID)}/ids")
            for file in files if kind == "all" else files[:1]:
                runs.storage.delete(file.path)
        runs.archive.day("2026-10-08").file(
            "b",
            track("Order", "2026-10-010", "2026-10-08T00:00"),  # just within the week
            track("Order", "2026-10-011", "2026-10-08T01:00:00.000001"),  # just beyond it
            track("Order", "2026-10-082", "2026-10-08T05:00"),
        )
        report = runs.sync()
        assert (report.row_count, report.duplicates) == (1, 2)
        ends.append((runs.rows("track_order"), runs.index()))
    assert ends[0] == ends[1]

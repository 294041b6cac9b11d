"""From the id of an event to every line, run, reason and file."""

import shutil
from collections.abc import Callable

import pytest

from eventlake.lake import Lake
from eventlake.records.find import Found, Outcome, days_around, find
from eventlake.rules import paths
from eventlake.runs import placement
from tests.support.lakes.archive import order, page
from tests.support.lakes.recorded import FILE, expire
from tests.support.lakes.runs import Runs, utc

OWN = "segment-data/data/S1/segment_type=track_order/day=2026-10-01/hr=07"


Search = Callable[[str], Found]


@pytest.fixture
def search(lake: Lake) -> Search:
    return lambda id: find(lake, lake.settings.sources[0], id)


def outcomes(found: Found) -> list[tuple[str, int, str, Outcome | None]]:
    """Run, line, status and what is now, of each occurrence."""
    return [
        (one.log.run_id, one.record["raw_line"], one.record["status"], one.now)
        for one in found.occurrences
    ]


def files(found: Found) -> list[str]:
    return [row.data_file for row in found.rows]


@pytest.mark.parametrize(
    ("message_id", "occurrences", "rows"),
    [
        ("m1", [("R1", 1, "succeeded", Outcome.IN_LAKE), ("R1", 2, "DUPLICATE", None)], 1),
        ("m2", [("R1", 7, "succeeded", Outcome.IN_LAKE)], 1),
        ("p1", [("R1", 4, "rejected", None)], 0),
        ("d1", [("R1", 6, "rejected", None)], 0),
        (f"{FILE}:3", [("R1", 3, "rejected", None)], 0),
        (f"{FILE}:5", [("R1", 5, "NULL", None)], 0),
        ("M1", [], 0),
        ("", [], 0),
    ],
)
def test_every_occurrence_is_found_with_its_outcome(
    search: Search, message_id: str, occurrences: list[object], rows: int
) -> None:
    found = search(message_id)
    assert outcomes(found) == occurrences
    assert len(found.rows) == rows
    assert bool(found) == bool(occurrences)


def test_a_loaded_event_is_found_in_its_file(search: Search) -> None:
    (row,) = search("m2").rows
    assert (row.database, row.table_name) == ("shop", "track_order")
    assert row.partition == "day=2026-10-01/hr=07"
    assert row.data_file == f"{OWN}/R1-0-0.parquet"
    assert row.received_at == utc("2026-10-01T07:10")
    assert row.run_id == "R1"
    searched = search("missing").searched
    assert (searched.runs, searched.since) == (1, utc("2026-10-20T00:01:00.123456"))
    assert searched.index_days == ("2026-10-01",)


def test_after_a_replay_another_file_holds_it(runs: Runs, search: Search) -> None:
    runs.replay("2026-10-01", "2026-10-02")
    found = search("m2")
    first = ("R1", 7, "succeeded", Outcome.REPLACED)
    assert outcomes(found) == [first, ("R2", 7, "succeeded", Outcome.IN_LAKE)]
    assert [one.log.run.kind for one in found.occurrences] == ["sync", "replay"]
    (now,) = files(found)
    assert now == found.occurrences[1].record["data_file"]
    assert {one.now_in for one in found.occurrences} == {now}
    assert now.endswith("/versions/R2/segment_type=track_order/day=2026-10-01/hr=07/R2-0-0.parquet")


def test_a_file_may_move_with_its_partition(
    runs: Runs, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "SPLIT_BYTES", 1)  # what is added are several files
    runs.load("2026-10-01", order("m3", "2026-10-01T07:20"), name="b")
    (one,) = search("m2").occurrences
    assert one.now is Outcome.IN_LAKE
    assert one.record["data_file"] == f"{OWN}/R1-0-0.parquet"
    assert one.now_in == one.record["data_file"].replace("/S1/", "/S1/versions/R2/")


def test_a_replay_removes_rows_it_does_not_load(runs: Runs, search: Search) -> None:
    runs.set(skip_events=["Order"])
    runs.replay("2026-10-01", "2026-10-02")
    found = search("m2")
    assert outcomes(found) == [("R1", 7, "succeeded", Outcome.GONE), ("R2", 7, "rejected", None)]
    assert found.rows == ()


def test_two_events_of_one_id_a_week_apart_are_distinct(runs: Runs, search: Search) -> None:
    runs.load("2026-10-08", order("m2", "2026-10-08T07:10:00.000001"), name="b")
    times = [row.received_at for row in search("m2").rows]
    assert times == [utc("2026-10-01T07:10"), utc("2026-10-08T07:10:00.000001")]
    runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    expected = [("R1", 7, "succeeded", Outcome.GONE), ("R2", 1, "succeeded", Outcome.IN_LAKE)]
    assert outcomes(search("m2")) == expected


def test_a_duplicate_leads_to_the_kept_event(runs: Runs, lake: Lake, search: Search) -> None:
    """Also when the log of the kept one is gone."""
    runs.archive.day("2026-10-08").file("b", page("m2", "2026-10-08T07:10"))
    runs.set()
    runs.sync()
    expire(lake, "R1")
    found = search("m2")
    assert outcomes(found) == [("R2", 1, "DUPLICATE", None)]
    assert files(found) == [f"{OWN}/R1-0-0.parquet"]
    assert found.rows[0].run_id == "R1"


@pytest.mark.parametrize("index_too", [False, True])
def test_events_are_found_without_logs(lake: Lake, search: Search, index_too: bool) -> None:
    expire(lake, "R1")
    if index_too:
        shutil.rmtree(lake.storage.full(f"{paths.source_state('S1')}/ids"))
    found = search("m2")
    assert (outcomes(found), files(found)) == ([], [f"{OWN}/R1-0-0.parquet"])
    assert found.searched.since is None
    assert not search("d1")


@pytest.mark.parametrize("date_partition", ["year/month/day", "day", "year/month/day/hour"])
def test_in_every_layout_and_naming(runs: Runs, lake: Lake, date_partition: str) -> None:
    runs.set(database="other", date_partition=date_partition, naming="warehouse")
    source = runs.source
    runs.load("2026-10-02", order("m9", "2026-10-02T07:10"), name="b")
    found = find(lake, source, "m9")
    assert outcomes(found) == [("R2", 1, "succeeded", Outcome.IN_LAKE)]
    assert [row.database for row in found.rows] == ["other"]
    assert [row.database for row in find(lake, source, "m2").rows] == ["shop"]


@pytest.mark.parametrize(
    ("days", "reach", "expected"),
    [
        ([], 7, set()),
        (["2026-10-01"], 0, {"2026-10-01"}),
        (["2026-10-01"], 1, {"2026-09-30", "2026-10-01", "2026-10-02"}),
        (["0001-01-01"], 1, {"0001-01-01", "0001-01-02"}),
        (["9999-12-31"], 1, {"9999-12-30", "9999-12-31"}),
    ],
)
def test_days_around(days: list[str], reach: int, expected: set[str]) -> None:
    assert days_around(days, reach) == expected

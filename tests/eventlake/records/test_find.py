"""Where is my event? From its id to every line, run, reason and file."""

import shutil

import pytest

from eventlake.lake import Lake
from eventlake.records.find import Fate, Found, days_around, find
from eventlake.rules import paths
from eventlake.runs import placement
from eventlake.settings.models import Source
from tests.support.lakes.archive import page, track
from tests.support.lakes.recorded import FILE, expire
from tests.support.lakes.runs import Runs, utc

OWN = "segment-data/data/S1/segment_type=track_order/day=2026-10-01/hr=07"


@pytest.fixture
def source(lake: Lake) -> Source:
    return lake.settings.sources[0]


def told(found: Found) -> list[tuple[str, int, str, Fate | None]]:
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
        ("m1", [("R1", 1, "succeeded", Fate.IN_LAKE), ("R1", 2, "DUPLICATE", None)], 1),
        ("m2", [("R1", 7, "succeeded", Fate.IN_LAKE)], 1),
        ("p1", [("R1", 4, "rejected", None)], 0),
        ("d1", [("R1", 6, "rejected", None)], 0),
        (f"{FILE}:3", [("R1", 3, "rejected", None)], 0),
        (f"{FILE}:5", [("R1", 5, "NULL", None)], 0),
        ("M1", [], 0),
        ("", [], 0),
    ],
)
def test_every_occurrence_is_told_and_what_became_of_it(
    lake: Lake,
    source: Source,
    message_id: str,
    occurrences: list[tuple[str, int, str, Fate | None]],
    rows: int,
) -> None:
    found = find(lake, source, message_id)
    assert told(found) == occurrences
    assert len(found.rows) == rows
    assert bool(found) == bool(occurrences)


def test_a_loaded_event_is_told_down_to_its_file(lake: Lake, source: Source) -> None:
    (row,) = find(lake, source, "m2").rows
    assert (row.database, row.table_name) == ("shop", "track_order")
    assert row.partition == "day=2026-10-01/hr=07"
    assert row.data_file == f"{OWN}/R1-0-0.parquet"
    assert row.received_at == utc("2026-10-01T07:10")
    assert row.run_id == "R1"


def test_what_was_searched_is_told(lake: Lake, source: Source) -> None:
    searched = find(lake, source, "nobody").searched
    assert (searched.runs, searched.since) == (1, utc("2026-10-20T00:01:00.123456"))
    assert searched.index_days == ("2026-10-01",)


def test_after_a_replay_another_file_holds_it(runs: Runs, lake: Lake, source: Source) -> None:
    runs.replay("2026-10-01", "2026-10-02")
    found = find(lake, source, "m2")
    assert told(found) == [
        ("R1", 7, "succeeded", Fate.REPLACED),
        ("R2", 7, "succeeded", Fate.IN_LAKE),
    ]
    assert [one.log.run.kind for one in found.occurrences] == ["sync", "replay"]
    (now,) = files(found)
    assert now == found.occurrences[1].record["data_file"]
    assert {one.now_in for one in found.occurrences} == {now}
    assert now.endswith("/_v/R2/segment_type=track_order/day=2026-10-01/hr=07/R2-0-0.parquet")


def test_a_file_that_moved_with_its_partition_is_still_the_same(
    runs: Runs, lake: Lake, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "SPLIT_BYTES", 1)  # what is added are several files
    runs.archive.day("2026-10-01").file("b", track("Order", "m3", "2026-10-01T07:20"))
    runs.sync()
    (one,) = find(lake, source, "m2").occurrences
    assert one.now is Fate.IN_LAKE
    assert one.record["data_file"] == f"{OWN}/R1-0-0.parquet"
    assert one.now_in == one.record["data_file"].replace("/S1/", "/S1/_v/R2/")


def test_what_a_replay_left_out_is_no_longer_in_the_lake(
    runs: Runs, lake: Lake, source: Source
) -> None:
    runs.set(skip_events=["Order"])
    runs.replay("2026-10-01", "2026-10-02")
    found = find(lake, source, "m2")
    assert told(found) == [("R1", 7, "succeeded", Fate.GONE), ("R2", 7, "rejected", None)]
    assert found.rows == ()


def test_a_row_of_the_same_id_a_week_later_is_not_taken_for_it(
    runs: Runs, lake: Lake, source: Source
) -> None:
    runs.archive.day("2026-10-08").file("b", track("Order", "m2", "2026-10-08T07:10:00.000001"))
    runs.sync()
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    found = find(lake, source, "m2")
    assert told(found) == [("R1", 7, "succeeded", Fate.GONE), ("R2", 1, "succeeded", Fate.IN_LAKE)]


def test_duplicates_lead_to_the_kept_one_also_when_its_log_is_gone(
    runs: Runs, lake: Lake, source: Source
) -> None:
    runs.archive.day("2026-10-08").file("b", page("m2", "2026-10-08T07:10"))
    runs.set()
    runs.sync()
    expire(lake, "R1")
    found = find(lake, source, "m2")
    assert told(found) == [("R2", 1, "DUPLICATE", None)]
    assert files(found) == [f"{OWN}/R1-0-0.parquet"]
    assert found.rows[0].run_id == "R1"


def test_events_of_one_id_a_week_and_more_apart_are_both_found(
    runs: Runs, lake: Lake, source: Source
) -> None:
    runs.archive.day("2026-10-08").file("b", track("Order", "m2", "2026-10-08T07:10:00.000001"))
    runs.sync()
    assert [row.received_at for row in find(lake, source, "m2").rows] == [
        utc("2026-10-01T07:10"),
        utc("2026-10-08T07:10:00.000001"),
    ]


@pytest.mark.parametrize("index_too", [False, True])
def test_without_any_log_the_index_and_the_tables_still_tell(
    lake: Lake, source: Source, index_too: bool
) -> None:
    expire(lake, "R1")
    if index_too:
        shutil.rmtree(lake.storage.full(f"{paths.source_state('S1')}/ids"))
    found = find(lake, source, "m2")
    assert (told(found), files(found)) == ([], [f"{OWN}/R1-0-0.parquet"])
    assert found.searched.since is None
    assert not find(lake, source, "d1")


@pytest.mark.parametrize("date_partition", ["year/month/day", "day", "year/month/day/hour"])
def test_in_every_layout_and_naming(runs: Runs, lake: Lake, date_partition: str) -> None:
    runs.set(database="other", date_partition=date_partition, naming="warehouse")
    source = runs.source
    runs.archive.day("2026-10-02").file("b", track("Order", "m9", "2026-10-02T07:10"))
    runs.sync()
    found = find(lake, source, "m9")
    assert told(found) == [("R2", 1, "succeeded", Fate.IN_LAKE)]
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

"""Files that nothing leads to are noted when they are first seen, and go when seen again."""

from datetime import timedelta

import pytest

from eventlake.rules import paths
from eventlake.runs.open_runs import OpenRun
from eventlake.state.lease import myself
from eventlake.storage.documents import encode
from eventlake.upkeep.removal import find_orphans, remove_orphans
from tests.support.faults.failing_storage import lying, needed
from tests.support.lakes.archive import order, track
from tests.support.lakes.retyping import request_type
from tests.support.lakes.runs import SOURCE_ID, Runs, utc

NOW = utc("2026-10-20")
OWN = f"segment-data/data/{SOURCE_ID}"
VERSION = f"{paths.versions(SOURCE_ID)}/R7/segment_type=track_order/day=2026-10-01/hr=07"
ORPHANS = [
    f"{OWN}/segment_type=track_order/day=2026-10-01/hr=09/R7-0-0.parquet",
    f"{VERSION}/R7-0-0.parquet",
    f"{paths.id_indexes(SOURCE_ID)}/day=2026-10-01/R7-0-00.arrow",
]


def look(runs: Runs, days: float) -> tuple[list[str], list[str]]:
    """Those that went, and those that wait, so many days after the first look."""
    at = NOW + timedelta(days=days)
    found = find_orphans(runs.storage, runs.catalog, runs.state(), at, days=7)
    remove_orphans(runs.storage, SOURCE_ID, found, at)
    return [file.path for file in found.due], [file.path for file in found.waiting]


@pytest.fixture(autouse=True)
def _a_day(runs: Runs) -> None:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00", n=1))


def test_an_orphan_is_removed_after_two_runs_a_grace_period_apart(runs: Runs) -> None:
    for path in ORPHANS:
        runs.storage.write(path, b"left by nobody knows whom")
    assert look(runs, 0) == ([], sorted(ORPHANS, key=_as_listed))
    assert look(runs, 6.9) == ([], sorted(ORPHANS, key=_as_listed))
    assert look(runs, 7) == (sorted(ORPHANS, key=_as_listed), [])
    assert lying(runs) == needed(runs)
    assert look(runs, 8) == ([], [])
    assert runs.ids("track_order") == ["m1"]


def _as_listed(path: str) -> bool:
    return path.endswith(".arrow")


def test_the_grace_period_begins_when_an_orphan_is_first_seen(runs: Runs) -> None:
    runs.storage.write(ORPHANS[0], b"x")
    assert look(runs, 100)[0] == []
    assert look(runs, 106)[0] == []
    assert look(runs, 107)[0] == [ORPHANS[0]]


@pytest.mark.parametrize(
    "path",
    [
        f"{OWN}/segment_type=identify/day=2020-01-01/hr=07/part-0000.parquet",
        f"{OWN}/segment_type=identify/day=2020-01-01/hr=07/1-0-0.parquet",
        f"{OWN}/segment_type=track_order/day=2020-01-01/hr=07/part-0000.parquet",
        f"{OWN}/segment_type=track_order/day=2020-01-01/hr=07/_SUCCESS",
        f"{OWN}/notes.txt",
        "segment-data/data/S2/versions/R7/segment_type=x/R7-0-0.parquet",
        "my-own-folder/R7-0-0.parquet",
        "logs/R7-0-0.parquet",
    ],
)
def test_files_of_others_are_never_touched(runs: Runs, path: str) -> None:
    runs.storage.write(path, b"not ours")
    assert look(runs, 0) == ([], [])
    assert look(runs, 100) == ([], [])
    assert runs.storage.read(path) == b"not ours"


def test_folders_that_others_had_before_a_table_came_are_theirs(runs: Runs) -> None:
    theirs = f"{OWN}/segment_type=track_refund/day=2020-01-01/hr=07/1-0-0.parquet"
    runs.storage.write(theirs, b"not ours, though called so")
    runs.load("2026-10-01", track("Refund", "m2", "2026-10-01T07:00"), name="b")
    assert look(runs, 0) == ([], [])


def test_files_of_a_running_run_are_no_orphans(runs: Runs) -> None:
    for path in ORPHANS:
        runs.storage.write(path, b"under way")
    run = OpenRun(runs.context().facts, 0, myself())
    runs.storage.write(paths.open_run(SOURCE_ID, "R7"), encode(run))
    assert look(runs, 0) == ([], [])


def test_replaced_and_abandoned_files_have_their_own_grace_period(runs: Runs) -> None:
    runs.replay("2026-10-01", "2026-10-02")
    assert lying(runs) > needed(runs)
    assert look(runs, 0) == ([], [])


def test_nothing_is_an_orphan_during_a_commit(runs: Runs) -> None:
    runs.storage.write(ORPHANS[0], b"x")
    runs.storage.write(paths.manifest(SOURCE_ID, runs.state().manifest + 1), b"just committed")
    assert look(runs, 0) == ([], [])


def test_partitions_of_the_catalog_in_earlier_types_go_too(runs: Runs) -> None:
    for type in ("string", "bigint"):
        request_type(runs, "track_order.n", type)
        runs.replay("2026-10-01", "2026-10-02")
    folder = paths.catalog_table("shop", "track_order")
    assert len(runs.storage.folders(folder)) == 3
    _, waiting = look(runs, 0)
    assert len(waiting) == 2 and all("/partitions" in path for path in waiting)
    rows = runs.rows("track_order")
    assert look(runs, 7)[0] == waiting
    assert len(runs.storage.files(folder)) == 2  # the table, and its month
    assert runs.rows("track_order") == rows

"""Retention, and recovery of the catalog from manifests."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventlake.lake import Lake
from eventlake.records.find import find
from eventlake.rules import paths
from eventlake.rules.errors import CommitConflict, ConsentNeeded
from eventlake.runs.open_runs import OpenRun
from eventlake.runs.run import Run
from eventlake.state import lease
from eventlake.state.lease import Holder, Lease, myself
from eventlake.state.manifest import Manifest, RunKind, commit, read_pruned
from eventlake.storage.documents import encode
from eventlake.upkeep import removal
from eventlake.upkeep.recovery import Recovery, recover
from eventlake.upkeep.removal import drop_index_days, prune_manifests, remove_expired_logs
from tests.support.faults.failing_storage import (
    Broken,
    FailingStorage,
    Fault,
    Faults,
    lying,
    needed,
)
from tests.support.lakes.archive import order
from tests.support.lakes.runs import SOURCE_ID, CleanAfter, Runs, utc


def drop_days(runs: Runs, at: str) -> list[str]:
    run = Run(runs.context(RunKind.UPKEEP))
    with run.unreported():
        return drop_index_days(run, utc(at))


def days(runs: Runs, *days: str) -> None:
    for day in days:
        runs.archive.day(day).file("a", order(day, f"{day}T07:00"))
    runs.sync()


def test_old_days_leave_the_index(runs: Runs, clean_after: CleanAfter) -> None:
    days(runs, "2026-10-01", "2026-10-02", "2026-10-20")
    assert drop_days(runs, "2026-10-31") == []
    assert drop_days(runs, "2026-11-01") == ["2026-10-01"]
    assert sorted(runs.state().index) == ["2026-10-02", "2026-10-20"]
    assert len(runs.storage.files(paths.id_indexes(SOURCE_ID))) == 3
    clean_after(25)
    assert len(runs.storage.files(paths.id_indexes(SOURCE_ID))) == 2
    assert drop_days(runs, "2026-11-01") == []
    assert drop_days(runs, "2027-01-01") == ["2026-10-02", "2026-10-20"]
    assert runs.state().index == {}


def test_the_setting_is_for_more_than_events_of_today_are_compared_with(runs: Runs) -> None:
    runs.set(retention={"index_days": 1}, dedup_days=20)
    days(runs, "2026-10-01")
    assert drop_days(runs, "2026-10-22") == []
    assert drop_days(runs, "2026-10-23") == ["2026-10-01"]


def test_late_duplicates_of_days_without_index_are_recognised(runs: Runs) -> None:
    days(runs, "2026-10-01", "2026-10-20")
    drop_days(runs, "2026-12-24")
    report = runs.load(
        "2026-10-21",
        order("2026-10-01", "2026-10-03T07:00"),
        order("2026-10-20", "2026-10-19T07:00"),
        order("2026-10-01", "2026-10-20T08:00"),
        order("new", "2026-10-05T07:00"),
        name="late",
    )
    assert (report.row_count, report.duplicates) == (2, 2)
    # The days that were made anew are whole, and stay until the next upkeep.
    assert sorted(runs.state().index) == ["2026-10-01", "2026-10-05", "2026-10-20"]
    assert [len(ids) for _, ids in sorted(runs.index().items())] == [1, 1, 2]
    runs.archive.day("2026-10-22").file("later", order("new", "2026-10-06T07:00"))
    assert runs.sync().duplicates == 1
    assert drop_days(runs, "2026-12-24") == ["2026-10-01", "2026-10-05", "2026-10-20"]


def test_a_replay_of_days_without_index_compares_with_the_days_around_it(runs: Runs) -> None:
    runs.load("2026-10-01", order("m", "2026-10-01T07:00"))
    runs.load("2026-10-02", order("m", "2026-10-02T07:00"), order("n", "2026-10-02T07:00"))
    drop_days(runs, "2026-12-24")
    report = runs.replay("2026-10-02", "2026-10-03")
    assert (report.row_count, report.duplicates) == (1, 1)
    assert runs.ids("track_order") == ["m", "n"]


def test_an_event_of_a_day_without_index_is_found_in_its_table(runs: Runs) -> None:
    days(runs, "2026-10-01", "2026-10-02")
    drop_days(runs, "2026-12-24")
    runs.storage.delete_folder("sync_tracking_datasets")
    found = find(Lake(runs.settings, runs.storage, runs.catalog), runs.source, "2026-10-01")
    assert [row.partition for row in found.rows] == ["day=2026-10-01/hr=07"]


def logs(runs: Runs) -> list[str]:
    return runs.storage.folders(paths.tracked_runs("W1", SOURCE_ID))


def test_record_logs_go_when_their_days_are_over(runs: Runs) -> None:
    """Runs of these tests begin a few minutes after midnight of 2026-10-20."""
    days(runs, "2026-10-01")
    days(runs, "2026-10-02")
    assert logs(runs) == ["R1", "R2"]
    early = datetime(2026, 11, 3, tzinfo=UTC)
    for at, left in ((early, ["R1", "R2"]), (early + timedelta(minutes=2), ["R2"])):
        remove_expired_logs(runs.storage, runs.catalog, runs.settings, runs.source, at)
        assert logs(runs) == left
    removed = remove_expired_logs(
        runs.storage, runs.catalog, runs.settings, runs.source, early.replace(day=5)
    )
    assert (removed.files, logs(runs)) == (2, [])


def test_the_log_of_a_running_run_stays(runs: Runs) -> None:
    days(runs, "2026-10-01")
    living = OpenRun(runs.context().facts, 0, myself())
    runs.storage.write(paths.open_run(SOURCE_ID, "R1"), encode(living))
    remove_expired_logs(runs.storage, runs.catalog, runs.settings, runs.source, utc("2027-10-01"))
    assert logs(runs) == ["R1"]


def test_a_log_without_its_description_goes_by_the_time_of_its_files(runs: Runs) -> None:
    runs.storage.write(f"{paths.tracking('W1', SOURCE_ID, 'R1')}/records_loaded.0.parquet", b"x")
    for days, left in ((13, ["R1"]), (15, [])):
        at = datetime.now(UTC) + timedelta(days=days)
        remove_expired_logs(runs.storage, runs.catalog, runs.settings, runs.source, at)
        assert logs(runs) == left


def numbers(runs: Runs) -> list[int]:
    found = runs.storage.files(paths.manifests(SOURCE_ID))
    return [int(file.name.removesuffix(".json")) for file in found]


@pytest.fixture
def few_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "KEPT", 2)


@pytest.mark.usefixtures("few_kept")
def test_manifests_go_once_their_work_is_done(runs: Runs, clean_after: CleanAfter) -> None:
    for day in range(1, 7):
        days(runs, f"2026-10-0{day}")
    assert not prune_manifests(runs.storage, runs.state())  # not cleaned up after yet
    clean_after(25)
    assert prune_manifests(runs.storage, runs.state()).files == 4
    assert numbers(runs) == [5, 6]
    days(runs, "2026-10-07")
    assert numbers(runs) == [5, 6, 7]
    runs.replay("2026-10-01", "2026-10-08")
    assert len(runs.ids("track_order")) == 7


@pytest.mark.usefixtures("few_kept")
def test_manifests_of_open_runs_stay(runs: Runs, clean_after: CleanAfter) -> None:
    days(runs, "2026-10-01", "2026-10-02")
    runs.replay("2026-10-01", "2026-10-02")  # its manifest says which raw files it read
    for day in range(3, 8):
        days(runs, f"2026-10-0{day}")
    clean_after(25)
    going_on = OpenRun(runs.context().facts, 5, myself())
    runs.storage.write(paths.open_run(SOURCE_ID, "R99"), encode(going_on))
    prune_manifests(runs.storage, runs.state())
    assert numbers(runs) == [3, 6, 7, 8]
    runs.storage.delete(paths.open_run(SOURCE_ID, "R99"))
    prune_manifests(runs.storage, runs.state())
    assert numbers(runs) == [3, 7, 8]
    runs.archive.day("2026-10-01").file("a", "changed since")
    with pytest.raises(ConsentNeeded, match="no longer the same"):
        runs.replay("2026-10-01", "2026-10-02", accept=False)


@pytest.mark.usefixtures("few_kept")
def test_a_suspended_run_commits_no_used_number(runs: Runs, clean_after: CleanAfter) -> None:
    days(runs, "2026-10-01")
    facts, number = runs.context().facts, runs.state().manifest + 1
    asleep = Manifest(number, SOURCE_ID, RunKind.SYNC, facts, "day/hour", "native")
    for day in range(2, 7):
        days(runs, f"2026-10-0{day}")
    clean_after(25)
    prune_manifests(runs.storage, runs.state())
    assert asleep.number not in numbers(runs) and read_pruned(runs.storage, SOURCE_ID) == 4
    with pytest.raises(CommitConflict, match="planned again"):
        commit(runs.storage, asleep)
    assert asleep.number not in numbers(runs)


def test_folders_in_which_nothing_is_left_go(runs: Runs, clean_after: CleanAfter) -> None:
    days(runs, "2026-10-01")
    runs.replay("2026-10-01", "2026-10-02")
    runs.come_home()
    clean_after(25)
    assert lying(runs) == needed(runs)
    data = runs.root / "segment-data" / "data" / SOURCE_ID
    empty = data / "versions/R2/segment_type=track_order/day=2026-10-01"
    assert empty.is_dir()
    runs.storage.delete_empty_folders(f"segment-data/data/{SOURCE_ID}")
    assert empty.is_dir()  # somebody may be about to write into it
    for folder in (empty, empty.parent):
        os.utime(folder, (0, 0))
    runs.storage.delete_empty_folders(f"segment-data/data/{SOURCE_ID}")
    assert not empty.exists()
    assert runs.ids("track_order") == ["2026-10-01"]


GONE = Holder("another-machine", 1, datetime.now(UTC) - timedelta(minutes=5))


def recovered(runs: Runs, hours: float = 0) -> Recovery:
    lake = Lake(runs.settings, runs.storage, runs.catalog)
    return recover(lake, runs.source, datetime.now(UTC) + timedelta(hours=hours))


def died(runs: Runs, where: str) -> None:
    """A sync whose process is gone at a certain change of the store."""
    healthy = runs.storage
    runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T07:00"))
    faults = Faults(Fault.DEATH)
    change = faults.change

    def until(name: str, path: str, make: Callable[[], object]) -> object:
        if faults.at < 0 and f"{name} {path}".startswith(where):
            faults.at = faults.changes
        return change(name, path, make)

    faults.change = until  # type: ignore[method-assign]
    runs.storage = FailingStorage(str(runs.root), faults)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Broken):
        patch.setattr(lease, "LIFETIME", timedelta(0))
        runs.sync()
    assert faults.at >= 0
    runs.storage = healthy


def test_what_is_committed_is_shown_and_its_run_has_finished(runs: Runs) -> None:
    died(runs, "place segment-data/data")
    assert runs.tables() == ["track_order"] and runs.partitions("track_order") == {}
    done = recovered(runs)
    assert (done.applied, done.closed) == ((1,), ())
    assert done.freed is not None and done.freed.run_id == "R1"
    assert runs.ids("track_order") == ["m1"]
    assert runs.reports()["R1"][0]["status"] == "finished"
    assert not recovered(runs)


def test_what_is_not_committed_is_a_failed_run_and_the_next_sync_loads_it(runs: Runs) -> None:
    died(runs, "create segment-data/_state/sources/S1/manifests")
    assert runs.storage.files("segment-stage")
    done = recovered(runs)
    assert (done.applied, done.closed) == ((), ("R1",))
    assert runs.storage.files("segment-stage") == []
    assert runs.storage.read(paths.lease(SOURCE_ID)) is None
    assert runs.reports()["R1"][0]["status"] == "failed"
    assert not recovered(runs)
    assert runs.sync().row_count == 1


@pytest.mark.parametrize("where", ["place segment-data/data", "create segment-data/_state/sources"])
def test_the_next_run_does_the_same(tmp_path: Path, where: str) -> None:
    left: list[object] = []
    for name, first in (("asked", True), ("unasked", False)):
        (tmp_path / name).mkdir()
        runs = Runs(tmp_path / name)
        died(runs, where)
        if first:
            recovered(runs)
        runs.sync()
        assert not recovered(runs)
        reports = {run: lines[0]["status"] for run, lines in runs.reports().items()}
        left.append((runs.ids("track_order"), reports, runs.storage.files("segment-stage")))
    assert left[0] == left[1]


def test_a_living_holder_is_left_alone(runs: Runs) -> None:
    lease = encode(Lease("R9", "sync", myself()))
    runs.storage.write(paths.lease(SOURCE_ID), lease)
    done = recovered(runs)
    assert not done
    assert done.at_work is not None and done.at_work.run_id == "R9"
    assert runs.storage.read(paths.lease(SOURCE_ID)) == lease


def test_a_lake_without_any_run_has_nothing_to_recover(runs: Runs) -> None:
    assert not recovered(runs)
    assert list(runs.root.iterdir()) == []


def test_staging_without_a_run_goes_after_a_day_without_writes(runs: Runs) -> None:
    for run in ("R7", "R8"):
        runs.storage.write(f"{paths.stage(SOURCE_ID, run)}/0/x.parquet", b"staged")
    old = runs.root / paths.stage(SOURCE_ID, "R7") / "0" / "x.parquet"
    two_days_ago = datetime.now(UTC).timestamp() - 2 * 86_400
    os.utime(old, (two_days_ago, two_days_ago))
    assert recovered(runs).cleaned.staging == ("R7",)
    assert len(runs.storage.files("segment-stage")) == 1
    assert recovered(runs, hours=25).cleaned.staging == ("R8",)
    assert runs.storage.files("segment-stage") == []


def test_staging_of_an_open_run_stays_however_old(runs: Runs) -> None:
    runs.storage.write(f"{paths.stage(SOURCE_ID, 'R1')}/0/x.parquet", b"staged")
    living = OpenRun(runs.context().facts, 0, myself())
    runs.storage.write(paths.open_run(SOURCE_ID, "R1"), encode(living))
    assert not recovered(runs, hours=1000)
    assert len(runs.storage.files("segment-stage")) == 1


def test_a_run_elsewhere_is_believed_for_two_minutes_after_its_last_sign(runs: Runs) -> None:
    facts = runs.context().facts
    path = paths.open_run(SOURCE_ID, facts.run_id)
    soon = datetime.now(UTC) + timedelta(seconds=30)
    runs.storage.write(path, encode(OpenRun(facts, 0, Holder("another-machine", 1, soon))))
    assert not recovered(runs)
    runs.storage.write(path, encode(OpenRun(facts, 0, GONE)))
    assert recovered(runs).closed == ("R1",)


def test_what_others_put_into_folders_of_runs_stays(runs: Runs) -> None:
    days(runs, "2026-10-01")
    tracked, staged = paths.tracked_runs("W1", SOURCE_ID), paths.staged_runs(SOURCE_ID)
    others = [
        *(f"{tracked}/notes/x.parquet", f"{tracked}/R1/query.sql", f"{tracked}/2024/a.gz"),
        *(f"{staged}/1790812800000/x.json.gz", f"{staged}/mine/x", "segment-stage/_pipes/mine/x"),
    ]
    for path in others:
        runs.storage.write(path, b"x")
    runs.upkeep("2036-10-20")
    kept = [f.path for root in (tracked, "segment-stage") for f in runs.storage.files(root)]
    assert [path for path in kept if "/R2/" not in path] == sorted(others, key=kept.index)
    assert logs(runs) == ["2024", "R1", "notes"]

"""What the dead left undone, done: by `recover`, and by the next run just the same."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.runs.open_runs import OpenRun
from eventlake.state import lease
from eventlake.state.lease import Holder, Lease, myself
from eventlake.storage.documents import encode
from eventlake.upkeep.recovery import Recovery, recover
from tests.support.faults.failing_storage import Broken, FailingStorage, Fault, Faults
from tests.support.lakes.archive import track
from tests.support.lakes.runs import SOURCE_ID, Runs

GONE = Holder("another-machine", 1, datetime.now(UTC) - timedelta(minutes=5))


def recovered(runs: Runs, hours: float = 0) -> Recovery:
    lake = Lake(runs.settings, runs.storage, runs.catalog)
    return recover(lake, runs.source, datetime.now(UTC) + timedelta(hours=hours))


def died(runs: Runs, where: str) -> None:
    """A sync whose process is gone at a certain change of the store."""
    healthy = runs.storage
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
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
def test_the_next_run_does_the_same_unasked(tmp_path: Path, where: str) -> None:
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


def test_staging_without_a_run_goes_when_nobody_has_written_to_it_for_a_day(runs: Runs) -> None:
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

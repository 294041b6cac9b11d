"""A sync that comes while a replay is at work waits for one day of it at most."""

import pytest

from eventlake.load.blobs import Shares
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.state.manifest import read_manifest
from tests.support.lakes.archive import track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import SOURCE_ID, Runs
from tests.support.lease_clock import LeaseClock

DAYS = [f"2026-10-0{n}" for n in range(1, 6)]


def test_a_sync_goes_between_two_days_of_a_replay(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LeaseClock(monkeypatch)
    for day in DAYS:
        runs.archive.day(day).file("a", track("Order", day, f"{day}T07:00"))
    runs.sync()
    before = runs.state().manifest
    runs.archive.day(DAYS[0]).file("late", track("Order", "late", f"{DAYS[0]}T07:00"))

    class StartsASync(InProcess):
        """Starts a sync in the middle of the second day."""

        days = 0

        def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
            StartsASync.days += job.operation == "mirror"
            if StartsASync.days == 2 and runs.flow is StartsASync:
                runs.flow = InProcess
                clock.start(runs.sync)
            return super().load(job, shares)

    runs.flow = StartsASync
    runs.replay(DAYS[0], "2026-10-06")
    clock.join()
    assert any("Waiting for replay of 2026-10-02" in line for line in runs.logged)

    done: list[str] = []
    while manifest := read_manifest(runs.storage, SOURCE_ID, before + len(done) + 1):
        done.append(str(manifest.kind))
    assert done == ["replay", "replay", "sync", "replay", "replay", "replay"]
    assert runs.ids("track_order") == [*DAYS, "late"]

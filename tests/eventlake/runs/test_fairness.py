"""A sync that comes while a replay is at work waits for one day of it at most."""

import threading

import pytest

from eventlake.load.blobs import Shares
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.state import lease
from eventlake.state.manifest import read_manifest
from tests.support.lakes.archive import track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import SOURCE_ID, Runs

DAYS = [f"2026-10-0{n}" for n in range(1, 6)]


def test_a_sync_goes_between_two_days_of_a_replay(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "POLL_SECONDS", 0.4)
    for day in DAYS:
        runs.archive.day(day).file("a", track("Order", day, f"{day}T07:00"))
    runs.sync()
    before = runs.state().manifest
    runs.archive.day(DAYS[0]).file("late", track("Order", "late", f"{DAYS[0]}T07:00"))
    sync = threading.Thread(target=runs.sync)

    class SyncComes(InProcess):
        """In the middle of the second day somebody starts a sync."""

        days = 0

        def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
            SyncComes.days += job.operation == "mirror"
            if SyncComes.days == 2 and sync.ident is None:
                runs.flow = InProcess
                sync.start()
                while not any("Waiting for replay of 2026-10-02" in line for line in runs.logged):
                    sync.join(0.01)
            return super().load(job, shares)

    runs.flow = SyncComes
    runs.replay(DAYS[0], "2026-10-06")
    sync.join(30)
    assert not sync.is_alive()

    done: list[str] = []
    while manifest := read_manifest(runs.storage, SOURCE_ID, before + len(done) + 1):
        done.append(str(manifest.kind))
    assert done == ["replay", "replay", "sync", "replay", "replay", "replay"]
    assert runs.ids("track_order") == [*DAYS, "late"]

"""Who was believed to be dead and comes back: it plans again, and nothing is lost or doubled."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from eventlake.rules import paths
from eventlake.rules.errors import ConservationError
from eventlake.runs.dead_runs import close_dead_runs
from eventlake.runs.open_runs import OpenRun
from eventlake.state.lease import Holder, Lease, myself, read_lease
from eventlake.state.manifest import RunKind, read_manifest
from eventlake.storage import LocalStorage
from eventlake.storage.documents import decode, encode
from tests.support.faults.flows import overtaken, warned_of_conflict
from tests.support.lakes.archive import track
from tests.support.lakes.runs import SOURCE_ID, Runs

GONE = Holder("another-machine", 1, datetime.now(UTC) - timedelta(minutes=5))


def close_as_dead(runs: Runs, run_id: str) -> None:
    """What another machine does that has not heard of the run for two minutes."""
    path = paths.open_run(SOURCE_ID, run_id)
    known = decode(runs.storage.read(path) or b"", OpenRun, path)
    runs.storage.write(path, encode(msgspec.structs.replace(known, holder=GONE)))
    assert close_dead_runs(runs.storage, runs.catalog, SOURCE_ID, datetime.now(UTC)) == [run_id]
    assert runs.reports()[run_id][0]["status"] == "failed"
    assert runs.storage.files(paths.stage(SOURCE_ID, run_id)) == []


@dataclass(frozen=True)
class AsleepBeforeCommits(LocalStorage):
    """Before a commit its user sleeps for a while, in which something happens; just once."""

    meanwhile: Callable[[], None] = lambda: None
    commits: list[str] = field(default_factory=list)
    at: int = 1

    def create(self, path: str, data: bytes) -> bool:
        if "/manifests/" in path:
            self.commits.append(path)
            if len(self.commits) == self.at:
                self.meanwhile()
        return super().create(path, data)


def falls_asleep(runs: Runs, run_id: str, at: int = 1) -> None:
    def meanwhile() -> None:
        runs.storage.delete(paths.lease(SOURCE_ID))
        close_as_dead(runs, run_id)

    runs.storage = AsleepBeforeCommits(str(runs.root), meanwhile, at=at)


def test_a_sync_that_was_only_asleep_plans_again(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.sync()
    runs.archive.day("2026-10-01").file("b", track("Order", "m2", "2026-10-01T07:00"))
    falls_asleep(runs, "R2")
    assert runs.sync().row_count == 1
    assert warned_of_conflict(runs)
    assert runs.ids("track_order") == ["m1", "m2"]
    [line, _] = runs.reports()["R2"]
    assert (line["status"], line["row_count"]) == ("finished", 1)
    overtaking = read_manifest(runs.storage, SOURCE_ID, 2)
    assert overtaking is not None and overtaking.kind is RunKind.CLOSED
    assert runs.storage.files("segment-stage") == []
    assert runs.storage.files(paths.open_runs(SOURCE_ID)) == []


def test_a_replay_that_was_only_asleep_does_its_day_once_more(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", track("Order", day, f"{day}T07:00"))
    runs.sync()
    falls_asleep(runs, "R2", at=2)
    assert runs.replay("2026-10-01", "2026-10-03").row_count == 2
    assert warned_of_conflict(runs)
    assert runs.ids("track_order") == ["2026-10-01", "2026-10-02"]
    assert runs.reports()["R2"][0]["status"] == "finished"


def test_a_sync_whose_staging_is_gone_fails_and_the_next_one_loads_it(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.flow = overtaken(runs, lambda: close_as_dead(runs, "R1"))
    with pytest.raises(ConservationError):
        runs.sync()
    assert runs.reports()["R1"][0]["status"] == "failed"
    assert runs.sync().row_count == 1
    assert runs.ids("track_order") == ["m1"]


def test_while_somebody_is_at_work_the_dead_get_a_report_and_keep_what_they_staged(
    runs: Runs,
) -> None:
    """Otherwise the living, too, would lose the race for its commit."""
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    facts = runs.context().facts
    runs.storage.write(paths.open_run(SOURCE_ID, "R1"), encode(OpenRun(facts, 0, GONE)))
    staged = f"{paths.stage(SOURCE_ID, 'R1')}/0/x.parquet"
    runs.storage.write(staged, b"staged")

    lease = Lease("R2", "sync", myself())
    runs.storage.write(paths.lease(SOURCE_ID), encode(lease))
    assert close_dead_runs(runs.storage, runs.catalog, SOURCE_ID, datetime.now(UTC)) == ["R1"]
    assert runs.reports()["R1"][0]["status"] == "failed"
    assert runs.storage.read(staged) == b"staged"
    assert close_dead_runs(runs.storage, runs.catalog, SOURCE_ID, datetime.now(UTC)) == []
    runs.storage.delete(paths.lease(SOURCE_ID))
    assert runs.sync().row_count == 1
    assert not warned_of_conflict(runs)
    assert runs.storage.files("segment-stage") == []
    assert read_lease(runs.storage, SOURCE_ID) is None


@pytest.mark.parametrize("runs_before", [0, 1])
def test_the_dead_are_overtaken_once(runs: Runs, runs_before: int) -> None:
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    for _ in range(runs_before):
        runs.sync()
    for number in (7, 8):
        facts = msgspec.structs.replace(runs.context().facts, run_id=f"R{number}")
        path = paths.open_run(SOURCE_ID, facts.run_id)
        runs.storage.write(path, encode(OpenRun(facts, runs_before, GONE)))
    before = runs.state().manifest
    closed = close_dead_runs(runs.storage, runs.catalog, SOURCE_ID, datetime.now(UTC))
    assert closed == ["R7", "R8"]
    assert runs.state().manifest == before + 1
    assert close_dead_runs(runs.storage, runs.catalog, SOURCE_ID, datetime.now(UTC)) == []
    assert runs.state().manifest == before + 1

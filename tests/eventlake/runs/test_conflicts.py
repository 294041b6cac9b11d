"""Two runs at once: the second to commit plans again; leases expire, and syncs are not starved."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from eventlake.audit.audit import audit
from eventlake.audit.snapshot import Scope
from eventlake.lake import Lake
from eventlake.load.blobs import Shares
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.rules import paths
from eventlake.rules.errors import ConservationError
from eventlake.runs import placement
from eventlake.runs.context import RunContext
from eventlake.runs.dead_runs import close_dead_runs
from eventlake.runs.open_runs import OpenRun
from eventlake.runs.replay import replay, replay_units
from eventlake.runs.sync import sync
from eventlake.runs.unit import Window
from eventlake.state.lease import Holder, Lease, myself, read_lease
from eventlake.state.manifest import RunKind, read_manifest
from eventlake.storage import LocalStorage
from eventlake.storage.documents import decode, encode
from tests.support.faults.flows import overtaken, warned_of_conflict
from tests.support.lakes.archive import order, page
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import SOURCE_ID, Runs, utc
from tests.support.lease_clock import LeaseClock


def test_a_sync_overtaken_by_the_same_sync_has_nothing_left_to_do(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T07:00"))
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
    first.file("a", order("m1", "2026-10-01T07:00"))
    second.file("a", order("m2", "2026-10-01T07:00"))

    def late_file() -> None:
        first.file("late", order("m3", "2026-10-01T07:00"))
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
    day.file("a", order("m1", "2026-10-01T07:00"))
    runs.sync()
    day.file("b", order("m2", "2026-10-01T07:00"))
    runs.flow = overtaken(runs, lambda: runs.replay("2026-10-01", "2026-10-02"))
    report = runs.sync()
    # The replay has brought the row of the new file, too.
    assert (report.row_count, report.duplicates) == (0, 1)
    assert runs.ids("track_order") == ["m1", "m2"]
    assert list(runs.ledger()) == ["a.gz", "b.gz"]


@pytest.mark.parametrize("slots", [1, 3])
def test_an_overtaken_replay_keeps(runs: Runs, monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    monkeypatch.setattr(InProcess, "slots", slots)
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)
    day = runs.archive.day("2026-10-01")
    for name in "abc":
        day.file(name, order(name, "2026-10-01T07:00"))
    runs.sync()

    def late_file() -> None:
        runs.load("2026-10-02", order("d", "2026-10-01T07:00"), name="late")

    runs.flow = overtaken(runs, late_file)
    assert runs.replay("2026-10-01", "2026-10-02").row_count == 4
    assert warned_of_conflict(runs)
    assert runs.ids("track_order") == ["a", "b", "c", "d"]
    assert [len(entries) for entries in runs.index().values()] == [4]


def test_a_sync_between_two_days_of_a_replay_loses_nothing_to_the_second(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", order(day, f"{day}T07:00"))
    runs.sync()
    window = Window(utc("2026-10-01"), utc("2026-10-03"))
    days = replay_units(runs.context(RunKind.REPLAY, window), window)
    next(days)
    runs.archive.day("2026-10-02").file("late", order("late", "2026-10-02T07:00"))
    assert runs.sync().row_count == 1  # the lease is free between the days
    list(days)
    assert runs.ids("track_order") == ["2026-10-01", "2026-10-02", "late"]
    assert not warned_of_conflict(runs)


def test_growing_partitions_are_copied_again(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InProcess, "slots", 2)
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)
    day = runs.archive.day("2026-10-01")
    gone = day.file("a", order("m1", "2026-10-01T07:00"))
    day.file("b", order("m2", "2026-10-01T07:00"))
    runs.sync()
    day.file("c", order("m3", "2026-10-01T07:00"))
    day.file("d", order("m4", "2026-10-01T07:00"))

    def replay_without_a_file() -> None:
        gone.unlink()
        runs.replay("2026-10-01", "2026-10-02")

    runs.flow = overtaken(runs, replay_without_a_file)
    runs.sync()
    assert runs.ids("track_order") == ["m2", "m3", "m4"]


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
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00"))
    runs.archive.day("2026-10-01").file("b", order("m2", "2026-10-01T07:00"))
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
        runs.archive.day(day).file("a", order(day, f"{day}T07:00"))
    runs.sync()
    falls_asleep(runs, "R2", at=2)
    assert runs.replay("2026-10-01", "2026-10-03").row_count == 2
    assert warned_of_conflict(runs)
    assert runs.ids("track_order") == ["2026-10-01", "2026-10-02"]
    assert runs.reports()["R2"][0]["status"] == "finished"


def test_a_sync_without_its_staging_fails_and_the_next_one_loads_it(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T07:00"))
    runs.flow = overtaken(runs, lambda: close_as_dead(runs, "R1"))
    with pytest.raises(ConservationError):
        runs.sync()
    assert runs.reports()["R1"][0]["status"] == "failed"
    assert runs.sync().row_count == 1
    assert runs.ids("track_order") == ["m1"]


def test_a_dead_run_is_reported_and_keeps_its_staging_during_another(runs: Runs) -> None:
    """Otherwise the living, too, would lose the race for its commit."""
    runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T07:00"))
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
    runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T07:00"))
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


NOON = utc("2026-10-20T12:00")
DAY = Window(utc("2026-10-01"), utc("2026-10-02"))


def at(context: RunContext, minutes: int) -> RunContext:
    """The same run, begun when the clock said so."""
    began = NOON + timedelta(minutes=minutes)
    run_id = str(int(began.timestamp()) * 1_000_000_000)
    facts = msgspec.structs.replace(context.facts, run_id=run_id, start_time=began)
    return replace(context, facts=facts)


def test_nothing_is_lost_or_doubled_and_the_later_commit_counts(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", page("m1", "2026-10-01T07:00"), page("m2", "2026-10-01T07:00"))
    sync(at(runs.context(), minutes=0))
    day.file("b", page("m2", "2026-10-01T08:00"), page("m3", "2026-10-01T07:00"))
    sync(at(runs.context(), minutes=-60))
    replay(at(runs.context(RunKind.REPLAY, DAY), minutes=-90), DAY)
    replayed = runs.partitions("page")["2026-10-01", "07"].location
    day.file("c", page("m1", "2026-10-01T09:00"), page("m4", "2026-10-01T07:00"))
    sync(at(runs.context(), minutes=-120))

    assert runs.ids("page") == ["m1", "m2", "m3", "m4"]
    assert runs.partitions("page")["2026-10-01", "07"].location == replayed
    made = [read_manifest(runs.storage, "S1", number) for number in range(1, 5)]
    assert [one.run.start_time for one in made if one] == [
        NOON + timedelta(minutes=minutes) for minutes in (0, -60, -90, -120)
    ]
    assert {lines[0]["status"] for lines in runs.reports().values()} == {"finished"}
    assert len(runs.reports()) == 4
    assert audit(Lake.open(runs.settings), Scope(runs.source)).agrees


DAYS = [f"2026-10-0{n}" for n in range(1, 6)]


def test_a_sync_may_run_within_a_replay(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = LeaseClock(monkeypatch)
    for day in DAYS:
        runs.archive.day(day).file("a", order(day, f"{day}T07:00"))
    runs.sync()
    before = runs.state().manifest
    runs.archive.day(DAYS[0]).file("late", order("late", f"{DAYS[0]}T07:00"))

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

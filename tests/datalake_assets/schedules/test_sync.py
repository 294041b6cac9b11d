"""When Dagster launches syncs, by a clock that the test sets."""

import socket
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import dagster as dg
import msgspec
import pytest
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._utils.schedules import cron_string_iterator
from hypothesis import given, settings
from hypothesis import strategies as st

from datalake_assets import schedules
from datalake_assets.assets.running import PROCESS_TAG
from datalake_assets.component import build
from datalake_assets.instance.snapshot import Snapshot
from datalake_assets.schedules import FIRST_SYNCS
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.schedules import TWELVE_A_DAY, next_due
from eventlake.state.lease import Holder, myself
from tests.support.faults.damage import NEWER_RELEASE
from tests.support.lakes.archive import Archive, page
from tests.support.lakes.platform import InProcessEngine
from tests.support.lakes.settings import settings_of

NOON = datetime(2026, 10, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ASKED = "asked for a run"


class Clock:
    """A lake of two sources, and the time for Dagster and the lake."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.root, self.instance = root, instance
        self.now = NOON
        self.set({})

    def set(self, shop: dict[str, object]) -> None:
        """Other settings of one of them."""
        sources = {"id": "a1", "slug": "shop", **shop}, {"id": "b2", "slug": "app"}
        self.lake = Lake.open(settings_of(self.root, *sources))

    def repository(self) -> dg.RepositoryDefinition:
        return build(self.lake, Snapshot(), InProcessEngine()).get_repository_def()

    def raw(self, day: str, name: str, *ids: str) -> None:
        """A raw file of the shop."""
        events = (page(id, f"{day}T0{n}:00") for n, id in enumerate(ids))
        Archive(self.root / "segment-logs/a1").day(day).file(name, *events)

    def sync(self) -> dg.ExecuteInProcessResult:
        job = self.repository().get_job("sync_shop")
        return job.execute_in_process(instance=self.instance, raise_on_error=False)

    def tick(self, slug: str = "shop") -> str:
        """What the schedule of a source says now; why it asks for nothing, if it does not."""
        schedule = self.repository().get_schedule_def(f"sync_{slug}_schedule")
        context = dg.build_schedule_context(self.instance, scheduled_execution_time=self.now)
        said = schedule.evaluate_tick(context)
        assert len(said.run_requests or ()) == (0 if said.skip_message else 1)
        return said.skip_message or ASKED

    def sense(self, cursor: str | None = None) -> tuple[list[str], str, str]:
        """The jobs that the sensor of new sources asks for, what it says, and its cursor."""
        repository = self.repository()
        sensor = repository.get_sensor_def(FIRST_SYNCS)
        context = dg.build_sensor_context(
            self.instance, cursor=cursor, repository_def=repository, sensor_name=FIRST_SYNCS
        )
        said = sensor.evaluate_tick(context)
        jobs = [request.job_name or "" for request in said.run_requests or ()]
        return sorted(jobs), said.skip_message or "", said.cursor or ""

    def arrivals(self, cursor: str | None = None) -> tuple[dg.SensorResult, str]:
        """What the sensor of arrivals says, and its cursor."""
        repository = self.repository()
        context = dg.build_sensor_context(
            self.instance, cursor=cursor, repository_def=repository, sensor_name="arrivals"
        )
        said = repository.get_sensor_def("arrivals").evaluate_tick(context)
        result = dg.SensorResult(
            run_requests=said.run_requests, asset_events=said.asset_events, cursor=said.cursor
        )
        return result, said.skip_message or ""

    def run(self, status: dg.DagsterRunStatus, process: Holder | None = None) -> str:
        """A sync that is in Dagster's books."""
        tags = {} if process is None else {PROCESS_TAG: msgspec.json.encode(process).decode()}
        job = self.repository().get_job("sync_shop")
        location = RegisteredCodeLocationOrigin("datalake")
        origin = RemoteJobOrigin(RemoteRepositoryOrigin(location, "__repository__"), job.name)
        run = self.instance.create_run_for_job(
            job, status=status, tags=tags, remote_job_origin=origin
        )
        return run.run_id


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """On a disk: what evaluates schedules opens it anew."""
    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("home"))) as instance:
        yield instance


@pytest.fixture
def clock(tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setenv("DAGSTER_HOME", instance.root_directory)
    instance.wipe()
    clock = Clock(tmp_path / "lake", instance)
    monkeypatch.setattr(schedules, "now", lambda: clock.now)
    return clock


@settings(deadline=None)
@given(
    st.sampled_from(
        [TWELVE_A_DAY, "30 2 * * *", "0 */2 * * *", "7 * * * *", "15 1-3 * * 0,6", "*/20 2,3 * * *"]
    ),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
    st.integers(0, 365 * 24 * 60),
)
def test_the_next_sync_is_when_dagster_launches_it(schedule: str, zone: str, minutes: int) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    theirs = [
        t.astimezone(UTC)
        for t in islice(cron_string_iterator(start.timestamp() + 1, schedule, zone), 5)
    ]
    ours, at = [], start
    for _ in range(5):
        at = next_due(schedule, zone, at) or at
        ours.append(at)
    assert ours == theirs


def test_every_source_has_its_own_schedule_and_zone_or_none(tmp_path: Path) -> None:
    berlin = {"schedule": "0 6 * * *", "schedule_timezone": "Europe/Berlin"}
    settings = settings_of(
        tmp_path,
        {"id": "a1", "slug": "usual"},
        {"id": "b2", "slug": "daily", **berlin},
        {"id": "c3", "slug": "never", "schedule": "off"},
        {"id": "d4", "slug": "not_enabled", "enabled": False},
    )
    repository = build(Lake.open(settings), Snapshot()).get_repository_def()
    syncs = [s for s in repository.schedule_defs if s.name.startswith("sync_")]
    assert {s.name: (s.cron_schedule, s.execution_timezone) for s in syncs} == {
        "sync_usual_schedule": ("0 */2 * * *", "UTC"),
        "sync_daily_schedule": ("0 6 * * *", "Europe/Berlin"),
    }


CRONS = {f"S{n}": "0 */2 * * *" for n in range(20)}


@pytest.mark.parametrize(
    ("engine", "more", "minutes"),
    [("emr", {}, 12), ("emr", {"stagger": False}, 1), ("local", {}, 1)],
)
def test_sources_do_not_all_start_at_once_on_a_cluster(
    engine: str, more: dict[str, object], minutes: int
) -> None:
    sources = [{"id": source, "slug": source.lower()} for source in CRONS]
    on_emr = {"engine": engine, "emr_cluster_id": "j-1ABCDEF"}

    def crons(*sources: dict[str, str]) -> dict[str, str]:
        lake = Lake.open(settings_of("s3://bucket", *sources, **on_emr, **more))
        found = build(lake, Snapshot()).get_repository_def().schedule_defs
        by_name = {schedule.name: str(schedule.cron_schedule) for schedule in found}
        return {source["id"]: by_name[f"sync_{source['slug']}_schedule"] for source in sources}

    together = crons(*sources)
    assert len(set(together.values())) >= minutes
    assert (together == CRONS) is (minutes == 1)
    # The minute of a source does not depend on the others.
    assert crons(sources[7]) == {"S7": together["S7"]}
    own = {"id": "S7", "slug": "s7", "schedule": "30 6 * * *"}
    assert crons(own) == {"S7": "30 6 * * *"}


def test_a_new_source_waits_for_two_hours_and_gives_the_reason(clock: Clock) -> None:
    assert "shop is new: its first sync is at 2026-10-20 14:00 UTC" in clock.tick()
    clock.now += HOUR
    assert "2026-10-20 14:00" in clock.tick()
    clock.now += HOUR
    assert clock.tick() == ASKED


def test_the_first_sync_starts_once_when_it_is_due_unless_there_is_data(clock: Clock) -> None:
    jobs, said, cursor = clock.sense()
    assert (jobs, "shop is new" in said, "app is new" in said, cursor) == ([], True, True, "[]")
    clock.raw("2026-10-01", "a", "m1")
    assert clock.sync().success
    assert clock.tick() == ASKED
    assert "app is new" in clock.tick("app")
    clock.now += 2 * HOUR
    jobs, _, cursor = clock.sense(cursor)
    assert jobs == ["sync_app"]
    assert clock.sense(cursor) == ([], "Every source has had its first sync.", cursor)


def test_unreadable_state_is_left_to_a_run_to_report(clock: Clock) -> None:
    clock.lake.storage.write(paths.first_seen("a1"), NEWER_RELEASE)
    assert clock.tick() == ASKED
    jobs, said, cursor = clock.sense()
    assert (jobs, "shop could not be read" in said, cursor) == ([], True, "[]")


def test_without_a_wait_the_first_sync_starts_at_the_next_tick(clock: Clock) -> None:
    clock.set({"first_sync_hours": 0})
    assert clock.sense()[0] == ["sync_shop"]


@pytest.mark.parametrize("status", [s for s in dg.DagsterRunStatus if s.name != "MANAGED"])
def test_while_a_sync_is_queued_or_running_no_other_is_requested(
    clock: Clock, status: dg.DagsterRunStatus
) -> None:
    clock.set({"first_sync_hours": 0})
    clock.now = datetime.now(UTC)  # runs have the time at which they really were made
    run_id = clock.run(status)
    ended = status.name in ("SUCCESS", "FAILURE", "CANCELED")
    reason = f"Sync {run_id[:8]} of shop ({status.value.lower()} since"
    assert clock.tick() == ASKED if ended else reason in clock.tick()
    assert clock.sense()[0] == (["sync_shop"] if ended else [])


@pytest.mark.parametrize("alive", [True, False])
def test_a_run_whose_process_is_gone_does_not_block_a_sync(
    clock: Clock, alive: bool, dead_pid: int
) -> None:
    clock.set({"first_sync_hours": 0})
    clock.now = datetime.now(UTC)
    dead = Holder(socket.gethostname(), dead_pid, datetime.now(UTC) + HOUR)
    clock.run(dg.DagsterRunStatus.STARTED, myself() if alive else dead)
    assert (clock.tick() == ASKED) is not alive


def test_a_run_that_was_never_launched_does_not_block_a_sync(clock: Clock) -> None:
    clock.set({"first_sync_hours": 0})
    clock.run(dg.DagsterRunStatus.NOT_STARTED)
    clock.now = datetime.now(UTC) + HOUR
    assert clock.tick() == ASKED


def test_after_an_outage_of_four_days_one_sync_loads_them_all(clock: Clock) -> None:
    """Of the missed ticks Dagster evaluates only the last: see test_scheduler."""
    days = [f"2026-10-0{n}" for n in range(1, 6)]
    clock.raw(days[0], "a", "m0")
    clock.sync()
    for n, day in enumerate(days[1:], 1):
        clock.raw(day, "a", f"m{n}", "m0")  # with a copy of what was there before
    clock.raw(days[0], "late", "late")

    assert clock.tick() == ASKED
    materialized = [
        event.partition
        for event in clock.sync().get_asset_materialization_events()
        if event.asset_key == dg.AssetKey(["shop", "page"])
    ]
    assert materialized == days
    rows = Counter[str]()
    for partition in clock.lake.catalog.partitions("shop", "page"):
        rows[partition.values[0]] += partition.rows
    assert rows == Counter([days[0], *days])


def test_files_that_arrive_are_observed_and_synced(clock: Clock) -> None:
    assert "arrivals" not in {s.name for s in clock.repository().sensor_defs}
    clock.set({"sync": "on_arrival", "schedule": "off"})
    clock.raw("2026-10-01", "a.gz", "m1")

    def jobs(result: dg.SensorResult) -> list[str | None]:
        return [request.job_name for request in result.run_requests or ()]

    first, _ = clock.arrivals()
    assert jobs(first) == ["sync_shop"]
    [observed] = first.asset_events
    assert observed.asset_key == dg.AssetKey(["shop", "raw_archive"])
    assert observed.metadata["files"].value == 1

    same, why = clock.arrivals(first.cursor)
    assert (jobs(same), why) == ([], "No archive has changed.")

    clock.raw("2026-10-01", "b.gz", "m2")
    run_id = clock.run(dg.DagsterRunStatus.QUEUED)
    waiting, why = clock.arrivals(same.cursor)
    assert jobs(waiting) == [] and f"Sync {run_id[:8]} of shop (queued" in why
    clock.instance.delete_run(run_id)
    later, _ = clock.arrivals(waiting.cursor)
    assert jobs(later) == ["sync_shop"]
    assert later.asset_events[0].metadata["files"].value == 2

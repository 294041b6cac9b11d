"""Dagster's scheduler during an outage and after a clock was set back."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.test_utils import freeze_time
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._scheduler.scheduler import launch_scheduled_runs

from tests.support.lakes.settings import lake_in

NOON = datetime(2026, 10, 20, 12, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# What Dagster says to itself when it loads schedules in this process.
pytestmark = pytest.mark.filterwarnings("ignore:.*environment_vars:DeprecationWarning")
SYNCS = dg.RunsFilter(job_name="sync_shop")
QUEUE = {"module": "dagster._core.run_coordinator", "class": "QueuedRunCoordinator"}


class Scheduler:
    """What the daemon does every minute, at the times that the test chooses."""

    def __init__(self, workspace: WorkspaceProcessContext) -> None:
        self.workspace, self.instance = workspace, workspace.instance
        (location,) = workspace.create_request_context().code_locations
        (repository,) = location.get_repositories().values()
        self.schedule = repository.get_schedule("sync_shop_schedule")

    def at(self, moment: datetime) -> list[tuple[str, str, str]]:
        """The ticks that there are once this moment has come: when, what came of it, why."""
        with freeze_time(moment):
            logger = logging.getLogger("scheduler")
            list(launch_scheduled_runs(self.workspace, logger, moment, iteration_times={}))
        origin = self.schedule.get_remote_origin_id()
        ticks = self.instance.get_ticks(origin, self.schedule.selector_id)
        return [
            (
                f"{datetime.fromtimestamp(t.timestamp, UTC):%d %H:%M}",
                t.status.value,
                t.skip_reason or "",
            )
            for t in reversed(ticks)
        ]


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Scheduler]:
    lake_in(tmp_path, first_sync_hours=0)
    (tmp_path / "data/segment-logs/S1").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    target = LoadableTargetOrigin(module_name="datalake_assets.definitions")
    origin = InProcessCodeLocationOrigin(target, location_name="datalake")
    with (
        pytest.MonkeyPatch.context() as patch,
        dg.DagsterInstance.local_temp(f"{tmp_path}/home", {"run_coordinator": QUEUE}) as instance,
    ):
        patch.setenv("DATALAKE_CONFIG", str(tmp_path / "lake.yaml"))
        patch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
        with WorkspaceProcessContext(instance, InProcessWorkspaceLoadTarget(origin)) as workspace:
            yield Scheduler(workspace)


def test_an_outage_is_one_run_and_no_clock_makes_a_second(scheduler: Scheduler) -> None:
    """It runs as lake.yaml says, without having been switched on."""
    assert scheduler.at(NOON) == scheduler.at(NOON + HOUR) == []

    # Nobody looks for four days: of 48 ticks that were missed the last is made up for.
    back = NOON + 4 * DAY
    assert scheduler.at(back) == [("24 12:00", "SUCCESS", "")]
    (run,) = scheduler.instance.get_runs(SYNCS)
    assert (run.job_name, run.status.value) == ("sync_shop", "QUEUED")

    # It waits still when the next is due.
    (_, (when, status, why)) = scheduler.at(back + 2 * HOUR)
    assert (when, status) == ("24 14:00", "SKIPPED")
    assert f"Sync {run.run_id[:8]} of shop (queued since" in why

    # The clock is set back by an hour and a half, and passes the same times once more.
    ticks = [scheduler.at(back + n * HOUR) for n in (0.5, 1, 2, 3)]
    assert {len(made) for made in ticks} == {2}
    scheduler.instance.delete_run(run.run_id)
    assert [made[:2] for made in scheduler.at(back + 4 * HOUR)][2:] == [("24 16:00", "SUCCESS")]
    assert scheduler.instance.get_runs_count(SYNCS) == 1

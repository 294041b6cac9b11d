"""What the UI launches for a range of days: one run of all tables, by Dagster's own daemon."""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.test_utils import create_test_daemon_workspace_context, instance_for_test
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.backfill import execute_backfill_iteration

from tests.support.faults.flows import Raises, flow
from tests.support.lakes.jobs import SampleLake
from tests.support.lakes.platform import engine_with

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore:Function `AssetSelection.sources` is deprecated"),
    # Dagster's own loop, which it ends in a hurry.
    pytest.mark.filterwarnings("ignore:coroutine 'BaseEventLoop.shutdown_asyncgens'"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
DAYS = ["2026-10-01", "2026-10-02"]
SCREEN, IDENTIFY = dg.AssetKey(["ios_prod", "screen"]), dg.AssetKey(["ios_prod", "identify"])
DONE = (BulkActionStatus.COMPLETED, BulkActionStatus.COMPLETED_SUCCESS)


# The disk is full when the second day of a replay has been written.
DISK_FULL = Raises(OSError("No space left on device"), at=2)


@dataclass(frozen=True)
class Backfills:
    """An instance whose runs are carried out here, and the code location as it is served."""

    instance: dg.DagsterInstance
    workspace: WorkspaceProcessContext

    def launch(self, name: str, *keys: dg.AssetKey) -> BulkActionStatus:
        """Launch what the dialog of the UI launches, and let the daemon see to it."""
        wanted = PartitionBackfill.from_asset_partitions(
            backfill_id=name,
            asset_graph=self.workspace.create_request_context().asset_graph,
            partition_names=DAYS,
            asset_selection=list(keys),
            backfill_timestamp=time.time(),
            tags={},
            dynamic_partitions_store=self.instance,
            all_partitions=False,
            title=None,
            description=None,
            run_config=None,
        )
        self.instance.add_backfill(wanted)
        for _ in range(10):
            list(execute_backfill_iteration(self.workspace, logging.getLogger("daemon")))
            found = self.instance.get_backfill(name)
            assert found is not None
            if found.status is not BulkActionStatus.REQUESTED:
                return found.status
        raise AssertionError("the daemon does not come to an end")

    def runs(self, name: str) -> list[dg.DagsterRunStatus]:
        wanted = dg.RunsFilter(tags={"dagster/backfill": name})
        return [run.status for run in self.instance.get_runs(wanted)]


@pytest.fixture
def backfills(filled: SampleLake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backfills]:
    monkeypatch.setenv("DATALAKE_CONFIG", str(filled.folder / "lake.yaml"))
    engine = engine_with(flow(after_load=DISK_FULL))
    monkeypatch.setattr("spark_resources.engines.local.local_engine", lambda: engine)
    here_and_now = {
        "run_launcher": {
            "module": "dagster._core.launcher.sync_in_memory_run_launcher",
            "class": "SyncInMemoryRunLauncher",
        },
        "run_coordinator": {
            "module": "dagster._core.run_coordinator",
            "class": "DefaultRunCoordinator",
        },
    }
    served = ModuleTarget("datalake_assets.definitions", None, None, "datalake")
    with (
        instance_for_test(overrides=here_and_now) as instance,
        create_test_daemon_workspace_context(served, instance) as workspace,
    ):
        yield Backfills(instance, workspace)


def test_days_of_several_tables_are_one_run_which_the_next_backfill_resumes(
    backfills: Backfills,
) -> None:
    recorded = backfills.instance.get_materialized_partitions
    assert backfills.launch("first", SCREEN, IDENTIFY) is BulkActionStatus.COMPLETED_FAILED
    assert backfills.runs("first") == [dg.DagsterRunStatus.FAILURE]
    assert recorded(SCREEN) == recorded(IDENTIFY) == {DAYS[0]}

    assert backfills.launch("second", SCREEN, IDENTIFY) in DONE
    assert backfills.runs("second") == [dg.DagsterRunStatus.SUCCESS]
    assert recorded(SCREEN) == recorded(IDENTIFY) == set(DAYS)
    assert DISK_FULL.calls == 3  # the day that was published was not done again
    assert recorded(dg.AssetKey(["ios_prod", "group"])) == set()

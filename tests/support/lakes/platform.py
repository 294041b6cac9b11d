"""A small lake under Dagster, without Spark: tasks run in this process, everything else is real."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    ScheduleInstigatorData,
)

from datalake_assets.component import build
from datalake_assets.instance.snapshot import read_snapshot
from eventlake.lake import Lake
from eventlake.runs.context import Dataflow, Listener
from eventlake.sample import IOS_PROD, WEB_SHOP, SampleArchive, SampleSpec
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.engines.base import SparkEngine
from tests.support.lakes.in_process import InProcess

SOURCES = (WEB_SHOP, IOS_PROD)


SAMPLE = SampleSpec(days=2, events_per_day=60, files_per_day=2, hours=3)


class InProcessEngine(SparkEngine):
    """Runs jobs with whatever data flow `flow` makes."""

    def run(self, job: LakeJob, listener: Listener) -> Iterator[Any]:
        return run_job(job, self.flow, listener)

    def flow(self) -> Dataflow:
        return InProcess()


def engine_with(make_flow: Callable[[], Dataflow]) -> SparkEngine:
    """An engine that runs jobs with another data flow."""

    class Engine(InProcessEngine):
        def flow(self) -> Dataflow:
            return make_flow()

    return Engine()


@dataclass
class Platform:
    """A lake, its generated, and Dagster over it."""

    lake: Lake
    generated: SampleArchive
    instance: dg.DagsterInstance
    engine: SparkEngine

    def definitions(self) -> dg.Definitions:
        return build(self.lake, read_snapshot(self.lake), self.engine)

    def replayable(self, slug: str) -> list[dg.AssetKey]:
        """The tables and reports of a source."""
        graph = self.definitions().resolve_asset_graph()
        keys = graph.materializable_asset_keys
        return [
            key
            for key in keys
            if graph.get(key).group_name == slug and graph.get(key).is_partitioned
        ]

    def sync(self, slug: str) -> dg.ExecuteInProcessResult:
        job = self.definitions().resolve_job_def(f"sync_{slug}")
        return job.execute_in_process(instance=self.instance, raise_on_error=False)

    def materialize(
        self,
        keys: list[dg.AssetKey],
        first: date,
        last: date,
        tags: Mapping[str, str] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """What the UI launches for a selection of assets and days."""
        job = self.definitions().resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            run_config={"ops": {f"replay_{keys[0].path[0]}_tables": {"config": dict(config)}}}
            if config
            else None,
            asset_selection=keys,
            tags={
                "dagster/asset_partition_range_start": f"{first}",
                "dagster/asset_partition_range_end": f"{last}",
                **(tags or {}),
            },
            raise_on_error=False,
        )

    def rows(self, table: str) -> dict[str, int]:
        """Rows of a table by day, by the catalog."""
        found: dict[str, int] = {}
        database, name = table.split(".")
        for partition in self.lake.catalog.partitions(database, name):
            day = partition.values[0]
            found[day] = found.get(day, 0) + partition.rows
        return found


MakePlatform = Callable[..., Platform]


def events(result: dg.ExecuteInProcessResult, kind: dg.DagsterEventType) -> list[Any]:
    """What the events of one kind carry."""
    return [e.event_specific_data for e in result.all_events if e.event_type is kind]


def values(metadata: Mapping[str, dg.MetadataValue]) -> dict[str, Any]:
    return {key: entry.value for key, entry in metadata.items()}


def switched_on(schedule: str) -> InstigatorState:
    location = RegisteredCodeLocationOrigin("datalake")
    origin = RemoteInstigatorOrigin(RemoteRepositoryOrigin(location, "__repository__"), schedule)
    cron = ScheduleInstigatorData("0 */2 * * *")
    return InstigatorState(origin, InstigatorType.SCHEDULE, InstigatorStatus.RUNNING, cron)

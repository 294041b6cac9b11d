"""Jobs of a lake, run to their end without Dagster: on Spark, or in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from datalake_assets.assets.running import new_job
from eventlake.lake import Lake
from eventlake.rules.counts import UnitReport
from eventlake.runs.context import Dataflow, Published, Silent
from eventlake.sample import SampleSource
from eventlake.settings.models import Settings, Source
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.engines.base import SparkEngine
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.settings import settings_of


def open_lake(root: Path, source: SampleSource) -> Lake:
    return Lake.open(settings_of(root, source))


def run(engine: SparkEngine, lake: Lake, **what: object) -> UnitReport:
    """Run a job to its end; what it did."""
    job: LakeJob = new_job(lake.settings, lake.settings.sources[0], "", **what)  # type: ignore[arg-type]
    return sum((unit.report for unit in engine.run(job, Silent())), UnitReport())


def drained(
    settings: Settings,
    source: Source | None = None,
    flow: Callable[[], Dataflow] = InProcess,
    dagster_run_id: str = "",
    **what: Any,
) -> list[Published]:
    """Runs a job of a source (the first by default) to its end, without Spark and Dagster."""
    job = new_job(settings, source or settings.sources[0], dagster_run_id, **what)
    return list(run_job(job, flow, Silent()))

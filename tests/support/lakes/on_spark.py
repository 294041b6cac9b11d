"""Jobs of a lake of one source on real Spark, without Dagster around them."""

from pathlib import Path

from datalake_assets.assets.running import new_job
from eventlake.lake import Lake
from eventlake.rules.counts import UnitReport
from eventlake.runs.context import Silent
from eventlake.sample import SampleSource
from eventlake.settings.models import Settings
from spark_resources.dataflow.job import LakeJob
from spark_resources.engines.base import SparkEngine


def open_lake(root: Path, source: SampleSource) -> Lake:
    sources = [{"id": source.id, "slug": source.slug}]
    settings = {"workspace_id": "WS", "storage": str(root), "sources": sources}
    return Lake.open(Settings.model_validate(settings))


def run(engine: SparkEngine, lake: Lake, **what: object) -> UnitReport:
    """Run a job to its end; what it did."""
    job: LakeJob = new_job(lake.settings, lake.settings.sources[0], "", **what)  # type: ignore[arg-type]
    return sum((unit.report for unit in engine.run(job, Silent())), UnitReport())

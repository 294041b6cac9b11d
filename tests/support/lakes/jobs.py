"""Jobs of a lake, run to their end without Dagster, and lakes of the sample."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datalake_assets.assets.running import new_job
from eventlake.catalog.base import Catalog
from eventlake.lake import Lake
from eventlake.rules.counts import UnitReport
from eventlake.runs.context import Dataflow, Published, Silent
from eventlake.sample import IOS_PROD, WEB_SHOP, SampleArchive, SampleSource, SampleSpec
from eventlake.settings.file import load_settings
from eventlake.settings.models import Settings, Source
from eventlake.sql import LakeSql
from eventlake.storage import Storage
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.engines.base import SparkEngine
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.settings import settings_of
from tests.support.oracles.recount import NUMERIC, ColumnSum, TableSum


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


SAMPLE = SampleSpec(days=2, events_per_day=80, files_per_day=2, hours=3)


SETTINGS = f"""\
workspace_id: W1
storage: ./data
sources:
  - id: {WEB_SHOP.id}
    slug: {WEB_SHOP.slug}
  - id: {IOS_PROD.id}
    slug: {IOS_PROD.slug}
"""


@dataclass(frozen=True)
class SampleLake:
    """The folder of a lake, with its settings, and what was generated."""

    folder: Path
    generated: SampleArchive

    @property
    def lake(self) -> Lake:
        return Lake.open(load_settings(self.folder / "lake.yaml", {}, self.folder))

    def sync(self, dagster_run_id: str = "") -> None:
        """A sync of every source, without Spark and without Dagster."""
        for source in self.lake.settings.sources:
            drained(self.lake.settings, source, dagster_run_id=dagster_run_id)


def lake_sums(catalog: Catalog, storage: Storage, database: str) -> dict[str, TableSum]:
    """By table name."""
    sql = LakeSql(catalog, storage)
    found = {}
    for table in catalog.tables(database):
        asked = ["count(*)"]
        for column in table.columns:
            asked.append(f'count(*) - count("{column.name}")')
            asked.append(f'sum("{column.name}")' if column.type in NUMERIC else "0")
        answer = sql.query(f'SELECT {", ".join(asked)} FROM "{database}"."{table.name}"')
        rows, *told = (answer.column(place)[0].as_py() for place in range(answer.num_columns))
        found[table.name] = TableSum(
            rows,
            {
                column.name: ColumnSum(column.type, nulls, total or 0)
                for column, nulls, total in zip(table.columns, told[::2], told[1::2], strict=True)
            },
        )
    return found

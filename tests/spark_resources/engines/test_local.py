"""A sync and a replay on real Spark, held to the sample's expected rows and to other readers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from datalake_assets.assets.running import new_job
from eventlake.lake import Lake
from eventlake.load.blobs import Shares
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.rules.clock import parse_range
from eventlake.runs.context import Silent
from eventlake.runs.dry_run import planned_run
from eventlake.runs.unit import Window
from eventlake.sample import IOS_PROD, SampleArchive, SampleSpec, write_archive
from eventlake.sql import LakeSql
from spark_resources.dataflow.job import run_job
from spark_resources.dataflow.staged import StagedDataflow
from spark_resources.engines.local import LocalEngine
from tests.support.lakes.jobs import open_lake, run

pytestmark = pytest.mark.spark
SAMPLE = SampleSpec(days=2, events_per_day=400, files_per_day=3, hours=4)
SOURCE = IOS_PROD


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return open_lake(tmp_path_factory.mktemp("lake"), SOURCE)


@pytest.fixture(scope="module")
def generated(lake: Lake, engine: LocalEngine) -> SampleArchive:
    """The lake after two syncs on Spark: a day each."""
    root = Path(lake.settings.storage_uri)
    for arrived in (1, 2):
        generated = write_archive(root, SAMPLE, arrived=arrived)
        run(engine, lake)
    return generated


def rows_by_slot(lake: Lake) -> Counter[tuple[str, ...]]:
    """Rows by table, day and hour, counted from the files themselves."""
    found: Counter[tuple[str, ...]] = Counter()
    for table in lake.catalog.tables(SOURCE.slug):
        for partition in lake.catalog.partitions(SOURCE.slug, table.name):
            for file in lake.storage.files(partition.location):
                rows = pq.read_metadata(lake.storage.full(file.path)).num_rows
                found[(table.name, *partition.values)] += rows
    return found


def expected(generated: SampleArchive) -> Counter[tuple[str, ...]]:
    total: Counter[tuple[str, ...]] = Counter()
    for added in generated.per_sync(SOURCE.id)[:2]:
        total.update({(s.table, s.day, s.hr): rows for s, rows in added.rows.items()})
    return total


def test_every_table_and_hour_has_the_expected_rows(lake: Lake, generated: SampleArchive) -> None:
    assert rows_by_slot(lake) == expected(generated)


def test_passes_are_jobs_and_stages_with_names(
    lake: Lake, generated: SampleArchive, engine: LocalEngine
) -> None:
    """In the Spark UI, as its REST API has it."""
    context = engine.pyspark.spark_context
    pages = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
    names: dict[str, set[str]] = {}
    for page, name in (("jobs", "description"), ("stages", "name")):
        with urlopen(f"{pages}/{page}") as answer:
            names[page] = {one[name].partition(",")[0] for one in json.load(answer)}
    passes = {"stage", "deduplicate", "load", "log what was not loaded"}
    assert names["jobs"] >= passes and names["stages"] >= passes


def test_three_readers_see_the_same_table(lake: Lake, generated: SampleArchive) -> None:
    sql = LakeSql(lake.catalog, lake.storage)
    session = SparkSession.builder.getOrCreate()
    for name in ("track_order_completed", "identify", "screen"):
        columns = [c.name for c in lake.catalog.table(SOURCE.slug, name).columns]  # type: ignore[union-attr]
        files = [
            lake.storage.full(file.path)
            for partition in lake.catalog.partitions(SOURCE.slug, name)
            for file in lake.storage.files(partition.location)
        ]
        listed = ", ".join(f'"{column}"' for column in columns)
        by_duckdb = sql.query(f"select {listed} from {SOURCE.slug}.{name} order by message_id")
        read = session.read.option("mergeSchema", "true").parquet(*files)
        by_spark = read.select(columns).orderBy("message_id").toArrow()
        by_pyarrow = pa.concat_tables(
            (pq.ParquetFile(file).read() for file in files), promote_options="default"
        ).sort_by("message_id")

        assert len(by_duckdb) > 0
        assert by_spark.cast(by_duckdb.schema).equals(by_duckdb)
        assert by_pyarrow.select(columns).cast(by_duckdb.schema).equals(by_duckdb)


def test_a_replay_leaves_the_same_rows(
    lake: Lake, generated: SampleArchive, engine: LocalEngine
) -> None:
    before = rows_by_slot(lake)
    window = Window(*parse_range("2026-10-01T01", "2026-10-01T03"))
    loaded = run(engine, lake, window=window).row_count

    assert rows_by_slot(lake) == before
    replayed = {("2026-10-01", "01"), ("2026-10-01", "02")}
    assert loaded == sum(rows for slot, rows in before.items() if slot[1:] in replayed)


class _Cancelled:
    """A dataflow that is cancelled when the second day is written, and not yet published."""

    def __init__(self, flow: StagedDataflow) -> None:
        self._flow, self._days = flow, 0

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        written = self._flow.load(job, shares)
        self._days += 1
        if self._days == 2:
            raise KeyboardInterrupt
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flow, name)


def test_a_replay_resumes_after_the_published_day(
    lake: Lake, generated: SampleArchive, engine: LocalEngine
) -> None:
    window = Window(*parse_range("2026-10-01", "2026-10-03"))
    run(engine, lake, window=window)  # undisturbed
    before = rows_by_slot(lake)
    job = new_job(lake.settings, lake.settings.sources[0], "", window=window)
    flow: Any = _Cancelled(engine.dataflow())
    units = run_job(job, lambda: flow, Silent())
    with pytest.raises(KeyboardInterrupt):
        list(units)

    left = run(engine, lake, window=window)
    assert rows_by_slot(lake) == before
    on_the_second = sum(rows for slot, rows in before.items() if slot[1] == "2026-10-02")
    assert left.row_count == on_the_second


def test_a_dry_run_on_spark_counts_what_the_run_does_and_leaves_no_file(
    lake: Lake, generated: SampleArchive, engine: LocalEngine
) -> None:
    files = lake.storage.files("")
    window = Window(*parse_range("2026-10-01", "2026-10-02"))
    source = lake.settings.sources[0]
    job = new_job(lake.settings, source, "", window=window, dry_run=True)
    planned = planned_run(engine.run(job, Silent()))

    assert lake.storage.files("") == files
    assert planned.report.row_count > 0
    assert {p.rows_then for p in planned.partitions if p.rows_then != p.rows_now} == set()
    done = run(engine, lake, window=window)
    counts = [(r.rows_in, r.row_count, r.duplicates) for r in (planned.report, done)]
    assert counts[0] == counts[1]


def test_nothing_new_does_not_even_start_spark(lake: Lake, generated: SampleArchive) -> None:
    job = new_job(lake.settings, lake.settings.sources[0], "")

    def never() -> object:
        raise AssertionError("Spark was asked for")

    assert list(run_job(job, never, Silent())) == []  # type: ignore[arg-type]

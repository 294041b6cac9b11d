"""A lake on AWS as in production: S3, Glue, and EMR whose steps Spark really carries out."""

import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

from datalake_assets.assets.keys import NAMES
from datalake_assets.component import build
from datalake_assets.instance.snapshot import read_snapshot, refresh_snapshot
from datalake_assets.preflight import findings
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.runs.report_history import newest_reports
from eventlake.sample import IOS_PROD, SampleSpec, write_archive
from eventlake.storage import StoredFile
from spark_resources.engines.emr.engine import EmrEngine
from spark_resources.engines.remote.service import Pace
from tests.support.lakes.jobs import drained, open_lake
from tests.support.lakes.settings import settings_of
from tests.support.servers.aws import AwsServer, fresh_sessions
from tests.support.servers.emr_cluster import LocalEmr, local_emr
from tests.support.servers.emr_node import PYTHON, shell, spark_submit, without_spark

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
SAMPLE = SampleSpec(days=3, events_per_day=60, files_per_day=1, hours=2)
SOURCE = IOS_PROD


class QuickEmr(EmrEngine):
    def pace(self) -> Pace:
        return Pace(0.5, 1.0, 5.0, 20.0)


@dataclass
class Aws:
    """The lake, its archive, and Dagster over both."""

    server: AwsServer
    emr: LocalEmr
    lake: Lake
    cluster_id: str
    instance: dg.DagsterInstance
    folder: Path

    def arrive(self, days: int) -> None:
        """Bring the archive of so many days into the bucket."""
        write_archive(self.folder, SAMPLE, arrived=days)
        for file in self.folder.rglob("*"):
            path = str(file.relative_to(self.folder))
            if file.is_file() and path.startswith("segment-logs") and not self.has(path):
                self.lake.storage.write(path, file.read_bytes())

    def has(self, path: str) -> bool:
        return self.lake.storage.exists(path)

    def expected(self, days: int) -> Counter[tuple[str, ...]]:
        """The same from the sample's own generated, after so many days."""
        generated = write_archive(self.folder, SAMPLE, arrived=days)
        total: Counter[tuple[str, ...]] = Counter()
        for added in generated.per_sync(SOURCE.id)[:days]:
            total.update({(s.table, s.day, s.hr): rows for s, rows in added.rows.items()})
        return total

    def shipped(self) -> list[StoredFile]:
        """The packages in the bucket; our code changes too often while one works on it."""
        files = self.lake.storage.files(f"{paths.STATE}/code")
        return [file for file in files if file.name == "environment.zip"]

    def definitions(self) -> dg.Definitions:
        refresh_snapshot(self.lake)
        return build(self.lake, read_snapshot(self.lake), QuickEmr(python=PYTHON))

    def sync(self) -> dg.ExecuteInProcessResult:
        job = self.definitions().resolve_job_def(NAMES.sync_job(self.lake.settings.sources[0]))
        return job.execute_in_process(instance=self.instance, raise_on_error=False)

    def replay(self, table: str, first: str, last: str) -> dg.ExecuteInProcessResult:
        [schema] = [t for t in self.lake.catalog.tables(SOURCE.slug) if t.name == table]
        return (
            self.definitions()
            .resolve_implicit_global_asset_job_def()
            .execute_in_process(
                instance=self.instance,
                asset_selection=[dg.AssetKey([SOURCE.slug, schema.name])],
                tags={
                    "dagster/asset_partition_range_start": first,
                    "dagster/asset_partition_range_end": last,
                },
                raise_on_error=False,
            )
        )

    def logged(self, result: dg.ExecuteInProcessResult) -> str:
        """The log lines of a run in Dagster."""
        return "\n".join(line.user_message for line in self.instance.all_logs(result.run_id))

    def rows(self) -> Counter[tuple[str, ...]]:
        """By table, day and hour, as the catalog tells them."""
        return Counter(
            {
                (table.name, *partition.values): partition.rows
                for table in self.lake.catalog.tables(SOURCE.slug)
                for partition in self.lake.catalog.partitions(SOURCE.slug, table.name)
            }
        )


@pytest.fixture(scope="module")
def aws_lake(aws_server: AwsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    """One for all tests here: each goes on where the one before ended."""
    folder = tmp_path_factory.mktemp("aws")
    with pytest.MonkeyPatch.context() as patch, fresh_sessions():
        patch.setenv("DAGSTER_HOME", str(tmp_path_factory.mktemp("home")))
        for name, value in aws_server.environment.items():
            patch.setenv(name, value)
        aws_server.reset()
        bucket = aws_server.bucket()
        with (
            local_emr(aws_server, folder / "emr", spark_submit) as emr,
            dg.DagsterInstance.ephemeral() as instance,
        ):
            cluster_id = emr.start_cluster(bucket)
            settings = settings_of(
                f"s3://{bucket}",
                SOURCE,
                catalog="glue",
                engine="emr",
                emr_cluster_id=cluster_id,
                iam_role_arn=aws_server.role(external_id="W1"),
            )
            lake = Lake.open(settings)
            yield Aws(aws_server, emr, lake, cluster_id, instance, folder / "archive")


def test_everything_is_in_order_before_the_first_run(aws_lake: Aws) -> None:
    aws_lake.arrive(1)
    found = list(findings(aws_lake.lake, aws_lake.lake.settings.sources))

    assert [finding for finding in found if finding.error] == []
    assert any(aws_lake.cluster_id in finding.what for finding in found)


def test_a_sync_through_dagster_is_carried_out_by_spark_on_the_cluster(aws_lake: Aws) -> None:
    result = aws_lake.sync()

    [step] = aws_lake.emr.steps(aws_lake.cluster_id)
    assert result.success, aws_lake.emr.logs(step.id)
    assert aws_lake.rows() == aws_lake.expected(1)
    newest = next(newest_reports(aws_lake.lake))  # through the partitions in Glue
    assert not newest.failed and newest.source.emr_cluster_id == aws_lake.cluster_id
    assert "Kernels of 2 workers: " in aws_lake.logged(result)


def test_what_a_catalog_in_files_has_of_the_same_archive_glue_has_too(
    aws_lake: Aws, tmp_path: Path
) -> None:
    """And the rows, table by table."""
    local = open_lake(tmp_path, SOURCE)
    write_archive(tmp_path, SAMPLE, arrived=1)
    drained(local.settings)

    loaded = aws_lake.rows()
    for table in local.catalog.tables(SOURCE.slug):
        in_glue = aws_lake.lake.catalog.table(SOURCE.slug, table.name)
        assert in_glue is not None
        assert [(c.name, c.type, c.comment) for c in in_glue.columns] == [
            (c.name, c.type, c.comment) for c in table.columns
        ]
        for partition in local.catalog.partitions(SOURCE.slug, table.name):
            assert loaded[(table.name, *partition.values)] == partition.rows


@pytest.mark.parametrize("days", [2, 3])
def test_later_syncs_ship_nothing_and_load_new_files(aws_lake: Aws, days: int) -> None:
    shipped = aws_lake.shipped()
    aws_lake.emr.command = without_spark  # which is shown before, and takes longer
    aws_lake.arrive(days)
    result = aws_lake.sync()

    assert result.success
    assert shipped and aws_lake.shipped() == shipped
    assert aws_lake.rows() == aws_lake.expected(days)
    assert next(newest_reports(aws_lake.lake)).new_columns


def test_a_failed_step_is_a_failed_run_in_dagster_and_in_the_report(aws_lake: Aws) -> None:
    aws_lake.emr.command = shell("echo the disk is full >&2; exit 1")
    result = aws_lake.sync()

    [failure] = [e for e in result.all_events if e.is_step_failure]
    told = failure.step_failure_data.user_failure_data
    assert told is not None and "the disk is full" in (told.description or "")
    newest = next(newest_reports(aws_lake.lake))
    assert newest.failed and "the disk is full" in str(newest.source.error)


def test_a_replay_in_dagster_has_its_own_cluster_and_reports_its_id(aws_lake: Aws) -> None:
    before = aws_lake.rows()
    aws_lake.emr.command = spark_submit
    result = aws_lake.replay("screen", "2026-10-01", "2026-10-02")

    assert result.success
    assert aws_lake.rows() == before
    newest = next(newest_reports(aws_lake.lake))
    own = newest.source.emr_cluster_id
    assert newest.is_replay and own != aws_lake.cluster_id
    logged = aws_lake.logged(result)
    assert re.search(r"Kernels of 2 workers: [1-9]\d* from the cache, 0 compiled", logged)
    assert aws_lake.emr.state(own) == "TERMINATED"
    replayed = result.asset_materializations_for_node("replay_ios_prod_tables")
    days = {event.partition for event in replayed if event.asset_key.path[-1] == "screen"}
    assert days == {"2026-10-01", "2026-10-02"}


@dataclass(frozen=True)
class InterruptingPace(Pace):
    """Sends this process the interrupt of a keyboard, once, as soon as it is `due`."""

    due: Callable[[], object] = lambda: False
    sent: list[bool] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        if not self.sent and self.due():
            self.sent.append(True)
            os.kill(os.getpid(), signal.SIGINT)
        super().sleep(seconds)


def test_a_cancelled_run_ends_its_step_and_has_a_failed_report(
    aws_lake: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws_lake.emr.command = spark_submit
    extra = f"{paths.raw_root(SOURCE.id)}/{paths.day_folder(date(2026, 10, 2))}/late.json"
    aws_lake.lake.storage.write(extra, b'{"type":"page","messageId":"x"}\n')
    steps_before = len(aws_lake.emr.steps(aws_lake.cluster_id))

    def step_writes_its_log() -> bool:
        new = aws_lake.emr.steps(aws_lake.cluster_id)[steps_before:]
        return bool(aws_lake.emr.at_work and new and aws_lake.emr.logs(new[0].id))

    pace = InterruptingPace(0.5, 1.0, 5.0, 20.0, step_writes_its_log)
    monkeypatch.setattr(QuickEmr, "pace", lambda _: pace)
    result = aws_lake.sync()

    assert pace.sent and not result.success
    step = aws_lake.emr.steps(aws_lake.cluster_id)[steps_before]
    assert dict(aws_lake.emr.cancelled)[step.id] == "SEND_INTERRUPT"
    assert step.state == "CANCELLED" and not aws_lake.emr.at_work
    newest = next(newest_reports(aws_lake.lake))
    assert newest.failed and "cancelled" in str(newest.source.error)

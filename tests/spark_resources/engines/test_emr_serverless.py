"""A lake on AWS without a cluster: job runs that Spark really carries out, as on EMR Serverless."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from datalake_assets.assets.keys import NAMES
from datalake_assets.component import build
from datalake_assets.instance.snapshot import read_snapshot, refresh_snapshot
from eventlake.lake import Lake
from eventlake.runs.report_history import newest_reports
from eventlake.sample import IOS_PROD, SampleSpec, write_archive
from spark_resources.engines.remote.service import Pace
from tests.support.lakes.on_emr import PacedServerless
from tests.support.lakes.settings import settings_of
from tests.support.servers.aws import ACCOUNT, AwsServer, fresh_sessions
from tests.support.servers.emr_node import PYTHON
from tests.support.servers.emr_serverless import LocalServerless, local_serverless, spark_submit

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
SAMPLE = SampleSpec(days=1, events_per_day=60, files_per_day=1, hours=2)


class Serverless:
    """The lake, and Dagster over it."""

    def __init__(self, lake: Lake, serverless: LocalServerless, application_id: str) -> None:
        self.lake, self.serverless, self.application_id = lake, serverless, application_id
        self.instance = dg.DagsterInstance.ephemeral()

    def definitions(self) -> dg.Definitions:
        refresh_snapshot(self.lake)
        engine = PacedServerless(python=PYTHON).at(Pace(0.5, 1.0, 5.0, 20.0))
        return build(self.lake, read_snapshot(self.lake), engine)

    def sync(self) -> dg.ExecuteInProcessResult:
        job = self.definitions().resolve_job_def(NAMES.sync_job(self.lake.settings.sources[0]))
        return job.execute_in_process(instance=self.instance, raise_on_error=False)

    def replay(self, table: str, day: str) -> dg.ExecuteInProcessResult:
        job = self.definitions().resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            asset_selection=[dg.AssetKey([IOS_PROD.slug, table])],
            partition_key=day,
            raise_on_error=False,
        )

    def rows(self) -> Counter[tuple[str, ...]]:
        """By table, day and hour, as in the catalog."""
        return Counter(
            {
                (table.name, *partition.values): partition.rows
                for table in self.lake.catalog.tables(IOS_PROD.slug)
                for partition in self.lake.catalog.partitions(IOS_PROD.slug, table.name)
            }
        )

    def logged(self, result: dg.ExecuteInProcessResult) -> str:
        return "\n".join(line.user_message for line in self.instance.all_logs(result.run_id))


@pytest.fixture(scope="module")
def on_serverless(
    aws_server: AwsServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serverless]:
    folder = tmp_path_factory.mktemp("serverless")
    with pytest.MonkeyPatch.context() as patch, fresh_sessions():
        patch.setenv("DAGSTER_HOME", str(tmp_path_factory.mktemp("home")))
        for name, value in aws_server.environment.items():
            patch.setenv(name, value)
        aws_server.reset()
        bucket = aws_server.bucket()
        with local_serverless(aws_server, folder / "emr", spark_submit) as serverless:
            application_id = serverless.create_application()
            settings = settings_of(
                f"s3://{bucket}",
                IOS_PROD,
                catalog="glue",
                engine="emr-serverless",
                emr_serverless_application_id=application_id,
                execution_role_arn=f"arn:aws:iam::{ACCOUNT}:role/datalake-jobs",
                iam_role_arn=aws_server.role(external_id="W1"),
            )
            yield Serverless(Lake.open(settings), serverless, application_id)


def test_a_sync_and_a_replay_are_carried_out_by_spark(
    on_serverless: Serverless, tmp_path: Path
) -> None:
    generated = write_archive(tmp_path, SAMPLE, arrived=1)
    for file in (tmp_path / "segment-logs" / IOS_PROD.id).rglob("*"):
        if file.is_file():
            path = str(file.relative_to(tmp_path))
            on_serverless.lake.storage.write(path, file.read_bytes())
    added = generated.per_sync(IOS_PROD.id)[0]
    expected = Counter({(s.table, s.day, s.hr): rows for s, rows in added.rows.items()})

    synced = on_serverless.sync()

    [of_sync] = on_serverless.serverless.runs(on_serverless.application_id)
    assert synced.success, on_serverless.serverless.log(of_sync)
    assert on_serverless.rows() == expected
    newest = next(newest_reports(on_serverless.lake))
    assert newest.source.emr_cluster_id == f"{on_serverless.application_id}/{of_sync.id}"
    kernels = r"Kernels of 2 workers: \d+ from the cache, \d+ compiled"
    assert re.search(kernels, on_serverless.logged(synced))

    replayed = on_serverless.replay("screen", "2026-10-01")

    _, of_replay = on_serverless.serverless.runs(on_serverless.application_id)
    assert replayed.success, on_serverless.serverless.log(of_replay)
    assert on_serverless.rows() == expected
    newest = next(newest_reports(on_serverless.lake))
    assert newest.is_replay and newest.source.emr_cluster_id.endswith(f"/{of_replay.id}")

"""A sync and a replay on real Spark whose lake is on S3, behind a role that has to be assumed."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from datalake_assets.assets.running import new_job
from eventlake.aws.access import forget_sessions
from eventlake.lake import Lake
from eventlake.rules.clock import parse_range
from eventlake.rules.errors import InsufficientPermissions
from eventlake.runs.report_history import newest_reports
from eventlake.runs.unit import Window
from eventlake.sample import IOS_PROD, SampleArchive, SampleSpec, write_archive
from eventlake.sql import LakeSql
from eventlake.storage import LocalStorage
from spark_resources.engines.local import LocalEngine
from tests.support.aws.enforced import User, all_but, enforced
from tests.support.lakes.jobs import run
from tests.support.lakes.settings import settings_of
from tests.support.servers.aws import SECRET, AwsServer

pytestmark = pytest.mark.spark
SAMPLE = SampleSpec(days=1, events_per_day=200, files_per_day=3, hours=3)


@pytest.fixture
def lake(aws: AwsServer) -> Lake:
    role = aws.role(external_id="W1")
    storage = f"s3://{aws.bucket()}/events"
    return Lake.open(settings_of(storage, IOS_PROD, iam_role_arn=role))


@pytest.fixture
def generated(lake: Lake, tmp_path: Path) -> SampleArchive:
    """What was sent to the archive."""
    generated = write_archive(tmp_path, SAMPLE)
    for file in LocalStorage(str(tmp_path)).files(lake.settings.sources[0].raw):
        lake.storage.write(file.path, (tmp_path / file.path).read_bytes())
    return generated


@pytest.fixture
def workers_env(
    engine: LocalEngine, aws: AwsServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Workers have the environment in which Java was started, maybe before there was this AWS."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    environment = engine.pyspark.spark_session.sparkContext.environment
    before = dict(environment)
    environment.update(aws.environment)
    yield
    environment.clear()
    environment.update(before)


def rows(lake: Lake) -> dict[str, int]:
    sql = LakeSql(lake.catalog, lake.storage)
    tables = [table.name for table in lake.catalog.tables(IOS_PROD.slug)]
    return {
        table: sql.query(f"SELECT count(*) n FROM {IOS_PROD.slug}.{table}")["n"][0].as_py()
        for table in tables
    }


@pytest.mark.usefixtures("workers_env")
def test_a_sync_and_a_replay_on_s3(
    lake: Lake, generated: SampleArchive, engine: LocalEngine
) -> None:
    done = run(engine, lake)
    by_table: Counter[str] = Counter()
    for added in generated.per_sync(IOS_PROD.id):
        for slot, count in added.rows.items():
            by_table[slot.table] += count
    assert rows(lake) == by_table
    assert done.row_count == sum(by_table.values())

    window = Window(*parse_range("2026-10-01", "2026-10-02"))
    assert run(engine, lake, window=window).row_count == done.row_count
    assert rows(lake) == by_table
    assert run(engine, lake).row_count == 0
    assert lake.storage.files("segment-stage") == []
    sql = "SELECT DISTINCT s3_bucket, status FROM __segment_datalake.sync_reports"
    answer = LakeSql(lake.catalog, lake.storage).query(sql).to_pylist()
    assert answer == [{"s3_bucket": "lake-bucket", "status": "finished"}]


@pytest.mark.usefixtures("workers_env")
def test_a_refusal_in_a_task_reads_like_one_of_the_run(
    aws: AwsServer,
    lake: Lake,
    generated: SampleArchive,
    engine: LocalEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = "arn:aws:s3:::lake-bucket/events/segment-logs/*"
    aws.client("iam").put_role_policy(
        RoleName="datalake", PolicyName="own", PolicyDocument=all_but(f"s3:GetObject {raw}")
    )
    for name, value in User(aws, denied=[]).environment.items():
        monkeypatch.setenv(name, value)
        engine.pyspark.spark_session.sparkContext.environment[name] = value
    forget_sessions()
    with enforced(aws), pytest.raises(InsufficientPermissions) as caught:
        run(engine, lake)
    told = str(caught.value)
    assert told.startswith(
        "Eventlake does not have permissions to download object from S3 Bucket lake-bucket: "
        "s3:GetObject on arn:aws:s3:::lake-bucket/events/segment-logs/"
    )
    [report] = newest_reports(lake)
    assert report.source.error == told
    assert report.source.error_code == "Segment.InsufficientPermissions"


def test_no_secret_is_in_a_job(lake: Lake, aws: AwsServer) -> None:
    job = msgspec.json.encode(new_job(lake.settings, lake.settings.sources[0], ""))
    assert lake.settings.iam_role_arn is not None
    assert lake.settings.iam_role_arn.encode() in job
    assert SECRET.encode() not in job

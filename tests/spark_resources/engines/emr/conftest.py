"""A lake in a bucket, a standing cluster beside it, and the engine that uses both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlake.lake import Lake
from eventlake.rules import paths
from spark_resources.shipping import Target, environment_version
from tests.support.lakes.on_emr import EmrLake, ServerlessLake
from tests.support.lakes.settings import settings_of
from tests.support.servers.aws import ACCOUNT, AwsServer
from tests.support.servers.emr_cluster import LocalEmr, local_emr
from tests.support.servers.emr_node import PYTHON, without_spark
from tests.support.servers.emr_serverless import local_serverless
from tests.support.servers.emr_serverless import without_spark as in_process


@pytest.fixture
def emr(aws: AwsServer, tmp_path: Path) -> Iterator[LocalEmr]:
    with local_emr(aws, tmp_path / "emr", without_spark) as emr:
        yield emr


@pytest.fixture
def emr_lake(aws: AwsServer, emr: LocalEmr) -> EmrLake:
    bucket = aws.bucket()
    cluster_id = emr.start_cluster(bucket)
    settings = settings_of(
        f"s3://{bucket}/lakes/one",
        engine="emr",
        emr_cluster_id=cluster_id,
        iam_role_arn=aws.role(external_id="W1"),
    )
    return EmrLake(_with_packages(Lake.open(settings)), emr, cluster_id)


def _with_packages(lake: Lake) -> Lake:
    """Packages need not be shipped: jobs without Spark run in the environment of the tests."""
    shipped = paths.shipped_code(environment_version(Target(python=PYTHON)))
    lake.storage.write(f"{shipped}/environment.zip", b"")
    return lake


@pytest.fixture
def serverless_lake(aws: AwsServer, tmp_path: Path) -> Iterator[ServerlessLake]:
    bucket = aws.bucket()
    with local_serverless(aws, tmp_path / "serverless", in_process) as serverless:
        application_id = serverless.create_application()
        settings = settings_of(
            f"s3://{bucket}/lakes/one",
            engine="emr-serverless",
            emr_serverless_application_id=application_id,
            execution_role_arn=f"arn:aws:iam::{ACCOUNT}:role/datalake-jobs",
            iam_role_arn=aws.role(external_id="W1"),
        )
        yield ServerlessLake(_with_packages(Lake.open(settings)), serverless, application_id)

"""A lake in a bucket, a standing cluster beside it, and the engine that uses both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlake.lake import Lake
from eventlake.rules import paths
from spark_resources.shipping import Target, environment_version
from tests.support.lakes.on_emr import EmrLake
from tests.support.lakes.settings import settings_of
from tests.support.servers.aws import AwsServer
from tests.support.servers.emr_cluster import LocalEmr, local_emr
from tests.support.servers.emr_node import PYTHON, without_spark


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
    lake = Lake.open(settings)
    # What is shipped is shown elsewhere; jobs without Spark run in the environment of the tests.
    shipped = paths.shipped_code(environment_version(Target(python=PYTHON)))
    lake.storage.write(f"{shipped}/environment.zip", b"")
    return EmrLake(lake, emr, cluster_id)

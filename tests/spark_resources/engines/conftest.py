"""A session for each module that asks for one: a lake must not need what another left in it.

Hive is one for all: it takes half a minute to start, and tests have tables of their own in it.
"""

import os
import shutil
from collections.abc import Iterator
from typing import IO

import pytest
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from spark_resources import shipping
from spark_resources.engines.java import with_archive
from spark_resources.engines.local import LocalEngine
from spark_resources.engines.session import SPARK_CONFIG
from spark_resources.shipping import Target, environment_version, write_environment
from tests.support.servers.hive import Hive


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    config = with_archive(SPARK_CONFIG) | {"spark.master": "local[2]"}
    yield LocalEngine(pyspark=LazyPySparkResource(spark_config=config))
    SparkSession.builder.getOrCreate().stop()


@pytest.fixture(scope="session", autouse=True)
def _packages_are_packed_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For all that ship them: it takes a quarter of a minute, and they are always the same."""
    kept = tmp_path_factory.getbasetemp().parent  # for all processes that run these tests

    def copy_environment(target: Target, out: IO[bytes]) -> None:
        packed = kept / f"environment-{environment_version(target)}.zip"
        if not packed.exists():
            aside = kept / f"{packed.name}.{os.getpid()}"
            with aside.open("wb") as archive:
                write_environment(target, archive)
            aside.replace(packed)
        with packed.open("rb") as archive:
            shutil.copyfileobj(archive, out)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shipping, "write_environment", copy_environment)
        yield


@pytest.fixture(scope="session")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    hive = Hive(tmp_path_factory.mktemp("hive"))
    yield hive
    hive.close()

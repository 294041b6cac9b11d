"""A session for each module that asks for one: a lake must not need what another left in it.

Hive is one for all: it takes half a minute to start, and tests have tables of their own in it.
"""

from collections.abc import Iterator

import pytest
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from spark_resources.local import SPARK_CONFIG, LocalEngine
from tests.spark.hive import Hive


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    config = SPARK_CONFIG | {"spark.master": "local[2]"}
    yield LocalEngine(pyspark=LazyPySparkResource(spark_config=config))
    SparkSession.builder.getOrCreate().stop()


@pytest.fixture(scope="session")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    hive = Hive(tmp_path_factory.mktemp("hive"))
    yield hive
    hive.close()

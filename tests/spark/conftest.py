"""A session for each module that asks for one: a lake must not need what another left in it."""

from collections.abc import Iterator

import pytest
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from spark_resources.local import SPARK_CONFIG, LocalEngine


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    config = SPARK_CONFIG | {"spark.master": "local[2]"}
    yield LocalEngine(pyspark=LazyPySparkResource(spark_config=config))
    SparkSession.builder.getOrCreate().stop()

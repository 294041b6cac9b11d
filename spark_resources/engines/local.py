"""Spark in this process: a laptop, a test, a single server."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource

from eventlake.runs.context import Listener
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.dataflow.staged import StagedDataflow
from spark_resources.engines.base import SparkEngine
from spark_resources.engines.java import with_archive
from spark_resources.engines.session import SPARK_CONFIG, local_dataflow


class LocalEngine(SparkEngine):
    """Starts Spark when the first raw file has to be read, with the settings of dagster-pyspark."""

    pyspark: dg.ResourceDependency[LazyPySparkResource]

    def run(self, job: LakeJob, listener: Listener) -> Iterator[Any]:
        return run_job(job, self.dataflow, listener)

    def dataflow(self) -> StagedDataflow:
        return local_dataflow(self.pyspark.spark_config)


def local_engine() -> LocalEngine:
    return LocalEngine(pyspark=LazyPySparkResource(spark_config=with_archive(SPARK_CONFIG)))

"""Spark in this process: a laptop, a test, a single server."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource

from eventlake.runs.context import SILENT, Listener
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.dataflow.staged import StagedDataflow
from spark_resources.engines.base import SparkEngine
from spark_resources.engines.java import with_archive
from spark_resources.engines.session import SPARK_CONFIG, local_dataflow


class LocalEngine(SparkEngine):
    """Starts the session of `dagster-pyspark` when the first raw file has to be read."""

    pyspark: dg.ResourceDependency[LazyPySparkResource]

    def run(self, job: LakeJob, listener: Listener) -> Iterator[Any]:
        return run_job(job, partial(self.dataflow, listener), listener)

    def dataflow(self, listener: Listener = SILENT) -> StagedDataflow:
        return local_dataflow(lambda: self.pyspark.spark_session, listener)


def local_engine() -> LocalEngine:
    return LocalEngine(pyspark=LazyPySparkResource(spark_config=with_archive(SPARK_CONFIG)))

"""Spark in this very process: a laptop, a test, a single server."""

from collections.abc import Iterator

import dagster as dg
from dagster_pyspark import LazyPySparkResource

from eventlake.runs.context import Listener, Published
from eventlake.runs.dry_run import PlannedUnit
from spark_resources.class_archive import with_archive
from spark_resources.engine import SparkEngine
from spark_resources.java import require_java
from spark_resources.jobs.lake_job import LakeJob, preview_job, run_job
from spark_resources.jobs.shelf_dataflow import ShelfDataflow
from spark_resources.local_spark import SPARK_CONFIG, local_dataflow


class LocalEngine(SparkEngine):
    """Starts Spark when the first raw file has to be read, with the settings of dagster-pyspark."""

    pyspark: dg.ResourceDependency[LazyPySparkResource]

    def run(self, job: LakeJob, listener: Listener) -> Iterator[Published]:
        return run_job(job, self.dataflow, listener)

    def preview(self, job: LakeJob, listener: Listener) -> Iterator[PlannedUnit]:
        return preview_job(job, self.dataflow, listener)

    def dataflow(self) -> ShelfDataflow:
        return local_dataflow(self.pyspark.spark_config)

    def check(self) -> None:
        require_java()


def local_engine() -> LocalEngine:
    return LocalEngine(pyspark=LazyPySparkResource(spark_config=with_archive(SPARK_CONFIG)))

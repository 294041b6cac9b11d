"""Spark in this very process: a laptop, a test, a single server."""

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from subprocess import Popen
from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pyspark import SparkConf, SparkContext

from lake.work.dry_run import PlannedUnit
from lake.work.run_context import Listener, Published
from spark_resources import session
from spark_resources.class_archive import with_archive
from spark_resources.engine import SparkEngine
from spark_resources.java import require_java
from spark_resources.jobs.lake_job import LakeJob, preview_job, run_job
from spark_resources.jobs.shelf import Shelf
from spark_resources.jobs.shelf_dataflow import ShelfDataflow
from spark_resources.jobs.workers_ahead import start_ahead
from spark_resources.jvm_words import without_greeting

_LOG_SETTINGS = Path(__file__).absolute().with_name("log4j2.properties")

SPARK_CONFIG: dict[str, Any] = {
    "spark.master": "local[*]",
    "spark.app.name": "datalake",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": " ".join(
        [f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}", *session.FRUGAL_JAVA]
    ),
    "spark.python.daemon.module": "spark_resources.jobs.worker_daemon",
    **session.DATAFLOW,
}


class LocalEngine(SparkEngine):
    """Starts Spark when the first raw file has to be read, with the settings of dagster-pyspark.

    Its session is for SQL, of which our tasks need none: it would take another second.
    """

    pyspark: dg.ResourceDependency[LazyPySparkResource]

    def run(self, job: LakeJob, listener: Listener) -> Iterator[Published]:
        return run_job(job, self.dataflow, listener)

    def preview(self, job: LakeJob, listener: Listener) -> Iterator[PlannedUnit]:
        return preview_job(job, self.dataflow, listener)

    def dataflow(self) -> ShelfDataflow:
        # Spark starts its workers with whatever `python3` is; they need our packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if SparkContext._gateway is None:  # Java is still to be started
            _workers()
        with without_greeting():
            context = SparkContext.getOrCreate(
                SparkConf().setAll([*self.pyspark.spark_config.items()])
            )
        return ShelfDataflow(context, Shelf.on_this_machine())

    def check(self) -> None:
        require_java()


@cache
def _workers() -> Popen[bytes]:
    """Once in a process, like Java, and as long as that lives."""
    return start_ahead()


def local_engine() -> LocalEngine:
    return LocalEngine(pyspark=LazyPySparkResource(spark_config=with_archive(SPARK_CONFIG)))

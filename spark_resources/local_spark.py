"""Spark in this very process, started with all that makes it quick."""

import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from subprocess import Popen
from typing import Any

from pyspark import SparkConf, SparkContext

from spark_resources import session
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


def local_dataflow(config: Mapping[str, Any]) -> ShelfDataflow:
    """A data flow on the Spark of this process, which is started if it is not there yet."""
    # Spark starts its workers with whatever `python3` is; they need our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if SparkContext._gateway is None:  # Java is still to be started
        _workers()
    with without_greeting():
        # Not a session: that is for SQL, of which our tasks need none, and takes another second.
        context = SparkContext.getOrCreate(SparkConf().setAll([*config.items()]))
    return ShelfDataflow(context, Shelf.on_this_machine())


@cache
def _workers() -> Popen[bytes]:
    """Once in a process, like Java, and as long as that lives."""
    return start_ahead()

"""The Spark session on this machine. Imports no Dagster, which takes as long to load."""

import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from subprocess import Popen
from typing import Any

from pyspark import SparkConf, SparkContext

from spark_resources.dataflow.blob_store import BlobStore
from spark_resources.dataflow.local import LocalDataflow
from spark_resources.engines.java import DATAFLOW, FRUGAL_JAVA, filtered_stderr
from spark_resources.workers.ahead import start_ahead

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
        [f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}", *FRUGAL_JAVA]
    ),
    "spark.python.daemon.module": "spark_resources.workers.daemon",
    **DATAFLOW,
}


def local_dataflow(config: Mapping[str, Any]) -> LocalDataflow:
    """A data flow on the Spark of this process, which is started if it is not there yet."""
    # Spark starts its workers with whatever `python3` is; they need our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if SparkContext._gateway is None:  # Java is still to be started
        _workers()
    with filtered_stderr():
        # Not a session: that is for SQL, of which our tasks need none, and takes another second.
        context = SparkContext.getOrCreate(SparkConf().setAll([*config.items()]))
    return LocalDataflow(context, BlobStore.on_this_machine())


@cache
def _workers() -> Popen[bytes]:
    """Once in a process, like Java, and as long as that lives."""
    return start_ahead()

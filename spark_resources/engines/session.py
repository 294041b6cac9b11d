"""Spark on this machine. Imports no Dagster, which takes as long to load as Spark."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from uuid import uuid4

from pyspark import SparkConf, SparkContext, SparkFiles

from eventlake.storage import LocalStorage
from spark_resources.dataflow.blob_store import BlobStore
from spark_resources.dataflow.staged import SparkRunner, StagedDataflow
from spark_resources.engines.java import FRUGAL_JAVA, filtered_stderr, with_archive

_STARTS = Lock()  # one start at a time: each redirects standard error meanwhile
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
}


def local_dataflow(config: Mapping[str, Any]) -> StagedDataflow:
    """A dataflow on the Spark of this process; starts Spark if necessary."""
    context = _context(config)
    # Spark removes its folder for files at its end.
    store = BlobStore(LocalStorage(SparkFiles.getRootDirectory()), f"blobs-{uuid4().hex}")
    return StagedDataflow(SparkRunner(context), store)


def start_early() -> None:
    """Start Spark in the background, for a run of this process that will need it in seconds.

    `local_dataflow` waits for it, or starts it again if it could not start.
    """

    def start() -> None:
        with suppress(Exception):
            _context(with_archive(SPARK_CONFIG))

    Thread(target=start, name="Spark", daemon=True).start()


def _context(config: Mapping[str, Any]) -> SparkContext:
    # By default, Spark starts workers with the first `python3` on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _STARTS, filtered_stderr():
        # A session would also start Spark SQL, which takes another second and is not used.
        return SparkContext.getOrCreate(SparkConf().setAll([*config.items()]))

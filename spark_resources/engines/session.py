"""Spark on this machine. Imports no Dagster, which takes as long to load as Spark."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from uuid import uuid4

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from eventlake.columnar.private_folder import first_start
from eventlake.runs.context import SPARK_UI, Listener
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
    "spark.ui.port": "0",
    "spark.ui.killEnabled": "false",  # the UI has no login
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": " ".join(
        [f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}", *FRUGAL_JAVA]
    ),
    "spark.python.daemon.module": "spark_resources.workers.daemon",
}


def session_of(config: Mapping[str, Any]) -> SparkSession:
    """The session of this process, as `dagster-pyspark` makes it from the same settings."""
    builder: SparkSession.Builder = SparkSession.builder
    for name, value in config.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def local_dataflow(session: Callable[[], SparkSession], listener: Listener) -> StagedDataflow:
    """A dataflow on the Spark of this process; starts Spark if necessary."""
    with _starting():
        context = session().sparkContext
    if url := context.uiWebUrl:
        listener.page(SPARK_UI, url)
    if wait := first_start():
        listener.log(wait)
    # Spark removes its folder for files at its end.
    store = BlobStore(LocalStorage(SparkFiles.getRootDirectory()), f"blobs-{uuid4().hex}")
    return StagedDataflow(SparkRunner(context), store)


def start_early() -> None:
    """Start Spark in the background, for a run of this process that will need it in seconds.

    `local_dataflow` waits for it, or starts it again if it could not start.
    """

    def start() -> None:
        with suppress(Exception), _starting():
            session_of(with_archive(SPARK_CONFIG))

    Thread(target=start, name="Spark", daemon=True).start()


@contextmanager
def _starting() -> Iterator[None]:
    # By default, Spark starts workers with the first `python3` on the path, and its UI listens on
    # all networks.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _STARTS, filtered_stderr():
        yield

"""Spark on a standalone cluster: the master, the application, and the engine."""

import socket
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import msgspec
from dagster_pyspark import LazyPySparkResource
from py4j.protocol import Py4JError
from pydantic import Field
from pyspark import SparkContext
from pyspark.sql import SparkSession

from eventlake.lake import Lake
from eventlake.runs.context import SPARK_UI, Listener
from eventlake.settings.models import Settings
from eventlake.storage import Storage
from eventlake.storage.base import probe
from spark_resources.dataflow.blob_store import BlobStore
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.dataflow.staged import SparkRunner, StagedDataflow
from spark_resources.engines import java
from spark_resources.engines.base import SparkEngine
from spark_resources.engines.cluster.executors import (
    HERE,
    Executors,
    add_code,
    add_packages,
    look_at_workers,
    packages_to_ship,
    refuse_blind,
    trouble,
    unusable,
)
from spark_resources.engines.java import with_archive
from spark_resources.shipping import DAEMON, Target
from spark_resources.workers.probe import log_kernels


class ClusterSession:
    """An application on the cluster. Each part starts when it is needed; the end frees all cores.

    `shipped` is the kind of nodes that packages were shipped for, if they were.
    """

    def __init__(
        self,
        settings: Settings,
        storage: Storage,
        listener: Listener,
        wait_seconds: float | None = None,
    ) -> None:
        self.engine, self._spark = settings.engine, settings.spark
        self._storage, self._listener = storage, listener
        self._wait = 60.0 * self._spark.wait_minutes if wait_seconds is None else wait_seconds
        self._session: SparkSession | None = None
        self.shipped: Target | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._session is not None:
            self._session.stop()

    @property
    def python(self) -> str:
        """The program that workers run for tasks."""
        return self._spark.python or f"python{HERE}"

    @cached_property
    def own_address(self) -> str:
        """The address of this machine for the master; raises if the master is not running."""
        return reach(self.engine)

    @cached_property
    def executors(self) -> Executors:
        """The executors of a new application, as soon as there are some."""
        context = self._started()
        executors = Executors(context, self.engine, self._wait, self._listener)
        self._listener.log(f"{self.engine} has started {executors.wait()}")
        if url := context.uiWebUrl:
            self._listener.page(SPARK_UI, url)
        return executors

    def dataflow(self, folder: str) -> StagedDataflow:
        """A dataflow that keeps its blobs in a folder of its own, below a folder of the lake."""
        runner = SparkRunner(self.prepared, self.executors.at_work)
        return StagedDataflow(runner, BlobStore(self._storage, f"{folder}/{uuid4().hex}"))

    def try_storage(self, folder: str) -> str:
        """Write, read and remove a file from each executor."""
        context = self.prepared
        slots = context.defaultParallelism
        folders = context.parallelize([folder] * slots, slots)
        with self.executors.at_work():
            return str(folders.map(partial(probe, self._storage)).collect()[0])

    @cached_property
    def prepared(self) -> SparkContext:
        """The context, after workers have started with our code and packages."""
        context = self.executors.context
        add_code(context, self._storage)
        workers = look_at_workers(context, self._storage, self.engine)
        refuse_blind(workers, self._storage)
        self.shipped = packages_to_ship(workers, self.engine)
        if self.shipped is not None:
            add_packages(context, self._storage, self.shipped, self._listener)
            workers = look_at_workers(context, self._storage, self.engine)
        log_kernels(workers, self._listener)
        return context

    def _started(self) -> SparkContext:
        config = with_archive(driver_config(self.engine, self.own_address, self._spark.conf))
        try:
            self._session = LazyPySparkResource(spark_config=config).spark_session
        except Py4JError as error:
            lines = str(error).strip().splitlines()
            raise trouble(
                f"no application could be started at {self.engine}: {lines[-1][:300]}."
            ) from error
        context: SparkContext = self._session.sparkContext
        context.pythonExec = self.python
        return context


class ClusterEngine(SparkEngine):
    """The driver is in this process. Each run is an application, which ends with the run."""

    master: str | None = Field(default=None, description="spark://host:port")
    worker_python: str | None = Field(default=None, description="Python program of the workers.")
    wait_minutes: int | None = Field(default=None, description="Longest wait for executors.")
    conf: dict[str, str] = Field(default={}, description="Spark properties of applications.")

    def settings(self) -> dict[str, Any]:
        return {"engine": self.master}

    def configured(self, job: LakeJob) -> LakeJob:
        job = super().configured(job)
        given = {"python": self.worker_python, "wait_minutes": self.wait_minutes}
        spark: dict[str, Any] = dict(job.settings_json.get("spark") or {})
        spark |= {name: value for name, value in given.items() if value is not None}
        spark["conf"] = {**spark.get("conf", {}), **self.conf}
        return msgspec.structs.replace(job, settings_json={**job.settings_json, "spark": spark})

    def run(self, job: LakeJob, listener: Listener) -> Iterator[Any]:
        job = self.configured(job)
        storage = Lake.open(job.settings).for_source(job.source).storage
        with ClusterSession(job.settings, storage, listener) as session:
            yield from run_job(job, partial(session.dataflow, job.blob_folder), listener)


_CONNECT_SECONDS = 10.0
_LOG_SETTINGS = Path(java.__file__).absolute().with_name("log4j2.properties")


def masters(engine: str) -> list[tuple[str, int]]:
    """`spark://one:7077,other:7077`: of several, one leads and the others stand by."""
    addresses = [one.rpartition(":") for one in engine.removeprefix("spark://").split(",")]
    return [(host.strip("[]"), int(port)) for host, _, port in addresses]


def reach(engine: str, seconds: float = _CONNECT_SECONDS) -> str:
    """Connect to a master; returns the address of this machine in that connection.

    Spark itself would try for a minute, and its error does not say what to do.
    """
    refused: list[str] = []
    for host, port in masters(engine):
        try:
            with socket.create_connection((host, port), seconds) as connection:
                return str(connection.getsockname()[0])
        except socket.gaierror as error:
            refused.append(f"{host} has no address ({error.strerror})")
        except TimeoutError:
            refused.append(f"{host}:{port} did not answer within {seconds:g} s")
        except (OSError, OverflowError) as error:
            refused.append(f"{host}:{port} refused ({getattr(error, 'strerror', None) or error})")
    problem = (
        f"there is no Spark master at {engine}: {'; '.join(refused)}. "
        "Start it (`spark-class org.apache.spark.deploy.master.Master`), open its port to this "
        "machine, or correct `engine`: the master's page, usually on port 8080, shows it as URL."
    )
    wrong = all("has no address" in reason for reason in refused)
    raise unusable(problem) if wrong else trouble(problem)


def driver_config(engine: str, own_address: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """The settings of an application; executors are as Spark makes them by default."""
    logging = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    return {
        "spark.master": engine,
        "spark.app.name": "datalake",
        "spark.python.daemon.module": DAEMON,
        "spark.driver.host": own_address,  # executors connect to it
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": " ".join([logging, *java.FRUGAL_JAVA]),
        "spark.executor.extraJavaOptions": " ".join(java.FRUGAL_JAVA),
        "spark.ui.killEnabled": "false",  # the UI has no login
        "spark.ui.showConsoleProgress": "false",
        **chosen,
    }

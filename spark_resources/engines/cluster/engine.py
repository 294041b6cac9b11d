"""Spark on a standalone cluster of the user's own."""

from collections.abc import Iterator
from functools import cached_property, partial
from types import TracebackType
from typing import Any, Self

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from eventlake.lake import Lake
from eventlake.runs.context import Listener
from eventlake.settings.models import Settings
from eventlake.storage import Storage
from eventlake.storage.base import probe
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.engines.base import SparkEngine
from spark_resources.engines.cluster.errors import HERE, trouble
from spark_resources.engines.cluster.executors import ClusterDataflow, Executors
from spark_resources.engines.cluster.master import (
    Reached,
    Shape,
    Worker,
    ask_workers,
    driver_config,
    executor_config,
    expected,
    own_address_to,
    reach,
    refuse_too_small,
    shape_for,
)
from spark_resources.engines.cluster.workers import (
    add_code,
    add_packages,
    look_at_workers,
    packages_to_ship,
    refuse_blind,
)
from spark_resources.engines.java import filtered_stderr, with_archive
from spark_resources.shipping.environment import Target


class ClusterSession:
    """Each part begins when it is asked for; at the end all cores are given back."""

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
        self._context: SparkContext | None = None
        self.brought: Target | None = None  # for whom packages were brought, if they were

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._context is not None:
            self._context.stop()

    @cached_property
    def workers(self) -> list[Worker]:
        """All that the master knows; raises if no executor would find a place."""
        found = ask_workers(self._jvm, self._reached)
        if found is None:
            raise trouble(
                f"who listens at {self.engine} is no master of Spark {pyspark.__version__}, which "
                "runs here. The cluster and the `pyspark` of this Python must be of the same "
                "version: install the cluster's, or update the cluster."
            )
        refuse_too_small(found, shape_for(found, self._spark.conf), self.engine)
        return found

    @property
    def python(self) -> str:
        """The program that workers run for tasks."""
        return self._spark.python or f"python{HERE}"

    @cached_property
    def shape(self) -> Shape:
        return shape_for(self.workers, self._spark.conf)

    @cached_property
    def executors(self) -> Executors:
        """Of a new application, as soon as there are some."""
        self._context = self._started()
        executors = Executors(self._context, self.engine, self._wait, self._listener)
        found = executors.wait(expected(self.workers, self.shape, self._spark.conf))
        many = "s" if found != 1 else ""
        self._listener.log(f"{self.engine} has given {found} executor{many} with {self.shape}")
        return executors

    def dataflow(self) -> ClusterDataflow:
        """The same for all units of a run."""
        return self._dataflow

    def try_storage(self, folder: str) -> str:
        """Write, read and remove a file from each executor."""
        self.dataflow()
        context = self.executors.context
        slots = context.defaultParallelism
        folders = context.parallelize([folder] * slots, slots)
        with self.executors.at_work():
            return str(folders.map(partial(probe, self._storage)).collect()[0])

    @cached_property
    def _dataflow(self) -> ClusterDataflow:
        context = self.executors.context
        add_code(context)
        looks = look_at_workers(context, self._storage, self.engine)
        refuse_blind(looks, self._storage)
        self.brought = packages_to_ship(looks, self.engine)
        if self.brought is not None:
            add_packages(context, self._storage, self.brought, self._listener)
        return ClusterDataflow(SparkSession(context), self.executors)

    @cached_property
    def _reached(self) -> Reached:
        return reach(self.engine)

    def _conf(self, config: dict[str, str]) -> SparkConf:
        return SparkConf(loadDefaults=False).setAll(list(config.items()))

    @cached_property
    def _jvm(self) -> Any:
        config = driver_config(self.engine, self._reached.own_address, self._spark.conf)
        with filtered_stderr():
            SparkContext._ensure_initialized(conf=self._conf(with_archive(config)))
        return SparkContext._jvm

    def _started(self) -> SparkContext:
        address = own_address_to(self.workers[0].host, self._reached.own_address)
        config = driver_config(self.engine, address, self._spark.conf)
        try:
            context = SparkContext(conf=self._conf(config | executor_config(self.shape)))
        except Py4JError as error:
            told = str(error).strip().splitlines()
            raise trouble(
                f"no application could be started at {self.engine}: {told[-1][:300]}."
            ) from error
        context.pythonExec = self.python
        return context


class ClusterEngine(SparkEngine):
    """The driver is in this process, and each run an application, which ends with it."""

    def run(self, job: LakeJob, listener: Listener) -> Iterator[Any]:
        with _session(job, listener) as session:
            yield from run_job(job, session.dataflow, listener)


def _session(job: LakeJob, listener: Listener) -> ClusterSession:
    storage = Lake.open(job.settings).for_source(job.source).storage
    return ClusterSession(job.settings, storage, listener)

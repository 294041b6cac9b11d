"""A job on the driver of a cluster: reads what to do, runs, and reports to Dagster by Pipes."""

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import NoReturn
from uuid import uuid4

import msgspec
from dagster_pipes import (
    PipesContextLoader,
    PipesMessageWriter,
    PipesParamsLoader,
    open_dagster_pipes,
)

from eventlake.clouds import as_lake_error
from eventlake.lake import Lake
from eventlake.runs.context import Dataflow, Listener
from spark_resources.dataflow.blob_store import BlobStore
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.dataflow.staged import SparkRunner, StagedDataflow
from spark_resources.workers.job_events import (
    JobDone,
    JobFailed,
    PipesListener,
    UnitPlanned,
    UnitPublished,
    report,
)
from spark_resources.workers.probe import log_kernels, workers_of


def run_remote_job(
    params: PipesParamsLoader,
    context: PipesContextLoader,
    writer: PipesMessageWriter,  # type: ignore[type-arg]
    dataflow: Callable[[], Dataflow] | None = None,
) -> int:
    """Run the job that Pipes hands over; the result is the exit code."""
    started = time.monotonic()
    with (
        interruptible(),
        open_dagster_pipes(
            params_loader=params, context_loader=context, message_writer=writer
        ) as pipes,
    ):
        try:
            job = msgspec.convert(pipes.extras["job"], LakeJob)
            listener = PipesListener(pipes)
            flow = dataflow or spark_dataflow(job, listener)
            for unit in run_job(job, flow, listener):
                seconds = time.monotonic() - started
                report(pipes, UnitPlanned(unit) if job.dry_run else UnitPublished.of(unit, seconds))
            report(pipes, JobDone(time.monotonic() - started, peak_mb()))
            return 0
        except BaseException as error:
            report(pipes, JobFailed.of(as_lake_error(error) or error))
            raise


@contextmanager
def interruptible() -> Iterator[None]:
    """Stop at once when the job is cancelled: on SIGTERM, or when the JVM that started it ends."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    parent, done = os.getppid(), threading.Event()

    def watch() -> None:
        while not done.wait(1.0):
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGTERM)
                return

    threading.Thread(target=watch, name="watch the JVM", daemon=True).start()
    try:
        yield
    finally:
        done.set()
        signal.signal(signal.SIGTERM, before)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def spark_dataflow(job: LakeJob, listener: Listener) -> Callable[[], Dataflow]:
    """A dataflow on the Spark that the job was submitted to, which starts when it is needed."""

    @cache
    def start() -> Dataflow:
        from pyspark import SparkContext

        context = SparkContext.getOrCreate()
        log_kernels(workers_of(context), listener)
        storage = Lake.open(job.settings).for_source(job.source).storage
        folder = f"{job.blob_folder}/{uuid4().hex}"  # a unit may have two at once
        return StagedDataflow(SparkRunner(context), BlobStore(storage, folder))

    return start

"""A job on the EMR driver: reads its description from S3, runs, and reports to Dagster by Pipes."""

import argparse
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn
from uuid import uuid4

import msgspec
from dagster_pipes import (
    PipesCliArgsParamsLoader,
    PipesParams,
    PipesParamsLoader,
    PipesS3ContextLoader,
    open_dagster_pipes,
)

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import as_lake_error, aws_call
from eventlake.lake import Lake
from eventlake.runs.context import Dataflow, Listener
from spark_resources.dataflow.blob_store import BlobStore
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.dataflow.staged import SparkRunner, StagedDataflow
from spark_resources.workers.job_events import (
    JobDone,
    JobFailed,
    PatientWriter,
    PipesListener,
    UnitPlanned,
    UnitPublished,
    report,
)
from spark_resources.workers.probe import log_kernels, workers_of

_TOUCH_SECONDS = 30.0
# EMR takes a cluster without YARN applications for idle unless this file changes.
_BUSY = Path("/emr/metricscollector/isbusy")


@contextmanager
def interruptible() -> Iterator[None]:
    """Stop at once when the step is cancelled: on SIGTERM, or when the JVM that started it ends."""

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


@contextmanager
def busy() -> Iterator[None]:
    """Show EMR that the cluster is in use, also while the job waits for the lease."""
    done = threading.Event()

    def touch() -> None:
        while _BUSY.parent.is_dir() and not done.wait(_TOUCH_SECONDS):
            _BUSY.touch()

    threading.Thread(target=touch, name="busy", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# The description of the job is written when the id of its cluster is known.
_CONTEXT_SECONDS = 600.0
_SEND_SECONDS = 1.0


def main(arguments: list[str], dataflow: Callable[[], Dataflow] | None = None) -> int:
    """Run the job that the arguments point to; EMR uses the exit code."""
    region = _parsed(arguments).region
    s3 = AwsAccess(region=region).client("s3")
    params: PipesParamsLoader = PipesCliArgsParamsLoader()  # type: ignore[no-untyped-call]
    _await(s3, params.load_context_params())
    started = time.monotonic()
    with (
        interruptible(),
        busy(),
        open_dagster_pipes(
            params_loader=params,
            context_loader=PipesS3ContextLoader(client=s3),
            message_writer=PatientWriter(client=s3, interval=_SEND_SECONDS),
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


def spark_dataflow(job: LakeJob, listener: Listener) -> Callable[[], Dataflow]:
    """A dataflow on the Spark that the step was submitted to, which starts when it is needed."""

    @cache
    def start() -> Dataflow:
        from pyspark import SparkContext

        context = SparkContext.getOrCreate()
        log_kernels(workers_of(context), listener)
        storage = Lake.open(job.settings).for_source(job.source).storage
        folder = f"{job.blob_folder}/{uuid4().hex}"  # a unit may have two at once
        return StagedDataflow(SparkRunner(context), BlobStore(storage, folder))

    return start


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--region")
    return parser.parse_known_args(arguments)[0]


def _await(s3: Any, context: PipesParams, seconds: float = _CONTEXT_SECONDS) -> None:
    """Wait for the description of the job, which is written after the step has started."""
    bucket, key = context["bucket"], context["key"]
    until = time.monotonic() + seconds
    while True:
        try:
            with aws_call(f"{bucket}/{key}"):
                s3.get_object(Bucket=bucket, Key=key)["Body"].close()
            return
        except s3.exceptions.NoSuchKey:
            if time.monotonic() > until:
                raise
        time.sleep(2)

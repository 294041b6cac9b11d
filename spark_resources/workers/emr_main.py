"""A job on the EMR driver: reads its description from S3, runs, and reports to Dagster by Pipes."""

import argparse
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

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
from eventlake.runs.context import Dataflow
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.workers.job_events import (
    JobDone,
    JobFailed,
    PatientWriter,
    PipesListener,
    UnitPlanned,
    UnitPublished,
    tell,
)

_SIGN_SECONDS = 30.0
# EMR looks at this file to tell a cluster that works without YARN from an idle one.
_BUSY = Path("/emr/metricscollector/isbusy")


@contextmanager
def interruptible() -> Iterator[None]:
    """A cancelled step gets SIGTERM, or loses the JVM it was started by: it stops at once."""

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
    """Waiting for another run's lease is not idling: EMR would end the cluster of a replay."""
    done = threading.Event()

    def sign() -> None:
        while _BUSY.parent.is_dir() and not done.wait(_SIGN_SECONDS):
            _BUSY.touch()

    threading.Thread(target=sign, name="sign of work", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# The job's own description is written when the id of its cluster is known, after it was asked for.
_CONTEXT_SECONDS = 600.0
_SEND_SECONDS = 1.0


def main(arguments: list[str], dataflow: Callable[[], Dataflow] | None = None) -> int:
    """Carry out the job that the arguments lead to; the exit code is what EMR goes by."""
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
            flow, listener = dataflow or spark_dataflow, PipesListener(pipes)
            for unit in run_job(job, flow, listener):
                seconds = time.monotonic() - started
                tell(pipes, UnitPlanned(unit) if job.dry_run else UnitPublished.of(unit, seconds))
            tell(pipes, JobDone(time.monotonic() - started, peak_mb()))
            return 0
        except BaseException as error:
            tell(pipes, JobFailed.of(as_lake_error(error) or error))
            raise


def spark_dataflow() -> Dataflow:
    """Spark as the step was submitted to it."""
    from pyspark.sql import SparkSession

    from spark_resources.dataflow.cluster import SparkDataflow

    return SparkDataflow(SparkSession.builder.getOrCreate())


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--region")
    return parser.parse_known_args(arguments)[0]


def _await(s3: Any, context: PipesParams, seconds: float = _CONTEXT_SECONDS) -> None:
    """What to do may be told a moment after the step was started; if not, nobody waits for it."""
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

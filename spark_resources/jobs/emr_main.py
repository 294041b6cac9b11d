"""A job on EMR's driver: reads what to do from S3, does it, and tells Dagster by Pipes."""

import argparse
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn

import msgspec
from dagster_pipes import (
    PipesCliArgsParamsLoader,
    PipesContext,
    PipesParams,
    PipesParamsLoader,
    PipesS3ContextLoader,
    PipesS3MessageWriter,
    PipesS3MessageWriterChannel,
    open_dagster_pipes,
)

from lake.aws.access import AwsAccess
from lake.aws.refusals import Doing, aws_call, recognised
from lake.work.dataflow import Dataflow
from spark_resources.jobs.lake_job import LakeJob, preview_job, run_job
from spark_resources.jobs.messages import (
    JobDone,
    JobFailed,
    Message,
    UnitPlanned,
    UnitPublished,
    as_json,
)

# The job's own description is written when the id of its cluster is known, after it was asked for.
_CONTEXT_SECONDS = 600.0
_SEND_SECONDS = 1.0
RESEND_SECONDS = (5.0, 15.0, 60.0, 120.0)
_SIGN_SECONDS = 30.0
# EMR looks at this file to tell a cluster that works without YARN from an idle one.
_BUSY = Path("/emr/metricscollector/isbusy")


@dataclass(frozen=True, slots=True)
class PipesListener:
    """Tells Dagster's log what a run has to say."""

    pipes: PipesContext

    def log(self, message: str) -> None:
        self.pipes.log.info(message)

    def warn(self, message: str) -> None:
        self.pipes.log.warning(message)


class PatientWriter(PipesS3MessageWriter):
    """Sends what could not be sent again, in order; the official one falls silent for ever."""

    def make_channel(self, params: PipesParams) -> PipesS3MessageWriterChannel:
        return _PatientChannel(
            self._client, params["bucket"], params["key_prefix"], interval=self.interval
        )


class _PatientChannel(PipesS3MessageWriterChannel):
    def upload_messages_chunk(self, payload: IO[str], index: int) -> None:
        body = payload.read()
        for wait in RESEND_SECONDS:
            try:
                super().upload_messages_chunk(StringIO(body), index)
                return
            except Exception:
                time.sleep(wait)
        super().upload_messages_chunk(StringIO(body), index)


def main(arguments: list[str], dataflow: Callable[[], Dataflow] | None = None) -> int:
    """Carry out the job that the arguments lead to; the exit code is what EMR goes by."""
    region = _parsed(arguments).region
    s3 = AwsAccess(region=region).client("s3")
    params: PipesParamsLoader = PipesCliArgsParamsLoader()  # type: ignore[no-untyped-call]
    _await(s3, params.load_context_params())
    started = time.monotonic()
    with (
        _interruptible(),
        _busy(),
        open_dagster_pipes(
            params_loader=params,
            context_loader=PipesS3ContextLoader(client=s3),
            message_writer=PatientWriter(client=s3, interval=_SEND_SECONDS),
        ) as pipes,
    ):
        try:
            job = msgspec.convert(pipes.extras["job"], LakeJob)
            flow, listener = dataflow or spark_dataflow, PipesListener(pipes)
            if job.dry_run:
                for planned in preview_job(job, flow, listener):
                    _tell(pipes, UnitPlanned(planned))
            else:
                for unit in run_job(job, flow, listener):
                    _tell(pipes, UnitPublished.of(unit, time.monotonic() - started))
            _tell(pipes, JobDone(time.monotonic() - started, _peak_mb()))
            return 0
        except BaseException as error:
            _tell(pipes, JobFailed.of(recognised(error) or error))
            raise


def spark_dataflow() -> Dataflow:
    """Spark as the step was submitted to it."""
    from pyspark.sql import SparkSession

    from spark_resources.jobs.dataflow import SparkDataflow

    return SparkDataflow(SparkSession.builder.getOrCreate())


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--region")
    return parser.parse_known_args(arguments)[0]


def _tell(pipes: PipesContext, message: Message) -> None:
    pipes.report_custom_message(as_json(message))


def _await(s3: Any, context: PipesParams, seconds: float = _CONTEXT_SECONDS) -> None:
    """What to do may be told a moment after the step was started; if not, nobody waits for it."""
    bucket, key = context["bucket"], context["key"]
    until = time.monotonic() + seconds
    while True:
        try:
            with aws_call(Doing.DOWNLOAD, f"{bucket}/{key}"):
                s3.get_object(Bucket=bucket, Key=key)["Body"].close()
            return
        except s3.exceptions.NoSuchKey:
            if time.monotonic() > until:
                raise
        time.sleep(2)


@contextmanager
def _interruptible() -> Iterator[None]:
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
def _busy() -> Iterator[None]:
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


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

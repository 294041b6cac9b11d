"""A job on EMR's driver: reads what to do from S3, does it, and tells Dagster by Pipes."""

import argparse
import time
from collections.abc import Callable
from typing import Any

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
from spark_resources.workers.driver import busy, interruptible, peak_mb
from spark_resources.workers.job_events import (
    JobDone,
    JobFailed,
    PatientWriter,
    PipesListener,
    UnitPlanned,
    UnitPublished,
    tell,
)

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

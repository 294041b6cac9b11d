"""A job on EMR: its description and its messages are in the bucket of the lake."""

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dagster_pipes import (
    PipesCliArgsParamsLoader,
    PipesParams,
    PipesParamsLoader,
    PipesS3ContextLoader,
)

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import aws_call
from eventlake.runs.context import Dataflow
from spark_resources.workers.job_events import PatientWriter
from spark_resources.workers.remote_job import run_remote_job

_TOUCH_SECONDS = 30.0
# EMR takes a cluster without YARN applications for idle unless this file changes.
_BUSY = Path("/emr/metricscollector/isbusy")
# The description of the job is written when the id of its cluster is known.
_CONTEXT_SECONDS = 600.0
_SEND_SECONDS = 1.0


def main(arguments: list[str], dataflow: Callable[[], Dataflow] | None = None) -> int:
    """Run the job that the arguments point to; EMR uses the exit code."""
    region = _parsed(arguments).region
    s3 = AwsAccess(region=region).client("s3")
    params: PipesParamsLoader = PipesCliArgsParamsLoader()  # type: ignore[no-untyped-call]
    _await(s3, params.load_context_params())
    writer = PatientWriter(client=s3, interval=_SEND_SECONDS)
    with busy():
        return run_remote_job(params, PipesS3ContextLoader(client=s3), writer, dataflow)


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

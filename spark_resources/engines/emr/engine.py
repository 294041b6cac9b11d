"""Spark on Amazon EMR, in the user's own account."""

from collections.abc import Iterator
from typing import Any

from eventlake.runs.context import Listener
from spark_resources.dataflow.job import LakeJob
from spark_resources.engines.base import SparkEngine
from spark_resources.engines.emr.client import Pace
from spark_resources.engines.emr.run import EmrRun


class EmrEngine(SparkEngine):
    """Syncs are steps on the cluster of the settings, replays have clusters of their own."""

    python: str = "3.11"  # of the cluster's Pythons, the one that Spark is to use

    def run(self, job: LakeJob, listener: Listener) -> Iterator[Any]:
        run = EmrRun(job, listener, self.python, self.pace())
        return run.planned() if job.dry_run else run.units()

    def pace(self) -> Pace:
        return Pace()

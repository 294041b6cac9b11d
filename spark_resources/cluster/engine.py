"""Spark on a standalone cluster of the user's own."""

from collections.abc import Generator

from eventlake.lake import Lake
from eventlake.runs.context import Listener, Published
from eventlake.runs.dry_run import PlannedUnit
from spark_resources.cluster.session import ClusterSession
from spark_resources.engine import SparkEngine
from spark_resources.java import require_java
from spark_resources.jobs.lake_job import LakeJob, preview_job, run_job


class ClusterEngine(SparkEngine):
    """The driver is in this process, and each run an application, which ends with it."""

    def run(self, job: LakeJob, listener: Listener) -> Generator[Published, None, None]:
        with _session(job, listener) as session:
            yield from run_job(job, session.dataflow, listener)

    def preview(self, job: LakeJob, listener: Listener) -> Generator[PlannedUnit, None, None]:
        with _session(job, listener) as session:
            yield from preview_job(job, session.dataflow, listener)

    def check(self) -> None:
        require_java()


def _session(job: LakeJob, listener: Listener) -> ClusterSession:
    storage = Lake.open(job.settings).for_source(job.source).storage
    return ClusterSession(job.settings, storage, listener)

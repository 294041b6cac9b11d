"""The data flow on a cluster, whose machines may go while it runs."""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from eventlake.load.blobs import Shares
from eventlake.load.dedup import Deduped, DedupJob
from eventlake.load.record_log import LogJob, NotLoaded
from eventlake.load.seen import Seen
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.write import LoadedFile, LoadJob
from spark_resources.cluster.executors import Executors
from spark_resources.jobs.dataflow import SparkDataflow


class ClusterDataflow(SparkDataflow):
    """Spark repeats what was lost with a machine; if all are lost, somebody has to be told."""

    def __init__(self, session: SparkSession, executors: Executors) -> None:
        super().__init__(session)
        self._executors = executors

    def stage(self, job: StageJob, tasks: Sequence[Sequence[RawFile]]) -> list[Seen]:
        with self._executors.at_work():
            return super().stage(job, tasks)

    def dedup(self, job: DedupJob) -> list[Deduped]:
        with self._executors.at_work():
            return super().dedup(job)

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        with self._executors.at_work():
            return super().load(job, shares)

    def log(self, job: LogJob, tasks: Sequence[Sequence[NotLoaded]]) -> None:
        with self._executors.at_work():
            super().log(job, tasks)

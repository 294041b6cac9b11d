"""The EMR engine: syncs are steps on a standing cluster, each replay has a cluster of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
from pydantic import Field

from eventlake.aws.access import AwsAccess
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError
from eventlake.runs.context import Listener
from spark_resources.dataflow.job import LakeJob
from spark_resources.engines.base import SparkEngine
from spark_resources.engines.emr.client import ENDED_CLUSTER, EmrClient, cluster_reason
from spark_resources.engines.emr.cluster import Cluster, Json, cluster_like
from spark_resources.engines.emr.logs import LogFolder
from spark_resources.engines.emr.step import (
    properties_of,
    refuse_unusable,
    spark_step,
    target_of,
    unusable,
)
from spark_resources.engines.remote.run import RemoteRun
from spark_resources.engines.remote.service import JobStatus, Pace, RemoteJob, RemoteService
from spark_resources.shipping import ship

_ROLE = ("iam_role_arn", "external_id")


def without_our_role(job: LakeJob, access: AwsAccess) -> LakeJob:
    """The job without the role of this process, since jobs on AWS have one; with the region."""
    region = access.region_name()
    settings = {**job.settings_json, "region": region}
    settings["sources"] = [
        {**source, "region": region, **dict.fromkeys(_ROLE)} for source in settings["sources"]
    ]
    settings.update(dict.fromkeys(_ROLE))
    return msgspec.structs.replace(job, settings_json=settings)


@dataclass
class Emr(RemoteService):
    """Steps on EMR for one run."""

    access: AwsAccess
    python: str
    conf: Mapping[str, str]
    listener: Listener
    pace: Pace
    name = "EMR"
    _own: str | None = field(default=None, init=False)  # the cluster of a replay
    _looked: float = field(default=0.0, init=False)  # at the cluster
    _logs: LogFolder | None = field(default=None, init=False)

    @cached_property
    def client(self) -> EmrClient:
        return EmrClient(self.access)

    def handed_over(self, job: LakeJob) -> LakeJob:
        return without_our_role(job, self.access)

    def submit(self, job: LakeJob, arguments: Sequence[str]) -> RemoteJob:
        """A step on the standing cluster, or of a replay on a cluster like it."""
        standing = self._cluster_of(job)
        step = self._step(standing, job, arguments)
        if job.window is None or job.dry_run:
            return self._job(standing, standing.id, self.client.add_step(standing.id, step))
        name = f"datalake replay {job.source.slug} {job.run_id}"
        tags = {"datalake-source": job.source.id, "datalake-run": job.run_id}
        own = self._own = self.client.start_cluster(cluster_like(standing, name, step, tags))
        try:
            return self._job(standing, own, self.client.only_step(own))
        except BaseException:
            self._end_own_cluster()
            raise

    def _job(self, standing: Cluster, cluster_id: str, step_id: str) -> RemoteJob:
        self._looked = self.pace.now()
        place = f"EMR cluster {cluster_id} (step {step_id})"
        if standing.log_uri is None:
            none = "Its cluster keeps no logs: set its LogUri"
            return RemoteJob(step_id, cluster_id, place, none)
        folder = f"{standing.log_uri}/{cluster_id}/steps/{step_id}"
        self._logs = LogFolder(self.access, folder)
        return RemoteJob(step_id, cluster_id, place, f"Its logs are in {folder}")

    def status(self, remote: RemoteJob) -> JobStatus:
        """The status of a step; it has also ended if its cluster has, which is looked at rarely."""
        step = self.client.step(remote.cluster_id, remote.id)
        due = self.pace.now() - self._looked >= self.pace.cluster_seconds
        if step.completed or not (step.ended or due):
            return JobStatus(step.state, step.ended, step.reason)
        self._looked = self.pace.now()
        cluster = self.client.describe(remote.cluster_id)
        if cluster.state not in ENDED_CLUSTER:
            return JobStatus(step.state, step.ended, step.reason)
        reasons = [step.reason, f"Its cluster is {cluster.state}.", cluster_reason(cluster)]
        state = step.state if step.ended else "CANCELLED"
        return JobStatus(state, True, " ".join(filter(None, reasons)))

    def cancel(self, remote: RemoteJob, *, kill: bool) -> None:
        self.client.cancel(remote.cluster_id, remote.id, kill=kill)

    def log_tail(self, remote: RemoteJob) -> list[str]:
        return self._logs.tail(self.pace.sleep) if self._logs else []

    def release(self, remote: RemoteJob) -> None:
        self._end_own_cluster()

    def _end_own_cluster(self) -> None:
        if self._own is None:
            return
        try:
            self.client.end_cluster(self._own)
            self.listener.log(f"EMR cluster {self._own} is being terminated")
        except LakeError as error:  # it ends by itself when its step has ended
            self.listener.warn(f"EMR cluster {self._own} could not be terminated: {error}")

    def _cluster_of(self, job: LakeJob) -> Cluster:
        cluster_id = job.source.emr_cluster_id
        if cluster_id is None:
            raise unusable(
                f"it is missing for source {job.source.slug}. Set it at the top of lake.yaml "
                "or for the source, as j-1A2B3C4D5E6F7."
            )
        cluster = self.client.describe_whole(cluster_id)
        # A replay uses the cluster only as a template, but an ended one may no longer exist.
        refuse_unusable(cluster)
        return cluster

    def _step(self, cluster: Cluster, job: LakeJob, arguments: Sequence[str]) -> Json:
        storage = Lake.open(job.settings).for_source(job.source).storage
        shipped = ship(storage, target_of(cluster, self.python), self.listener)
        region = self.access.region_name()
        name = f"datalake {job.kind} {job.source.slug} {job.run_id}"
        options = [*(("--region", region) if region else ()), *arguments]
        properties = properties_of(cluster, self.python, self.conf)
        return spark_step(name, shipped, properties, options)


class EmrEngine(SparkEngine):
    """Syncs are steps on the cluster of the settings; each replay has its own cluster."""

    cluster_id: str | None = Field(default=None, description="The cluster of syncs: j-…")
    region: str | None = Field(default=None, description="AWS region of the cluster.")
    role_arn: str | None = Field(default=None, description="The role that submits steps.")
    python: str = Field(default="3.11", description="Version of Python on the cluster.")
    conf: dict[str, str] = Field(default={}, description="More settings of Spark.")

    def settings(self) -> dict[str, Any]:
        return {
            "emr_cluster_id": self.cluster_id,
            "region": self.region,
            "iam_role_arn": self.role_arn,
        }

    def run(self, job: LakeJob, listener: Listener) -> Iterator[Any]:
        job, pace = self.configured(job), self.pace()
        service = Emr(AwsAccess.of(job.source), self.python, self.conf, listener, pace)
        return RemoteRun(job, listener, service, pace).run()

    def pace(self) -> Pace:
        return Pace()

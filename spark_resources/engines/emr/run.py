"""The EMR engine, and one run on EMR: submit the job, follow its messages, report how it ended."""

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import msgspec
from pydantic import Field

from eventlake.aws.access import AwsAccess
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.errors import LakeError, UsageError
from eventlake.runs.context import Listener, Published, now
from eventlake.runs.dry_run import PlannedUnit
from eventlake.runs.failures import close_failed, failure_of, failure_reported
from eventlake.runs.open_runs import OpenRun, report_failure
from eventlake.runs.publish import catch_up
from eventlake.state.lease import myself, renewed
from eventlake.state.manifest import read_manifest
from eventlake.state.report import RunFacts
from eventlake.state.source_state import read_state
from eventlake.storage.documents import decode, encode
from spark_resources.dataflow.job import LakeJob
from spark_resources.engines.base import SparkEngine
from spark_resources.engines.emr.client import EmrClient, Pace
from spark_resources.engines.emr.cluster import Cluster, Json, cluster_like, slots_of
from spark_resources.engines.emr.pipes import Following, PipesFolder
from spark_resources.engines.emr.step import (
    EmrStep,
    EmrSteps,
    refuse_unusable,
    spark_step,
    unusable,
)
from spark_resources.shipping import Target, machines, ship
from spark_resources.workers.job_events import JobFailed, Message, UnitPlanned, UnitPublished

_ROLE = ("iam_role_arn", "external_id")


def job_for_cluster(job: LakeJob, access: AwsAccess) -> LakeJob:
    """The job without our role, since a cluster has its own, and with the region."""
    region = access.region_name()
    settings = {**job.settings_json, "region": region}
    settings["sources"] = [
        {**source, "region": region, **dict.fromkeys(_ROLE)} for source in settings["sources"]
    ]
    settings.update(dict.fromkeys(_ROLE))
    return msgspec.structs.replace(job, settings_json=settings)


@contextmanager
def shown_as_open(lake: Lake, run: RunFacts, before: int) -> Iterator[ExitStack]:
    """Register the run as open until the job does so itself: close the yielded stack then.

    If this process dies meanwhile, the next run finds the entry and reports the run as failed.
    """
    storage, path = lake.storage, paths.open_run(run.source_id, run.run_id)

    def mine() -> bytes:
        return encode(OpenRun(run, before, myself()))

    def renewal(found: bytes | None) -> bytes | None:
        """None if the job has taken over or is done."""
        holder = decode(found, OpenRun, path).holder if found else None
        return mine() if holder and holder.is_here and holder.pid == os.getpid() else None

    storage.write(path, mine())
    with ExitStack() as until_begun:
        until_begun.enter_context(renewed(lambda: storage.update(path, renewal), path))
        yield until_begun


def report_error_of_job(lake: Lake, run: RunFacts, before: int, error: BaseException) -> None:
    """Report a job that has sent its error; it has also written its report, if it could."""
    opened = paths.open_run(run.source_id, run.run_id)
    with suppress(LakeError, OSError):
        if run.replay and isinstance(error, UsageError):
            lake.storage.delete(opened)  # refused before it began: not a failed run
        if not lake.storage.exists(opened):
            return
    report_ended(lake, run, before, error)


def report_ended(lake: Lake, run: RunFacts, before: int, error: BaseException) -> None:
    """Report the failure of a job that has ended."""
    catching_up = partial(catch_up, lake.storage, lake.catalog, run.source_id)
    close_failed(lake.storage, lake.catalog, run, before, failure_of(error), catching_up)


def report_left(lake: Lake, run: RunFacts, before: int, error: BaseException) -> None:
    """Report the failure of a job that may still be running.

    Its staging files stay, since it may still commit them: the next run finds it dead or finished.
    """
    with suppress(LakeError, OSError):
        report_failure(lake.storage, run, before, now(), failure_of(error))


@dataclass
class EmrRun:
    """One run of a job on EMR."""

    job: LakeJob
    listener: Listener
    python: str
    pace: Pace
    emr_step: EmrStep | None = field(default=None, init=False)

    @cached_property
    def lake(self) -> Lake:
        return Lake.open(self.job.settings).for_source(self.job.source)

    @cached_property
    def access(self) -> AwsAccess:
        return AwsAccess.of(self.job.source)

    @cached_property
    def pipes(self) -> PipesFolder:
        return PipesFolder(self.lake.storage, self.job.run_id)

    @cached_property
    def steps(self) -> EmrSteps:
        return EmrSteps(EmrClient(self.access), self.pace, self.listener)

    @cached_property
    def following(self) -> Following:
        return Following(self.pipes, self.steps, self.listener, self.pace)

    def units(self) -> Iterator[Published]:
        """Each unit of work as soon as the job has published it."""
        with failure_reported(self.lake.storage, self.lake.catalog, self.job.facts()):
            before = read_state(self.lake.storage, self.job.source.id).manifest
            try:
                with (
                    shown_as_open(self.lake, self.job.facts(), before) as until_begun,
                    closing(self._events()) as events,
                ):
                    for message in events:
                        if self.pipes.opened:
                            until_begun.close()
                        if isinstance(message, UnitPublished):
                            self.listener.log(str(message))
                            yield self._published(message)
            except BaseException as error:
                self._report(error, before)
                raise

    def planned(self) -> Iterator[PlannedUnit]:
        """What each unit of work would do. Always a step on the cluster of the settings."""
        with closing(self._events()) as events:
            for message in events:
                if isinstance(message, UnitPlanned):
                    yield message.unit

    def _events(self) -> Generator[Message | None, None, None]:
        """The events of the job; raises the error that it ends with.

        Closing the generator before the end cancels the job.
        """
        try:
            with self._submitted() as emr_step:
                self.listener.log(f"The job is on {emr_step}")
                yield from self.following.events(emr_step, self.access)
            if isinstance(self.following.ended, JobFailed):
                raise self.following.ended.error()
        finally:
            with suppress(LakeError, OSError):
                self.pipes.remove()

    @contextmanager
    def _submitted(self) -> Iterator[EmrStep]:
        standing = self._standing()
        step = self._step(standing)
        if self.job.window is None or self.job.dry_run:
            self._hand_over(standing.id)
            with self.steps.standing(standing, step) as self.emr_step:
                yield self.emr_step
            return
        name = f"datalake replay {self.job.source.slug} {self.job.run_id}"
        tags = {"datalake-source": self.job.source.id, "datalake-run": self.job.run_id}
        request = cluster_like(standing, name, step, tags)
        with self.steps.own(standing, request, self._hand_over) as self.emr_step:
            yield self.emr_step

    def _hand_over(self, cluster_id: str) -> None:
        """Write the description of the job, which waits for it, when its cluster is known."""
        self.job = msgspec.structs.replace(self.job, emr_cluster_id=cluster_id)
        self.pipes.hand_over(job_for_cluster(self.job, self.access))

    def _standing(self) -> Cluster:
        cluster_id = self.job.source.emr_cluster_id
        if cluster_id is None:
            raise unusable(
                f"it is missing for source {self.job.source.slug}. Set it at the top of lake.yaml "
                "or for the source, as j-1A2B3C4D5E6F7."
            )
        cluster = self.steps.emr.describe_whole(cluster_id)
        # A replay uses the cluster only as a template, but an ended one may no longer exist.
        refuse_unusable(cluster)
        return cluster

    def _step(self, cluster: Cluster) -> Json:
        found = set(machines(cluster.instance_types))
        if len(found) > 1:
            raise unusable(
                f"EMR cluster {cluster.id} has nodes with different processors "
                f"({', '.join(sorted(cluster.instance_types))}). Use one kind of nodes: all "
                "Graviton, or none."
            )
        target = Target(found.pop() if found else "x86_64", self.python)
        region = self.access.region_name()
        arguments = [*(("--region", region) if region else ()), *self.pipes.arguments()]
        name = f"datalake {self.job.kind} {self.job.source.slug} {self.job.run_id}"
        shipped = ship(self.lake.storage, target, self.listener)
        return spark_step(name, shipped, self.python, slots_of(cluster), arguments)

    def _published(self, message: UnitPublished) -> Published:
        source_id = self.job.source.id
        manifest = read_manifest(self.lake.storage, source_id, message.manifest)
        if manifest is None:
            raise LakeError(
                f"The job reported manifest {message.manifest} of source {source_id} as published, "
                "but it is not in the lake. Nothing may delete below segment-data/_state."
            )
        return Published(manifest, message.report, message.checks)

    def _report(self, error: BaseException, before: int) -> None:
        """Report the failure, unless the job has done so or refused to begin."""
        if isinstance(self.following.ended, JobFailed):
            report = report_error_of_job
        else:
            report = report_ended if self._is_over() else report_left
        report(self.lake, self.job.facts(), before, error)

    def _is_over(self) -> bool:
        """Whether the job has ended; False if that is not known."""
        try:
            return self.emr_step is None or self.steps.has_ended(self.emr_step)
        except LakeError:
            return False


class EmrEngine(SparkEngine):
    """Syncs are steps on the cluster of the settings; each replay has its own cluster."""

    cluster_id: str | None = Field(default=None, description="The cluster of syncs: j-…")
    region: str | None = Field(default=None, description="AWS region of the cluster.")
    role_arn: str | None = Field(default=None, description="The role that submits steps.")
    python: str = Field(default="3.11", description="Version of Python on the cluster.")

    def settings(self) -> dict[str, Any]:
        return {
            "emr_cluster_id": self.cluster_id,
            "region": self.region,
            "iam_role_arn": self.role_arn,
        }

    def run(self, job: LakeJob, listener: Listener) -> Iterator[Any]:
        job = self.configured(job)
        run = EmrRun(job, listener, self.python, self.pace())
        return run.planned() if job.dry_run else run.units()

    def pace(self) -> Pace:
        return Pace()

"""One run on EMR, seen from Dagster: submitted, listened to, and reported whatever ends it."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial

import msgspec

from lake import paths
from lake.aws.access import AwsAccess
from lake.aws.refusals import recognised
from lake.errors import LakeError, ServiceTrouble, UsageError
from lake.lake import Lake
from lake.state.codec import decode, encode
from lake.state.holder import myself, renewed
from lake.state.manifest import read_manifest
from lake.state.source_state import read_state
from lake.work.dry_run import PlannedUnit
from lake.work.failing import close_failed, failure_of, failure_told
from lake.work.open_runs import OpenRun, report_failure
from lake.work.publish import catch_up
from lake.work.run_context import Listener, Published, now
from spark_resources.emr.capacity import slots_of
from spark_resources.emr.client import EmrClient
from spark_resources.emr.cluster_like import Cluster, Json, cluster_like
from spark_resources.emr.errors import StepFailed
from spark_resources.emr.job_abroad import abroad
from spark_resources.emr.logs import StepLogs
from spark_resources.emr.pace import Pace
from spark_resources.emr.pipes import PipesFolder
from spark_resources.emr.place import Place, Places, refuse_unusable, unusable
from spark_resources.emr.shipping.environment import Target, machines
from spark_resources.emr.shipping.ship import ship
from spark_resources.emr.step import spark_step
from spark_resources.jobs.lake_job import LakeJob
from spark_resources.jobs.messages import JobDone, JobFailed, Message, UnitPlanned, UnitPublished


@dataclass
class EmrRun:
    """A job, and where it is by now."""

    job: LakeJob
    listener: Listener
    python: str
    pace: Pace
    place: Place | None = field(default=None, init=False)
    ended: JobDone | JobFailed | None = field(default=None, init=False)

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
    def places(self) -> Places:
        return Places(EmrClient(self.access), self.pace, self.listener)

    def units(self) -> Iterator[Published]:
        """Each unit of work as soon as the job has published it."""
        with failure_told(self.lake.storage, self.lake.catalog, self.job.facts()):
            yield from self._units(read_state(self.lake.storage, self.job.source.id).manifest)

    def _units(self, before: int) -> Iterator[Published]:
        try:
            with self._known(before) as begun, self._placed() as place:
                self.listener.log(f"The job is on {place}")
                for message in self._heard(place):
                    if self.pipes.opened:
                        begun.close()
                    if isinstance(message, UnitPublished):
                        self.listener.log(str(message))
                        yield self._published(message)
            if isinstance(self.ended, JobFailed):
                raise self.ended.error()
        except BaseException as error:
            self._report(error, before)
            raise
        finally:
            with suppress(LakeError, OSError):
                self.pipes.remove()

    def planned(self) -> Iterator[PlannedUnit]:
        """What each unit of work would do; a step on the standing cluster, also for a replay."""
        try:
            with self._placed() as place:
                for message in self._heard(place):
                    if isinstance(message, UnitPlanned):
                        yield message.unit
            if isinstance(self.ended, JobFailed):
                raise self.ended.error()
        finally:
            with suppress(LakeError, OSError):
                self.pipes.remove()

    @contextmanager
    def _known(self, before: int) -> Iterator[ExitStack]:
        """Until the job itself does, this process shows that there is a run; closed when it does.

        Should it die meanwhile, whoever comes next finds the run and reports it as failed.
        """
        facts = self.job.facts()
        path = paths.open_run(facts.source_id, facts.run_id)

        def mine() -> bytes:
            return encode(OpenRun(facts, before, myself()))

        def renewal(found: bytes | None) -> bytes | None:
            """Unless the job has taken over, or is even done."""
            holder = decode(found, OpenRun, path).holder if found else None
            return mine() if holder and holder.is_here and holder.pid == os.getpid() else None

        storage = self.lake.storage
        storage.write(path, mine())
        with ExitStack() as until_begun:
            until_begun.enter_context(renewed(lambda: storage.update(path, renewal), path))
            yield until_begun

    @contextmanager
    def _placed(self) -> Iterator[Place]:
        standing = self._standing()
        step = self._step(standing)
        if self.job.window is None or self.job.dry_run:
            self._hand_over(standing.id)
            with self.places.standing(standing, step) as self.place:
                yield self.place
            return
        name = f"datalake replay {self.job.source.slug} {self.job.run_id}"
        tags = {"datalake-source": self.job.source.id, "datalake-run": self.job.run_id}
        asked = cluster_like(standing, name, step, tags)
        with self.places.own(standing, asked, self._hand_over) as self.place:
            yield self.place

    def _hand_over(self, cluster_id: str) -> None:
        """Tell the job what to do as soon as it is known where; it waits for this."""
        self.job = msgspec.structs.replace(self.job, emr_cluster_id=cluster_id)
        self.pipes.hand_over(abroad(self.job, self.access))

    def _standing(self) -> Cluster:
        cluster_id = self.job.source.emr_cluster_id
        if cluster_id is None:
            raise unusable(
                f"it is missing for source {self.job.source.slug}. Set it at the top of lake.yaml "
                "or for the source, as j-1A2B3C4D5E6F7."
            )
        cluster = self.places.emr.describe_whole(cluster_id)
        # A replay needs the cluster as a model only, but one that has ended may be long gone.
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

    def _heard(self, place: Place) -> Iterator[Message | None]:
        """What the job says until it has said how it ended; None where it said nothing new."""
        asked = looked = self.pace.now()
        step_ended = None
        while True:
            yield from self._messages()
            if self.ended is not None and (self.pipes.closed or step_ended):
                return
            if step_ended is not None:
                raise self._silent(place, step_ended.state, step_ended.reason)
            moment = self.pace.now()
            if moment - asked >= self.pace.step_seconds:
                asked = moment
                look_at_cluster = moment - looked >= self.pace.cluster_seconds
                looked = moment if look_at_cluster else looked
                try:
                    status = self.places.status(place, look_at_cluster)
                except ServiceTrouble as trouble:  # the step goes on, and so does the wait
                    self.listener.warn(str(trouble))
                    continue
                if status.ended:
                    step_ended = status  # one more look: it may have spoken just before
                    continue
            yield None
            self.pace.sleep(self.pace.messages_seconds)

    def _messages(self) -> Iterator[Message]:
        try:
            for message in self.pipes.messages(self.listener):
                if isinstance(message, JobDone | JobFailed):
                    self.ended = message
                if isinstance(message, JobDone):
                    self.listener.log(str(message))
                yield message
        except ServiceTrouble as trouble:
            self.listener.warn(str(trouble))

    def _published(self, message: UnitPublished) -> Published:
        source_id = self.job.source.id
        manifest = read_manifest(self.lake.storage, source_id, message.manifest)
        if manifest is None:
            raise LakeError(
                f"The job says it has published manifest {message.manifest} of source {source_id}, "
                "but it is not in the lake. Nothing may delete below segment-data/_state."
            )
        return Published(manifest, message.report, message.checks)

    def _silent(self, place: Place, state: str, reason: str) -> LakeError:
        """The error of a job that ended without a word: what its log ends with, if we know it."""
        lines = StepLogs(self.access, place.logs).tail(self.pace.sleep) if place.logs else []
        if lines:
            self.listener.warn("\n".join([f"The end of the log of {place}:", *lines]))
        failed = StepFailed(str(place), state, reason, lines, place.logs)
        return recognised(RuntimeError("\n".join(lines))) or failed

    def _report(self, error: BaseException, before: int) -> None:
        """A failed report, unless the job has written one itself or refused to begin.

        As long as the job may still be at work, nothing of what it has staged may go: it could
        yet commit it. Then the next run finds it dead, or finished.
        """
        storage, catalog, facts = self.lake.storage, self.lake.catalog, self.job.facts()
        with suppress(LakeError, OSError):
            if isinstance(self.ended, JobFailed):
                opened = paths.open_run(facts.source_id, facts.run_id)
                if facts.replay and isinstance(error, UsageError):
                    storage.delete(opened)  # whoever asked for it is told
                if not storage.exists(opened):
                    return
            elif not self._is_over():
                report_failure(storage, facts, before, now(), failure_of(error))
                return
        catching_up = partial(catch_up, storage, catalog, facts.source_id)
        close_failed(storage, catalog, facts, before, failure_of(error), catching_up)

    def _is_over(self) -> bool:
        """Whether the job can do nothing more; if that cannot be found out, it can."""
        try:
            return self.place is None or self.places.has_ended(self.place)
        except LakeError:
            return False

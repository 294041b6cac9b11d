"""One run of a job on a service: hand over, listen, report how it ended, cancel."""

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial

import msgspec

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
from spark_resources.engines.remote.following import Following
from spark_resources.engines.remote.pipes import PipesFolder
from spark_resources.engines.remote.service import Pace, RemoteJob, RemoteService
from spark_resources.workers.job_events import JobFailed, Message, UnitPlanned, UnitPublished


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
class RemoteRun:
    """One run of a job on a service."""

    job: LakeJob
    listener: Listener
    service: RemoteService
    pace: Pace
    remote: RemoteJob | None = field(default=None, init=False)

    @cached_property
    def lake(self) -> Lake:
        return Lake.open(self.job.settings).for_source(self.job.source)

    @cached_property
    def pipes(self) -> PipesFolder:
        return PipesFolder(self.lake.storage, self.job.run_id)

    @cached_property
    def following(self) -> Following:
        return Following(self.pipes, self.service, self.listener, self.pace)

    def run(self) -> Iterator[Published] | Iterator[PlannedUnit]:
        """Each unit of work as soon as the job has published it, or planned it in a dry run."""
        return self._planned() if self.job.dry_run else self._published()

    def _published(self) -> Iterator[Published]:
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
                            yield self._from_lake(message)
            except BaseException as error:
                self._report(error, before)
                raise

    def _planned(self) -> Iterator[PlannedUnit]:
        with closing(self._events()) as events:
            for message in events:
                if isinstance(message, UnitPlanned):
                    yield message.unit

    def _events(self) -> Generator[Message | None, None, None]:
        """The events of the job; raises the error that it ends with.

        Closing the generator before the end cancels the job.
        """
        try:
            with self._submitted() as remote:
                self.listener.log(f"The job is on {remote}")
                yield from self.following.events(remote)
            if isinstance(self.following.ended, JobFailed):
                raise self.following.ended.error()
        finally:
            with suppress(LakeError, OSError):
                self.pipes.remove()

    @contextmanager
    def _submitted(self) -> Iterator[RemoteJob]:
        """Submit the job and hand it over; cancel it if the block fails."""
        remote = self.remote = self.service.submit(self.job, self.pipes.arguments())
        try:
            self.job = msgspec.structs.replace(self.job, emr_cluster_id=remote.cluster_id)
            self.pipes.hand_over(self.service.handed_over(self.job))
            yield remote
        except BaseException:
            with suppress(LakeError):
                self._cancel(remote)
            raise
        finally:
            try:
                self.service.release(remote)
            except LakeError as error:
                self.listener.warn(str(error))

    def _cancel(self, remote: RemoteJob) -> None:
        """Interrupt the job, which then reports its error; kill it if it does not end."""
        if self.service.status(remote).ended:
            return
        self.listener.log(f"Cancelling the job on {remote}")
        self.service.cancel(remote, kill=False)
        until = self.pace.now() + self.pace.cancel_seconds
        while not self.service.status(remote).ended:
            if self.pace.now() > until:
                self.service.cancel(remote, kill=True)
                return
            self.pace.sleep(1.0)

    def _from_lake(self, message: UnitPublished) -> Published:
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
            return self.remote is None or self.service.status(self.remote).ended
        except LakeError:
            return False

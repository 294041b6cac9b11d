"""Follow a remote job: its messages, its status, and what is known if it ends without a word."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eventlake.clouds import as_lake_error
from eventlake.rules.errors import LakeError, ServiceTrouble
from eventlake.runs.context import Listener
from spark_resources.engines.remote.pipes import PipesFolder
from spark_resources.engines.remote.service import JobStatus, Pace, RemoteJob, RemoteService
from spark_resources.workers.job_events import JobDone, JobFailed, Message

_IN_MESSAGE = 5


class EndedWithoutReport(LakeError):
    """A job ended, but did not report that it was done."""

    def __init__(
        self, service: str, remote: RemoteJob, status: JobStatus, logs: Sequence[str]
    ) -> None:
        parts = [f"The job on {remote} ended as {status.state} without reporting that it was done."]
        if status.reason:
            parts.append(f"{service} says: {status.reason.rstrip('.')}.")
        if logs:
            parts.append(f"The end of its log: {' | '.join(logs[-_IN_MESSAGE:])}.")
        parts.append(f"{remote.logs}. What was published stays; the next run continues from there.")
        super().__init__(" ".join(parts))


@dataclass
class Following:
    """Follows a job until it reports how it ended, or has ended without a report."""

    pipes: PipesFolder
    service: RemoteService
    listener: Listener
    pace: Pace
    ended: JobDone | JobFailed | None = field(default=None, init=False)

    def events(self, remote: RemoteJob) -> Iterator[Message | None]:
        """The events of the job as they arrive; None if there is nothing new."""
        asked = self.pace.now()
        status: JobStatus | None = None
        while True:
            yield from self._messages()
            if self.ended is not None and (self.pipes.closed or status):
                return
            if status is not None:
                raise self._silent(remote, status)
            moment = self.pace.now()
            if moment - asked >= self.pace.status_seconds:
                asked = moment
                status = self._ended_status(remote)
            if status is None:  # else read once more: the job may have reported just before
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

    def _ended_status(self, remote: RemoteJob) -> JobStatus | None:
        try:
            status = self.service.status(remote)
        except ServiceTrouble as trouble:  # the job goes on, and so does the wait
            self.listener.warn(str(trouble))
            return None
        return status if status.ended else None

    def _silent(self, remote: RemoteJob, status: JobStatus) -> LakeError:
        """The error of a job that ended without a report: a known one from its log, if possible."""
        lines = self.service.log_tail(remote)
        if lines:
            self.listener.warn("\n".join([f"The end of the log of {remote}:", *lines]))
        ended = EndedWithoutReport(self.service.name, remote, status, lines)
        return as_lake_error(RuntimeError("\n".join(lines))) or ended

"""What a service that runs Spark jobs must offer: submit, status, cancel, the end of the log."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from spark_resources.dataflow.job import LakeJob


@dataclass(frozen=True, slots=True)
class RemoteJob:
    """A job that was submitted."""

    id: str
    cluster_id: str  # as in sync reports
    place: str  # for messages: `EMR cluster j-1A2B3C (step s-4D5E6F)`
    logs: str  # for messages: where the logs are, or why there are none

    def __str__(self) -> str:
        return self.place


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The state of a job in the words of its service, and why it ended, if the service knows."""

    state: str
    ended: bool
    reason: str = ""


class RemoteService(ABC):
    """The calls of a service for one run; refusals are errors of the lake."""

    name: str
    """As in messages: EMR."""

    def handed_over(self, job: LakeJob) -> LakeJob:
        """The job as it is there: without what only this process needs or may know."""
        return job

    @abstractmethod
    def submit(self, job: LakeJob, arguments: Sequence[str]) -> RemoteJob:
        """Start the job. It waits for its description, which is written when its id is known."""

    @abstractmethod
    def status(self, remote: RemoteJob) -> JobStatus: ...

    @abstractmethod
    def cancel(self, remote: RemoteJob, *, kill: bool) -> None:
        """Interrupt the job, which then reports its error; with `kill`, do not wait for that."""

    @abstractmethod
    def log_tail(self, remote: RemoteJob) -> list[str]:
        """The last lines of the log of an ended job; empty if there is none."""

    def release(self, remote: RemoteJob) -> None:  # noqa: B027  # most services have nothing
        """Remove what `submit` created besides the job. Called once, when the job is over."""


@dataclass(frozen=True)
class Pace:
    """The seconds between calls. There is no time limit for a run."""

    messages_seconds: float = 2.0
    status_seconds: float = 10.0
    cluster_seconds: float = 60.0
    cancel_seconds: float = 20.0  # for a cancelled job to end by itself

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

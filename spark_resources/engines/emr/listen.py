"""Waiting for a job on EMR: what it tells by Pipes, and what EMR tells of its step."""

import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import as_lake_error
from eventlake.rules.errors import LakeError, ServiceTrouble
from eventlake.runs.context import Listener
from spark_resources.engines.emr.client import Pace, StepStatus
from spark_resources.engines.emr.pipes import PipesFolder
from spark_resources.engines.emr.step import Place, Places
from spark_resources.workers.job_events import JobDone, JobFailed, Message

_FILES = ("stderr", "stdout")
_LINES = 40
_WAITS = 12
_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class StepLogs:
    """The logs of one step."""

    access: AwsAccess
    folder: str  # as a URI

    def tail(self, sleep: Callable[[float], None]) -> list[str]:
        """Its last lines; none if they cannot be had within a minute."""
        for _ in range(_WAITS):
            for name in _FILES:
                if lines := self._lines(name):
                    return lines[-_LINES:]
            sleep(_WAIT_SECONDS)
        return []

    def _lines(self, name: str) -> list[str]:
        bucket, _, folder = self.folder.removeprefix("s3://").partition("/")
        s3: Any = self.access.client("s3")
        try:
            found = s3.get_object(Bucket=bucket, Key=f"{folder}/{name}.gz")
            text = gzip.decompress(found["Body"].read()).decode(errors="replace")
        except Exception:  # logs are for convenience: that they are missing stops nothing
            return []
        return [line.rstrip() for line in text.splitlines() if line.strip()]


_IN_MESSAGE = 5


class StepFailed(LakeError):
    """A step ended without its job having said that it is done."""

    def __init__(
        self, place: str, state: str, reason: str, logs: Sequence[str], folder: str | None
    ) -> None:
        told = [f"The job on {place} ended as {state} without having said that it was done."]
        if reason:
            told.append(f"EMR says: {reason.rstrip('.')}.")
        if logs:
            told.append(f"The end of its log: {' | '.join(logs[-_IN_MESSAGE:])}.")
        where = (
            f"Its logs are in {folder}" if folder else "Its cluster keeps no logs: set its LogUri"
        )
        told.append(f"{where}. What was published stays; the next run goes on from there.")
        super().__init__(" ".join(told))


@dataclass
class Listening:
    """Until a job has said how it ended, or its step has ended without a word."""

    pipes: PipesFolder
    places: Places
    listener: Listener
    pace: Pace
    ended: JobDone | JobFailed | None = field(default=None, init=False)

    def heard(self, place: Place, access: AwsAccess) -> Iterator[Message | None]:
        """What the job says, as it says it; None where it said nothing new."""
        asked = looked = self.pace.now()
        step: StepStatus | None = None
        while True:
            yield from self._messages()
            if self.ended is not None and (self.pipes.closed or step):
                return
            if step is not None:
                raise self._silent(place, step, access)
            moment = self.pace.now()
            if moment - asked >= self.pace.step_seconds:
                asked = moment
                look_at_cluster = moment - looked >= self.pace.cluster_seconds
                looked = moment if look_at_cluster else looked
                step = self._ended_step(place, look_at_cluster)
            if step is None:  # else one more look: the job may have spoken just before
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

    def _ended_step(self, place: Place, look_at_cluster: bool) -> StepStatus | None:
        try:
            status = self.places.status(place, look_at_cluster)
        except ServiceTrouble as trouble:  # the step goes on, and so does the wait
            self.listener.warn(str(trouble))
            return None
        return status if status.ended else None

    def _silent(self, place: Place, step: StepStatus, access: AwsAccess) -> LakeError:
        """The error of a job that ended without a word: what its log ends with, if we know it."""
        lines = StepLogs(access, place.logs).tail(self.pace.sleep) if place.logs else []
        if lines:
            self.listener.warn("\n".join([f"The end of the log of {place}:", *lines]))
        failed = StepFailed(str(place), step.state, step.reason, lines, place.logs)
        return as_lake_error(RuntimeError("\n".join(lines))) or failed

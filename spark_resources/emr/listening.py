"""Waiting for a job on EMR: what it tells by Pipes, and what EMR tells of its step."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import recognised
from eventlake.rules.errors import LakeError, ServiceTrouble
from eventlake.runs.context import Listener
from spark_resources.emr.client import StepStatus
from spark_resources.emr.errors import StepFailed
from spark_resources.emr.logs import StepLogs
from spark_resources.emr.pace import Pace
from spark_resources.emr.pipes import PipesFolder
from spark_resources.emr.place import Place, Places
from spark_resources.jobs.messages import JobDone, JobFailed, Message


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
        return recognised(RuntimeError("\n".join(lines))) or failed

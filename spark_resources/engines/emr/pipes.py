"""Dagster Pipes on the side of Dagster: pass a job to the cluster and follow its messages.

The job uses the official `dagster_pipes`. The thread that waits for the step reads the messages, in
order; docs/decisions explains why it does not use the message reader of Dagster.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from dagster_pipes import (
    DAGSTER_PIPES_CONTEXT_ENV_VAR,
    DAGSTER_PIPES_MESSAGES_ENV_VAR,
    PIPES_PROTOCOL_VERSION_FIELD,
    PipesContextData,
    encode_param,
)

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import as_lake_error
from eventlake.rules import paths
from eventlake.rules.errors import LakeError, ServiceTrouble
from eventlake.runs.context import Listener
from eventlake.storage import Storage
from spark_resources.dataflow.job import LakeJob
from spark_resources.engines.emr.client import Pace, StepStatus
from spark_resources.engines.emr.step import EmrStep, EmrSteps
from spark_resources.workers.job_events import JobDone, JobFailed, Message, from_json


@dataclass
class PipesFolder:
    """The folder with the context and the messages of one run."""

    storage: Storage
    run_id: str
    opened: bool = False
    closed: bool = False
    _next: int = field(default=1, init=False)

    @property
    def _folder(self) -> str:
        return paths.pipes(self.run_id)

    def arguments(self) -> list[str]:
        """The command line options by which the job finds both."""
        bucket, _, root = self.storage.uri.removeprefix("s3://").partition("/")
        folder = f"{root}/{self._folder}" if root else self._folder
        context = {"bucket": bucket, "key": f"{folder}/context.json"}
        messages = {"bucket": bucket, "key_prefix": f"{folder}/messages"}
        return [
            _option(DAGSTER_PIPES_CONTEXT_ENV_VAR),
            encode_param(context),
            _option(DAGSTER_PIPES_MESSAGES_ENV_VAR),
            encode_param(messages),
        ]

    def hand_over(self, job: LakeJob) -> None:
        """Write the description of the job; command lines have a size limit."""
        context = PipesContextData(
            asset_keys=None,
            code_version_by_asset_key=None,
            provenance_by_asset_key=None,
            partition_key=None,
            partition_key_range=None,
            partition_time_window=None,
            run_id=job.dagster_run_id,
            job_name=None,
            retry_number=0,
            extras={"job": msgspec.to_builtins(job)},
        )
        self.storage.write(f"{self._folder}/context.json", json.dumps(context).encode())

    def messages(self, listener: Listener) -> Iterator[Message]:
        """The new messages since the last call; log lines go to the listener."""
        while chunk := self.storage.read(f"{self._folder}/messages/{self._next}.json"):
            self._next += 1
            for line in chunk.splitlines():
                sent: dict[str, Any] = json.loads(line)
                if PIPES_PROTOCOL_VERSION_FIELD not in sent:
                    continue
                message = self._received(sent["method"], sent.get("params") or {}, listener)
                if message is not None:
                    yield message

    def _received(self, method: str, params: dict[str, Any], listener: Listener) -> Message | None:
        match method:
            case "opened":
                self.opened = True
            case "closed":
                self.closed = True
            case "log" if str(params.get("level")).lower() in ("warning", "error", "critical"):
                listener.warn(params["message"])
            case "log":
                listener.log(params["message"])
            case "report_custom_message":
                return from_json(params["payload"])
        return None

    def remove(self) -> None:
        self.storage.delete_folder(self._folder)


def _option(variable: str) -> str:
    return "--" + variable.lower().replace("_", "-")


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
        """The last lines; empty if they are not available within a minute."""
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
        except Exception:  # missing logs are not an error
            return []
        return [line.rstrip() for line in text.splitlines() if line.strip()]


_IN_MESSAGE = 5


class StepFailed(LakeError):
    """A step ended, but its job did not report that it is done."""

    def __init__(
        self, emr_step: str, state: str, reason: str, logs: Sequence[str], folder: str | None
    ) -> None:
        parts = [f"The job on {emr_step} ended as {state} without reporting that it was done."]
        if reason:
            parts.append(f"EMR says: {reason.rstrip('.')}.")
        if logs:
            parts.append(f"The end of its log: {' | '.join(logs[-_IN_MESSAGE:])}.")
        where = (
            f"Its logs are in {folder}" if folder else "Its cluster keeps no logs: set its LogUri"
        )
        parts.append(f"{where}. What was published stays; the next run continues from there.")
        super().__init__(" ".join(parts))


@dataclass
class Following:
    """Follows a job until it reports how it ended, or its step ends without a report."""

    pipes: PipesFolder
    steps: EmrSteps
    listener: Listener
    pace: Pace
    ended: JobDone | JobFailed | None = field(default=None, init=False)

    def events(self, emr_step: EmrStep, access: AwsAccess) -> Iterator[Message | None]:
        """The events of the job as they arrive; None if there is nothing new."""
        asked = looked = self.pace.now()
        step: StepStatus | None = None
        while True:
            yield from self._messages()
            if self.ended is not None and (self.pipes.closed or step):
                return
            if step is not None:
                raise self._silent(emr_step, step, access)
            moment = self.pace.now()
            if moment - asked >= self.pace.step_seconds:
                asked = moment
                look_at_cluster = moment - looked >= self.pace.cluster_seconds
                looked = moment if look_at_cluster else looked
                step = self._ended_step(emr_step, look_at_cluster)
            if step is None:  # else read once more: the job may have reported just before
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

    def _ended_step(self, emr_step: EmrStep, look_at_cluster: bool) -> StepStatus | None:
        try:
            status = self.steps.status(emr_step, look_at_cluster)
        except ServiceTrouble as trouble:  # the step goes on, and so does the wait
            self.listener.warn(str(trouble))
            return None
        return status if status.ended else None

    def _silent(self, emr_step: EmrStep, step: StepStatus, access: AwsAccess) -> LakeError:
        """The error of a job that ended without a report: a known one from its log, if possible."""
        lines = StepLogs(access, emr_step.logs).tail(self.pace.sleep) if emr_step.logs else []
        if lines:
            self.listener.warn("\n".join([f"The end of the log of {emr_step}:", *lines]))
        failed = StepFailed(str(emr_step), step.state, step.reason, lines, emr_step.logs)
        return as_lake_error(RuntimeError("\n".join(lines))) or failed

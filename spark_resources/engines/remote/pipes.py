"""Dagster Pipes on the side of Dagster: the folder with a job and with its messages.

The job uses the official `dagster_pipes`. The thread that waits for the job reads the messages, in
order; docs/decisions explains why it does not use the message reader of Dagster.
"""

import json
from collections.abc import Iterator
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

from eventlake.rules import paths
from eventlake.runs.context import Listener
from eventlake.storage import Storage
from spark_resources.dataflow.job import LakeJob
from spark_resources.workers.job_events import Message, from_json


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

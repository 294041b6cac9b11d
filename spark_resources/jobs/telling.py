"""How a job on a cluster tells: log lines and messages, by Dagster Pipes over S3."""

import time
from dataclasses import dataclass
from io import StringIO
from typing import IO

from dagster_pipes import (
    PipesContext,
    PipesParams,
    PipesS3MessageWriter,
    PipesS3MessageWriterChannel,
)

from spark_resources.jobs.messages import Message, as_json

RESEND_SECONDS = (5.0, 15.0, 60.0, 120.0)


@dataclass(frozen=True, slots=True)
class PipesListener:
    """Tells Dagster's log what a run has to say."""

    pipes: PipesContext

    def log(self, message: str) -> None:
        self.pipes.log.info(message)

    def warn(self, message: str) -> None:
        self.pipes.log.warning(message)


class PatientWriter(PipesS3MessageWriter):
    """Sends what could not be sent again, in order; the official one falls silent for ever."""

    def make_channel(self, params: PipesParams) -> PipesS3MessageWriterChannel:
        return _PatientChannel(
            self._client, params["bucket"], params["key_prefix"], interval=self.interval
        )


class _PatientChannel(PipesS3MessageWriterChannel):
    def upload_messages_chunk(self, payload: IO[str], index: int) -> None:
        body = payload.read()
        for wait in RESEND_SECONDS:
            try:
                super().upload_messages_chunk(StringIO(body), index)
                return
            except Exception:
                time.sleep(wait)
        super().upload_messages_chunk(StringIO(body), index)


def tell(pipes: PipesContext, message: Message) -> None:
    pipes.report_custom_message(as_json(message))

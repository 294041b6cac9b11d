"""The events that a job on a cluster reports besides its log lines, as Pipes messages."""

import time
from dataclasses import dataclass
from io import StringIO
from typing import IO, Any, Self

import msgspec
from dagster_pipes import (
    PipesContext,
    PipesParams,
    PipesS3MessageWriter,
    PipesS3MessageWriterChannel,
)

from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import LakeError, error_in_trace
from eventlake.rules.text import plural, size
from eventlake.runs.context import Published
from eventlake.runs.dry_run import PlannedUnit
from eventlake.runs.verify import CheckResult, ChecksFailed


class UnitPublished(msgspec.Struct, frozen=True, tag="published"):
    """A unit of work is in the lake; its manifest is read from there."""

    manifest: int
    report: UnitReport
    checks: tuple[CheckResult, ...]
    seconds: float  # since the job began

    @classmethod
    def of(cls, unit: Published, seconds: float) -> Self:
        return cls(unit.manifest.number, unit.report, unit.checks, seconds)

    def __str__(self) -> str:
        tables = self.report.tables.values()
        files = sum(table.files_written for table in tables)
        written = sum(table.bytes_written for table in tables)
        return (
            f"Published manifest {self.manifest} after {self.seconds:,.0f} s: "
            f"{self.report.row_count:,} of {self.report.rows_in:,} rows into "
            f"{plural(len(tables), 'table')}, {plural(files, 'file')}, {size(written)}"
        )


class UnitPlanned(msgspec.Struct, frozen=True, tag="planned"):
    """Of a dry run: what a unit of work would do."""

    unit: PlannedUnit


class JobDone(msgspec.Struct, frozen=True, tag="done"):
    """The job is complete; a job that ends without this event has failed."""

    seconds: float
    peak_mb: float  # of memory, on the driver

    def __str__(self) -> str:
        return f"Done after {self.seconds:,.0f} s, with {self.peak_mb:,.0f} MB on the driver"


class JobFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The error that ended the job, as far as it can be sent."""

    kind: str
    text: str
    checks: tuple[CheckResult, ...] = ()

    @classmethod
    def of(cls, error: BaseException) -> Self:
        checks = error.results if isinstance(error, ChecksFailed) else ()
        return cls(type(error).__name__, str(error), checks)

    def error(self) -> LakeError:
        """The same error, to raise in the process that waits for the job."""
        if self.checks:
            return ChecksFailed(self.checks)
        return error_in_trace(f"eventlake.{self.kind}: {self.text}") or LakeError(
            f"{self.kind}: {self.text}"
        )


Message = UnitPublished | UnitPlanned | JobDone | JobFailed


def as_json(message: Message) -> Any:
    """Plain values, as Pipes requires."""
    return msgspec.to_builtins(message)


def from_json(payload: Any) -> Message:
    message: Message = msgspec.convert(payload, Message)
    return message


RESEND_SECONDS = (5.0, 15.0, 60.0, 120.0)


@dataclass(frozen=True, slots=True)
class PipesListener:
    """Sends the messages of a run to the log of Dagster."""

    pipes: PipesContext

    def log(self, message: str) -> None:
        self.pipes.log.info(message)

    def warn(self, message: str) -> None:
        self.pipes.log.warning(message)

    def page(self, name: str, url: str) -> None:
        self.pipes.log.info(f"{name}: {url}")


class PatientWriter(PipesS3MessageWriter):
    """Repeats failed uploads, in order; after a failure the official writer sends nothing more."""

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


def report(pipes: PipesContext, message: Message) -> None:
    pipes.report_custom_message(as_json(message))

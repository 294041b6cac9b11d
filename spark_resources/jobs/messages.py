"""What a job on a cluster tells whoever waits for it, beside its log lines: as Pipes messages."""

from typing import Any, Self

import msgspec

from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import LakeError, told_in
from eventlake.runs.context import Published
from eventlake.runs.dry_run import PlannedUnit
from eventlake.runs.verify import CheckResult, ChecksFailed


class UnitPublished(msgspec.Struct, frozen=True, tag="published"):
    """A unit of work is in the lake: whoever waits reads its manifest there."""

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
        written = sum(table.bytes_written for table in tables) / 1e6
        return (
            f"Published manifest {self.manifest} after {self.seconds:,.0f} s: "
            f"{self.report.row_count:,} of {self.report.rows_in:,} rows into {len(tables)} tables, "
            f"{files:,} files, {written:,.1f} MB"
        )


class UnitPlanned(msgspec.Struct, frozen=True, tag="planned"):
    """Of a dry run: what a unit of work would do."""

    unit: PlannedUnit


class JobDone(msgspec.Struct, frozen=True, tag="done"):
    """All of it is done; a job that ends without saying so has failed."""

    seconds: float
    peak_mb: float  # of memory, on the driver

    def __str__(self) -> str:
        return f"Done after {self.seconds:,.0f} s, with {self.peak_mb:,.0f} MB on the driver"


class JobFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The error that ended the job, as far as it can be told."""

    kind: str
    said: str
    checks: tuple[CheckResult, ...] = ()

    @classmethod
    def of(cls, error: BaseException) -> Self:
        checks = error.results if isinstance(error, ChecksFailed) else ()
        return cls(type(error).__name__, str(error), checks)

    def error(self) -> LakeError:
        """The same error, raised anew where somebody waits for the job."""
        if self.checks:
            return ChecksFailed(self.checks)
        return told_in(f"eventlake.{self.kind}: {self.said}") or LakeError(
            f"{self.kind}: {self.said}"
        )


Message = UnitPublished | UnitPlanned | JobDone | JobFailed


def as_json(message: Message) -> Any:
    """Plain values, as Pipes takes them."""
    return msgspec.to_builtins(message)


def from_json(payload: Any) -> Message:
    message: Message = msgspec.convert(payload, Message)
    return message

"""RunRef runs and check results, as the alert rules see them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Outcome(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    FAILED = "failed"
    NO_MATTER = "no matter"
    """Cancelled, or retried: neither a failure nor a recovery."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A rejected record, or one with a rescued value."""

    place: str  # file and line, or its table
    reason: str
    identifier: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run of a source that has ended; a run and its retries have the same `work`."""

    id: str  # of Dagster if there is one, so that a run is the same in the lake and in Dagster
    work: str
    replay: bool
    outcome: Outcome
    started: datetime
    ended: datetime
    run_id: str = ""  # of the lake
    dagster_run_id: str = ""
    error_code: str = ""
    error: str = ""
    rows_in: int = 0
    rows: int = 0
    rejected: int = 0
    rescued_cells: int = 0
    first_rejected: BadRecord | None = None
    first_rescued: BadRecord | None = None

    @property
    def day(self) -> str:
        return f"{self.started:%Y-%m-%d}"

    @property
    def rejected_percent(self) -> float:
        return 100 * self.rejected / self.rows_in if self.rows_in else 0.0

    @property
    def rescued_percent(self) -> float:
        """Rescued cells per 100 rows; may exceed 100, as a row may have several."""
        return 100 * self.rescued_cells / self.rows if self.rows else 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check for a table."""

    table: str
    check: str
    passed: bool
    warning: bool = False
    evidence: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The check results of one Dagster run for the tables of a source."""

    dagster_run_id: str
    ended: datetime
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The status of a run in Dagster."""

    work: str  # the first run of a chain of retries
    over: bool = True
    failed: bool = False
    will_retry: bool = False


StatusLookup = Callable[[str], RunStatus | None]
"""Finds the status by Dagster run id; None for a run that Dagster does not have."""


def unknown(dagster_run_id: str) -> RunStatus | None:
    """Used when Dagster is not available."""
    return None

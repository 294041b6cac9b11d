"""Ended runs and check results, as the alert rules see them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Outcome(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    FAILED = "failed"
    NO_MATTER = "no matter"
    """A person cancelled it, or a retry of it decides: neither a failure nor a recovery."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that was rejected, or of which a value was rescued."""

    place: str  # file and line, or the table that it is in
    reason: str
    identifier: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a source that has ended; a run and its retries are attempts at the same work."""

    id: str  # Dagster's, where it has one: a run is then the same in the lake and in Dagster
    work: str
    replay: bool
    outcome: Outcome
    started: datetime
    ended: datetime
    run_id: str = ""  # the lake's
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
        """Cells, not rows: a row may have several, so that this may be above 100."""
        return 100 * self.rescued_cells / self.rows if self.rows else 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check said of a table."""

    table: str
    check: str
    passed: bool
    warning: bool = False
    evidence: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The verdicts of one run of Dagster on the tables of a source."""

    dagster_run_id: str
    ended: datetime
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Fate:
    """How a run stands in Dagster."""

    work: str  # the first run of those that are retries of each other
    over: bool = True
    failed: bool = False
    will_retry: bool = False


Fates = Callable[[str], Fate | None]
"""By Dagster's id; None where Dagster knows nothing of a run (any more)."""


def unknown(dagster_run_id: str) -> Fate | None:
    """For who looks without Dagster."""
    return None

"""Ended runs and check results, as the alert rules see them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Outcome(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    FAILED = "failed"
    NO_MATTER = "no matter"
    """Cancelled, or retried: neither a failure nor a recovery."""


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
    records: Mapping[str, dict[str, str]] = field(default_factory=dict)
    """The first rejected record and the first one with rescued cells, if a message shows them."""

    @property
    def day(self) -> str:
        return f"{self.started:%Y-%m-%d}"

    @property
    def names(self) -> set[str]:
        return {name for name in (self.id, self.run_id) if name}

    def counts(self, kind: str) -> dict[str, int]:
        """Rejected rows or rescued cells, and the rows they are counted against."""
        if kind == "rejected":
            return {"rejected": self.rejected, "rows_in": self.rows_in}
        return {"rescued_cells": self.rescued_cells, "rows": self.rows}

    def percent(self, kind: str) -> float:
        """For rescued cells it may exceed 100, as a row may have several."""
        bad, of_all = self.counts(kind).values()
        return 100 * bad / of_all if of_all else 0.0


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

    id: str  # of Dagster
    ended: datetime
    verdicts: tuple[Verdict, ...]

    @property
    def day(self) -> str:
        return f"{self.ended:%Y-%m-%d}"

    @property
    def names(self) -> set[str]:
        return {f"checks of {self.id}"}


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

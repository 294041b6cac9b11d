"""What Dagster knows of a run besides its report: whether it is over, and who tries it again."""

from collections.abc import Callable
from dataclasses import dataclass


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

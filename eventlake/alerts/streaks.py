"""Failures in a row: the first, the fifth and the twentieth are told, and the recovery."""

from msgspec.structs import replace

from eventlake.alerts.attempt import Attempt, Outcome
from eventlake.alerts.state import Ended, Streak

STAGES = (1, 5, 20)
_WORKS = 100  # of which is known that they are counted


def after(streak: Streak, attempt: Attempt) -> Streak:
    """The streak with one more run, whether or not anything is told of it."""
    if attempt.outcome is Outcome.NO_MATTER:
        return streak
    if _is_past(streak, attempt):
        return streak
    if attempt.outcome is Outcome.FINISHED:
        return Streak(
            since=streak.since,
            last=streak.last,
            told=streak.told,
            owed=streak.owed,
            overcome=streak.failures or streak.overcome,
            succeeded=attempt.ended,
        )
    if attempt.work in streak.works:
        return replace(streak, last=ended(attempt))
    first = streak.failures == 0
    return Streak(
        failures=streak.failures + 1,
        since=attempt.started if first else streak.since,
        works=(*streak.works, attempt.work)[-_WORKS:],
        last=ended(attempt),
        told=0 if first else streak.told,
        owed=streak.owed or (first and streak.told > 0),
        succeeded=streak.succeeded,
    )


def _is_past(streak: Streak, attempt: Attempt) -> bool:
    """Whether it is heard of only now, and what came after it has been counted."""
    if streak.failures and streak.last is not None and attempt.outcome is Outcome.FINISHED:
        return attempt.ended < streak.last.at
    return streak.succeeded is not None and attempt.ended < streak.succeeded


def stage(failures: int) -> int:
    """The last of the stages that so many failures have reached."""
    return max((s for s in STAGES if s <= failures), default=0)


def is_news(streak: Streak) -> bool:
    """Whether there is something to tell that has not been told."""
    if streak.failures:
        return stage(streak.failures) > streak.told
    return streak.told > 0 or streak.owed


def told(streak: Streak) -> Streak:
    return replace(streak, told=stage(streak.failures), owed=False, overcome=0)


def ended(attempt: Attempt) -> Ended:
    return Ended(
        attempt.ended, attempt.run_id, attempt.dagster_run_id, attempt.error_code, attempt.error
    )

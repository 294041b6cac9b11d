"""No data where there used to be: told once, after so many hours without a new row."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from eventlake.alerts.attempt import Attempt
from eventlake.alerts.state import Ended, Streak, Trouble
from eventlake.alerts.streaks import ended


def rows_came_after(rows_came: Ended | None, attempt: Attempt) -> Ended | None:
    """The last sync that brought rows; replays bring none that are new."""
    if attempt.replay or not attempt.rows_in:
        return rows_came
    return ended(attempt) if rows_came is None or rows_came.at < attempt.ended else rows_came


def silence_at(
    trouble: Trouble, rows_came: Ended | None, syncs: Streak, hours: int | None, now: datetime
) -> Trouble:
    """While syncs fail, that is the trouble, and it is told."""
    if hours is None or rows_came is None:
        return Trouble()
    if now - rows_came.at < timedelta(hours=hours):
        return replace(trouble, since=None, run=rows_came)
    if trouble.since or syncs.failures:
        return trouble
    return Trouble(rows_came.at, trouble.told, rows_came, {"hours": hours})

"""When a source is due: by a cron expression, read in a time zone.

Around a change of the clock as Dagster has it: a time that is left out comes when the clock has
jumped, one that comes twice counts the second time; only what runs every hour runs in both.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

TWELVE_A_DAY = "0 */2 * * *"
OFF = "off"
_CRON = (
    "allowed: a cron expression of five fields (minute, hour, day, month, weekday), such as "
    f"`{TWELVE_A_DAY}`, or off"
)
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)


def problem(schedule: str) -> str | None:
    """What is wrong with a schedule, if anything is, and what would be right."""
    if schedule in (TWELVE_A_DAY, OFF):
        return None
    if (fields := len(schedule.split())) != 5:
        return f"{_CRON}; this has {fields}"
    try:
        never = next(_local_times(schedule, datetime(2000, 1, 1)), None) is None
    except ValueError as error:
        return f"{_CRON}; {error}"
    return f"{_CRON}; there is no such day" if never else None


def is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def next_due(schedule: str, zone: str, after: datetime) -> datetime | None:
    """The next time of a schedule, in UTC; None if it is off."""
    if schedule == OFF:
        return None
    local = after.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    hourly = schedule.split()[1] == "*"
    # Those of the last day are looked at again: clocks may have been set back since.
    for time in _local_times(schedule, local - _DAY):
        due = min((t for t in _moments(time, zone, hourly) if t > after), default=None)
        if due is not None:
            return due
    return None


def _local_times(schedule: str, after: datetime) -> Iterator[datetime]:
    # Not at the top: most commands and settings can do without it.
    from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]

    times = croniter(schedule, after, datetime)
    try:
        yield from islice(times, 1_000_000)
    except CroniterBadDateError:  # there is none in the next fifty years
        return


def _moments(local: datetime, zone: str, hourly: bool) -> Iterator[datetime]:
    """What a time on the wall means, in UTC: mostly one moment, or two, or none."""
    first, second = (_utc(local, zone, fold) for fold in (0, 1))
    if first <= second:
        if hourly:
            yield first
        yield second
    elif not hourly:
        # The clock jumps over it: it comes when the clock has jumped.
        while first > second:
            local += _MINUTE
            first, second = (_utc(local, zone, fold) for fold in (0, 1))
        yield first


def _utc(local: datetime, zone: str, fold: int) -> datetime:
    return local.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)

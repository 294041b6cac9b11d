"""When a source is due: a cron expression in a time zone, evaluated as Dagster evaluates it."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

TWELVE_A_DAY = "0 */2 * * *"
OFF = "off"
_CRON = (
    "allowed: a cron expression of five fields (minute, hour, day, month, weekday), such as "
    f"`{TWELVE_A_DAY}`, or off"
)
_CLOCK_CHANGE = timedelta(hours=2)  # more than daylight saving time shifts a clock


def problem(schedule: str) -> str | None:
    """What is wrong with a schedule and what is allowed; None for a valid one."""
    if schedule in (TWELVE_A_DAY, OFF):
        return None
    if (fields := len(schedule.split())) != 5:
        return f"{_CRON}; this has {fields}"
    from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]

    try:
        croniter(schedule, datetime(2000, 1, 1)).get_next(datetime)
    except CroniterBadDateError:
        return f"{_CRON}; there is no such day"
    except ValueError as error:
        return f"{_CRON}; {error}"
    return None


def staggered(schedule: str, source_id: str) -> str:
    """The usual schedule at a minute that depends on the source alone; others as written.

    On a shared cluster, syncs of many sources would otherwise start at the same moment.
    """
    if schedule != TWELVE_A_DAY:
        return schedule
    minute = int(sha256(source_id.encode()).hexdigest(), 16) % 60
    return f"{minute} */2 * * *"


def is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def next_due(schedule: str, zone: str, after: datetime) -> datetime | None:
    """The next time of a schedule in UTC; None if it is off.

    Of a local time that occurs twice, only hourly schedules run at both; others run at the second.
    """
    if schedule == OFF:
        return None
    from croniter import croniter  # imported late: most commands do not need it

    hourly = schedule.split()[1] == "*"
    start = (after - _CLOCK_CHANGE).astimezone(ZoneInfo(zone))
    times = (
        (time if hourly else time.replace(fold=1)).astimezone(UTC)
        for time in islice(croniter(schedule, start, datetime), 1_000)
    )
    return next((time for time in times if time > after), None)


@lru_cache
def longest_interval(schedule: str) -> timedelta | None:
    """The longest time between two ticks of a schedule, to the hour; None if it is off."""
    if schedule == OFF:
        return None
    from croniter import croniter

    # Ticks within an hour count as one: a year of them would take seconds.
    hourly = " ".join(["0", *schedule.split()[1:]])
    ticks = islice(croniter(hourly, datetime(2001, 1, 1), datetime), 1_000)
    longest: timedelta = max(later - earlier for earlier, later in pairwise(ticks))
    return longest

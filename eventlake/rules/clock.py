"""The current time, and times in commands: UTC hours, `YYYY-MM-DDTHH`.

All code takes the time from here, so that tests can simulate it; only leases read the system clock.
"""

from datetime import UTC, datetime, timedelta

from eventlake.rules.errors import UsageError


def now() -> datetime:
    return read()


def read() -> datetime:
    """The system clock; tests replace this function."""
    return datetime.now(UTC)


def new_run_id() -> str:
    """A run id is the start time of the run in nanoseconds."""
    return str(int(now().timestamp() * 1_000_000) * 1_000)


FORM = "%Y-%m-%dT%H"


def parse_hour(text: str) -> datetime:
    """Parse an hour; a day means its midnight."""
    for form in (FORM, "%Y-%m-%d"):
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise UsageError(
        f"{text!r} is not a time; allowed are hours in UTC, YYYY-MM-DDTHH (2026-10-01T07), "
        "and days, YYYY-MM-DD."
    )


def parse_range(first: str, end: str) -> tuple[datetime, datetime]:
    """Parse a range with an exclusive end."""
    start, stop = parse_hour(first), parse_hour(end)
    if start >= stop:
        raise UsageError(f"--from {first} is not before --to {end}, which is exclusive.")
    return start, stop


def touched_days(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The first and the last day that a range touches."""
    return start, end - timedelta(hours=1)

"""The current time: the only module that reads the system clock, so that tests can simulate it."""

from datetime import UTC, datetime


def now() -> datetime:
    return read()


def read() -> datetime:
    """The system clock; tests replace this function."""
    return datetime.now(UTC)


def new_run_id() -> str:
    """A run id is the start time of the run in nanoseconds."""
    return str(int(now().timestamp() * 1_000_000) * 1_000)

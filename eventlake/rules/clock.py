"""What time it is: the one place that asks the machine, so that a test can live through months."""

from datetime import UTC, datetime


def now() -> datetime:
    return read()


def read() -> datetime:
    """What the machine says; a simulated clock takes its place."""
    return datetime.now(UTC)


def new_run_id() -> str:
    """A run is named after the moment at which it begins, in nanoseconds."""
    return str(int(now().timestamp() * 1_000_000) * 1_000)

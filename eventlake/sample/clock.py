"""Moments as epoch milliseconds, and how raw events spell them."""

from datetime import UTC, date, datetime
from functools import lru_cache

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def midnight(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * SECOND


def iso(moment: int) -> str:
    """`2026-10-01T07:05:09.120Z`"""
    minute, rest = divmod(moment, MINUTE)
    return f"{_to_the_minute(minute)}:{rest // SECOND:02d}.{rest % SECOND:03d}Z"


@lru_cache(maxsize=20_000)
def _to_the_minute(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M")

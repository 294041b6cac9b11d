"""When a source is due."""

from datetime import timedelta

import pytest

from eventlake.rules.schedules import (
    TWELVE_A_DAY,
    is_time_zone,
    longest_interval,
    next_due,
    problem,
)
from tests.support.lakes.runs import utc


def dues(schedule: str, zone: str, after: str, count: int) -> list[str]:
    """The next times, in UTC."""
    found, at = [], utc(after)
    for _ in range(count):
        due = next_due(schedule, zone, at)
        assert due is not None
        found.append(f"{due:%m-%d %H:%M}")
        at = due
    return found


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        (TWELVE_A_DAY, "UTC", "2026-11-16T13:59", "11-16 14:00, 11-16 16:00"),
        (TWELVE_A_DAY, "UTC", "2026-11-16T14:00", "11-16 16:00, 11-16 18:00"),
        ("15 6 * * mon-fri", "Europe/Berlin", "2026-11-13T12:00", "11-16 05:15, 11-17 05:15"),
        # 02:30 is left out in spring, and comes twice in autumn.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "03-29 01:00, 03-30 00:30"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "10-25 01:30, 10-26 01:30"),
        ("30 * * * *", "Europe/Berlin", "2026-10-25T00:00", "10-25 00:30, 10-25 01:30"),
        ("30 * * * *", "Europe/Berlin", "2026-03-29T00:00", "03-29 00:30, 03-29 01:30"),
        ("*/20 * * * *", "Europe/Berlin", "2026-10-25T00:00", "10-25 00:20, 10-25 00:40"),
        ("0 0 29 2 *", "UTC", "2026-01-01", "02-29 00:00, 02-29 00:00"),
    ],
)
def test_the_next_times_of_a_schedule(schedule: str, zone: str, after: str, expected: str) -> None:
    assert dues(schedule, zone, after, 2) == expected.split(", ")
    assert next_due("off", zone, utc(after)) is None


@pytest.mark.parametrize(
    ("schedule", "told"),
    [
        (TWELVE_A_DAY, None),
        ("off", None),
        ("*/10 8-18 * * mon-fri", None),
        ("0 25 * * *", "out of range"),
        ("0 2 * *", "this has 4"),
        ("@daily", "this has 1"),
        ("0 0 30 2 *", "there is no such day"),
        ("every two hours or so", "not acceptable"),
    ],
)
def test_what_is_wrong_with_a_schedule(schedule: str, told: str | None) -> None:
    found = problem(schedule)
    assert (found is None) == (told is None)
    assert told is None or told in str(found)


def test_time_zones() -> None:
    names = ("UTC", "Europe/Berlin", "Europe/Atlantis", "", "../etc/passwd", "CET/")
    assert [is_time_zone(name) for name in names] == [True, True, False, False, False, False]


@pytest.mark.parametrize(
    ("schedule", "hours"),
    [
        ("0 */2 * * *", 2),
        ("*/5 * * * *", 1),
        ("15 9-17 * * 1-5", 64),  # from Friday evening to Monday morning
        ("0 6 1 * *", 31 * 24),
        ("off", None),
    ],
)
def test_the_longest_interval_of_a_schedule(schedule: str, hours: int | None) -> None:
    longest = longest_interval(schedule)
    assert longest == (None if hours is None else timedelta(hours=hours))

"""A new source has its first sync by schedule some time after it was added."""

from datetime import timedelta

from eventlake.state.first_seen import expected_first_sync, first_sync_due
from tests.support.lakes.archive import page
from tests.support.lakes.runs import Runs, utc

NOON = utc("2026-10-20T12:00")
HOUR = timedelta(hours=1)


def test_two_hours_after_it_was_first_seen(runs: Runs) -> None:
    assert expected_first_sync(runs.storage, runs.source) is None
    dues = [first_sync_due(runs.storage, runs.source, NOON + n * HOUR) for n in range(4)]
    assert dues == [NOON + 2 * HOUR] * 4
    assert expected_first_sync(runs.storage, runs.source) == NOON + 2 * HOUR


def test_at_once_if_that_is_set(runs: Runs) -> None:
    runs.set(first_sync_hours=0)
    assert first_sync_due(runs.storage, runs.source, NOON) == NOON


def test_a_source_that_has_data_is_not_new(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", page("m1", "2026-10-01T07:00"))
    first_sync_due(runs.storage, runs.source, NOON)
    runs.sync()
    assert first_sync_due(runs.storage, runs.source, NOON) is None
    assert expected_first_sync(runs.storage, runs.source) is None


def test_a_clock_that_was_ahead_makes_nobody_wait_for_years(runs: Runs) -> None:
    first_sync_due(runs.storage, runs.source, utc("2036-01-01"))
    assert first_sync_due(runs.storage, runs.source, NOON) == NOON + 2 * HOUR
    assert first_sync_due(runs.storage, runs.source, NOON + HOUR) == NOON + 2 * HOUR

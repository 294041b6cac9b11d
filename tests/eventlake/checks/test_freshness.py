"""How old the newest event of a source may be."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eventlake.checks.freshness import check_freshness, judge_freshness
from eventlake.rules import clock
from eventlake.runs.verify import Severity
from eventlake.settings.models import Source
from tests.support.lakes.archive import order
from tests.support.lakes.retyping import lake_of
from tests.support.lakes.runs import Runs, utc

HOUR = timedelta(hours=1)
START = utc("2026-10-05")  # a Monday


def always(days: int) -> set[datetime]:
    return {START + n * HOUR for n in range(24 * days)}


def at_work(days: int) -> set[datetime]:
    """Weekdays from 8 to 18."""
    return {at for at in always(days) if at.weekday() < 5 and 8 <= at.hour < 18}


def without(hours: Iterable[datetime], first: datetime, last: datetime) -> set[datetime]:
    return {at for at in hours if not first <= at < last}


END = START + timedelta(days=28)
OUTAGE = (START + timedelta(days=10), START + timedelta(days=14))


@pytest.mark.parametrize(
    ("hours", "setting", "within"),
    [
        (always(28), None, 6),  # nothing but the way into the lake
        (at_work(28), None, 62 + 6),  # weekends, Friday 18 to Monday 8
        (without(always(28), *OUTAGE), None, 6),  # one outage is not what is usual
        (without(at_work(28), *OUTAGE), None, 62 + 6),
        (always(14), None, 72),  # not long enough known
        (set(), None, 72),
        (at_work(28), 12, 12),
    ],
)
def test_the_usual_pause(hours: set[datetime], setting: int | None, within: int) -> None:
    source = Source(id="S1", slug="shop", freshness_hours=setting)
    now = max(hours, default=END) + HOUR
    result = judge_freshness(source, hours, now)
    assert result.passed
    assert result.evidence["expected_within_hours"] == within
    if hours:
        assert judge_freshness(source, hours, now + within * HOUR).passed
        late = judge_freshness(source, hours, now + within * HOUR + timedelta(minutes=1))
        assert not late.passed and late.severity is Severity.WARN
        assert late.evidence["first_problems"] == (
            f"no event since {now:%Y-%m-%d %H:%M} UTC, {within} hours ago",
        )


def test_events_dated_ahead_do_not_hide_a_silence() -> None:
    source = Source(id="S1", slug="shop")
    hours = always(28) | {END + timedelta(days=3)}
    assert not judge_freshness(source, hours, END + 12 * HOUR).passed


EVERY_2_HOURS, DAILY, WEEKLY, TWICE = "0 */2 * * *", "0 5 * * *", "0 5 * * 1", "0 5,6 * * *"


@pytest.mark.parametrize(
    ("schedule", "within"),
    [(EVERY_2_HOURS, 4 + 2), (DAILY, 4 + 24), (WEEKLY, 4 + 168), (TWICE, 4 + 23)],
)
def test_rare_syncs_are_given_more_time(schedule: str, within: int) -> None:
    source = Source(id="S1", slug="shop", schedule=schedule)
    result = judge_freshness(source, always(28), END)
    assert result.evidence["expected_within_hours"] == within


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"enabled": False}, "the source is switched off (`enabled: false`)"),
        ({"schedule": "off"}, "its syncs are not scheduled (`schedule: off`)"),
    ],
)
def test_a_source_without_syncs_is_not_checked(settings: dict[str, Any], why: str) -> None:
    source = Source(id="S1", slug="shop", **settings)
    result = judge_freshness(source, always(28), END + timedelta(days=90))
    assert result.passed
    assert result.evidence["not_judged"] == why


def test_only_loaded_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "read", lambda: utc("2026-10-01T08:00"))
    runs = Runs(tmp_path)
    nothing = check_freshness(lake_of(runs), runs.source, utc("2026-10-01"))
    assert nothing.passed and nothing.evidence["not_judged"] == "nothing is loaded yet"
    runs.load("2026-10-01", order("m1", "2026-10-01T07:30"))
    result = check_freshness(lake_of(runs), runs.source, utc("2026-10-04T09:00"))
    assert result.table == "__segment_datalake.sync_reports.shop"
    assert result.evidence["age_hours"] == 73.0
    assert result.evidence["newest_hour"] == "2026-10-01T07"
    assert not result.passed


def test_old_events_loaded_for_the_first_time_are_not_stale() -> None:
    source = Source(id="S1", slug="shop")
    now = END + timedelta(days=90)
    old = judge_freshness(source, always(14), now, first_load=now - timedelta(hours=71))
    assert old.passed
    assert old.evidence["not_judged"].startswith("its first load was at ")
    assert not judge_freshness(source, always(14), now, first_load=now - timedelta(days=3)).passed

"""Weeks without attention: each event once, the alerts that are due, and constant disk use."""

import os
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from eventlake.audit.audit import audit
from eventlake.audit.snapshot import Scope
from eventlake.state.source_state import read_state
from eventlake.upkeep import removal, upkeep
from tests.support.servers.alerts import Hook
from tests.support.simulation.machine import Synced
from tests.support.simulation.simulation import (
    BEGIN,
    BERLIN,
    FIVE_DAYS,
    IOS,
    SIXTY_DAYS,
    VISITS,
    WEB,
    Simulation,
    Story,
)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterable[Path]:
    """A disk without waits."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with TemporaryDirectory(dir=place) as folder:
        yield Path(folder) / "lake"


def test_five_days_with_trouble(memory: Path, monkeypatch: pytest.MonkeyPatch, hook: Hook) -> None:
    short = {"record_log_days": 2, "index_days": 8, "orphan_days": 2}
    simulation = Simulation(memory, FIVE_DAYS, monkeypatch, retention=short)
    simulation.run()

    assert hook.titles == [
        "web_shop: no new rows for 1 d",
        "web_shop: new rows again",
        "web_shop: no new rows for 1 d 7 h",
        "web_shop: new rows again",
        "web_shop: sync failed",
        "web_shop: 5 syncs failed in a row",
        "web_shop: sync recovered after 6 failures",
    ]
    each_event_is_there_once(simulation)
    one_sync_loads_the_backlog(simulation)
    assert simulation.usage[6].folders["record log"] < 3.5 * 24  # a folder for each run


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_sixty_days_with_trouble(memory: Path, monkeypatch: pytest.MonkeyPatch, hook: Hook) -> None:
    simulation = Simulation(memory, SIXTY_DAYS, monkeypatch)
    simulation.run()

    assert hook.titles == [
        "web_shop: no new rows for 1 d",
        "web_shop: new rows again",
        "web_shop: no new rows for 4 d 1 h",
        "web_shop: new rows again",
        "web_shop: sync failed",
        "web_shop: 5 syncs failed in a row",
        "web_shop: 20 syncs failed in a row",
        "web_shop: sync recovered after 25 failures",
    ]
    each_event_is_there_once(simulation)
    one_sync_loads_the_backlog(simulation)
    twelve_a_day(simulation.machine.syncs[WEB], SIXTY_DAYS)
    twelve_a_day_in_berlin(simulation.machine.syncs[IOS], date(2026, 10, 25))
    tell(simulation)
    disk_use_is_flat(simulation)


def each_event_is_there_once(simulation: Simulation) -> None:
    """By the generator, by an audit of every id, and by what the syncs said."""
    for slug, arrivals in simulation.arrivals.items():
        assert arrivals.all_came
        expected = simulation.expected(slug)
        wanted = Counter[tuple[str, str]]()
        for slot, count in expected.rows.items():
            wanted[slot.table, slot.day] += count
        # Nothing is left of the suppressed person, since all earlier days were replayed.
        assert simulation.held(slug) == wanted

        reports = [one.report for one in simulation.machine.syncs[slug] if one.report]
        visits = simulation.story.days * len(VISITS)
        suppressed = sum(upkeep.suppressed for upkeep in reports)
        assert 0 < suppressed < visits
        assert sum(r.row_count for r in reports) == wanted.total() + visits - suppressed
        assert sum(r.duplicates for r in reports) == expected.totals.duplicates > 0
        assert sum(r.rejected for r in reports) == expected.totals.rejected
        assert audit(simulation.lake, Scope(simulation.source(slug))).agrees
        state = read_state(simulation.lake.storage, simulation.source(slug).id)
        assert sum(state.rows.values()) == wanted.total()


def one_sync_loads_the_backlog(simulation: Simulation) -> None:
    """As one unit; no more syncs than on other days."""
    outage = simulation.story.outage
    for syncs in simulation.machine.syncs.values():
        assert not [one for one in syncs if outage.has(one.at)]
        first, second = [one for one in syncs if one.at >= outage.end][:2]
        assert first.at < outage.end + timedelta(hours=1)
        assert first.units == 1
        assert second.at - first.at >= timedelta(hours=1)
        assert second.units <= 1


def twelve_a_day(syncs: Iterable[Synced], story: Story) -> None:
    """But on the first day, which begins with a wait, and while the machine is off."""
    per_day = Counter(f"{one.at:%Y-%m-%d}" for one in syncs)
    on = [day for day in _days(story.days) if not story.outage.has(day)]
    assert {per_day[f"{day:%Y-%m-%d}"] for day in on[1:]} == {12}


def twelve_a_day_in_berlin(syncs: Iterable[Synced], day: date) -> None:
    """Also on the day that has an hour twice."""
    local = [one.at.astimezone(BERLIN) for one in syncs]
    assert [f"{at:%H:%M}" for at in local if at.date() == day] == [
        f"{hour:02d}:00" for hour in range(0, 24, 2)
    ]
    hours = [at.astimezone(UTC).hour for at in local if at.date() == day]
    assert hours == [22, 1, *range(3, 23, 2)]


def disk_use_is_flat(simulation: Simulation) -> None:
    """The lake's own state stops growing; only what describes its data grows with it."""
    usage = simulation.usage
    for area in ("record log", "id index", "other state", "staging"):
        # Once as far as retention goes back, to before the outage, and in the end.
        settled, late = ([usage[day] for day in week] for week in (range(29, 36), range(54, 61)))
        most = 1.1 * max(one.bytes[area] for one in settled)
        assert max(one.bytes[area] for one in late) <= most, area
    sources, replayed = 2, int(SIXTY_DAYS.suppressed_from) + 1
    assert usage[60].files["manifests"] <= sources * (removal.KEPT + replayed + 30)
    assert usage[60].files["upkeep reports"] <= sources * upkeep.KEPT
    for area, a_day in (("ledger", sources), ("reports", 12 * sources)):
        assert usage[60].files[area] - usage[21].files[area] <= 40 * a_day, area
    # Data: as many files as partitions, but for the last day; of what was replaced that of a day.
    assert max(one.fullest for one in usage.values()) <= 13
    assert {usage[day].scattered for day in range(21, 61)} == {0}
    ordinary = [one.unneeded for day, one in usage.items() if day > 21 and not _replayed(day)]
    assert max(ordinary) <= 2 * max(usage[day].unneeded for day in range(2, 10))


def _replayed(day: int) -> bool:
    return day - 1 <= SIXTY_DAYS.replayed_on <= day


def tell(simulation: Simulation) -> None:
    """The table of docs/operations.md: files and kilobytes by area; see it with `pytest -s`."""
    days = (7, 21, 40, 60)
    print()
    for area in simulation.usage[60].files:
        used = [(simulation.usage[d].files[area], simulation.usage[d].bytes[area]) for d in days]
        cells = [f"{files:,} / {size / 1e3:,.0f}" for files, size in used]
        print(f"| {area} | {' | '.join(cells)} |")


def _days(count: int) -> list[datetime]:
    return [BEGIN + timedelta(days=number) for number in range(count)]

"""Overview and health: how every source is doing."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from datalake_assets.console.asked import Asked
from datalake_assets.instance.schedules import switched_off
from eventlake.api.health import Change, Counts, Level, OpenAlert, SourceHealth, change
from eventlake.api.past import Volume
from eventlake.rules.clock import now
from eventlake.rules.text import plural

if TYPE_CHECKING:
    from datalake_assets.console.app import Console

from datalake_assets.console.pages.runs import PERIODS, RunLine, RunningLine, slugs_of, started

_SPARK_DAYS = 14


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A source at one glance."""

    slug: str
    level: Level
    problems: tuple[str, ...]
    last_sync: RunLine | None
    lag_seconds: float | None
    rows_day: int
    rows_by_day: dict[str, int]
    files_waiting: int | None
    failing_since: datetime | None
    alerts: tuple[OpenAlert, ...]
    running: tuple[RunningLine, ...]
    schedule_off: bool  # in Dagster
    next_sync: datetime | None


@dataclass(frozen=True, slots=True)
class Overview:
    level: Level
    sentence: str
    rows_day: int
    runs_day: int
    failed_day: int
    tables: int
    rows: int
    bytes: int
    sources: tuple[SourceLine, ...]
    recent: tuple[RunLine, ...]


def overview(asked: Asked, console: "Console") -> Overview:
    health = asked.my.health(days=_SPARK_DAYS)
    slugs = slugs_of(asked)
    off = switched_off(asked.my.lake)
    lines = tuple(_source_line(asked, one, slugs, one.source.id in off) for one in health.sources)
    bad = [one for one in lines if one.level in (Level.FAILING, Level.WARNING)]
    runs = sorted((r for one in health.sources for r in one.runs), key=started, reverse=True)
    day = [one.last_day for one in health.sources]
    volumes = [volume for one in health.sources for volume in one.volume.values()]
    return Overview(
        level=health.level,
        sentence=_sentence(len(lines), len(bad)),
        rows_day=sum(one.rows for one in day),
        runs_day=sum(one.runs for one in day),
        failed_day=sum(one.failed for one in day),
        tables=sum(len(one.tables) for one in health.sources),
        rows=sum(one.rows for one in volumes),
        bytes=sum(one.bytes for one in volumes),
        sources=lines,
        recent=tuple(RunLine.of(run, slugs) for run in runs[:6]),
    )


def _sentence(sources: int, bad: int) -> str:
    if not bad:
        return "The source is healthy." if sources == 1 else f"All {sources} sources are healthy."
    return f"{bad} of {plural(sources, 'source')} {'needs' if bad == 1 else 'need'} attention."


def _source_line(asked: Asked, one: SourceHealth, slugs: dict[str, str], off: bool) -> SourceLine:
    status, waiting = one.status, one.status.waiting
    return SourceLine(
        slug=one.source.slug,
        level=one.level,
        problems=one.problems,
        last_sync=RunLine.of(status.last_sync, slugs) if status.last_sync else None,
        lag_seconds=one.lag.total_seconds() if one.lag is not None else None,
        rows_day=one.last_day.rows,
        rows_by_day={day: one.volume[day].rows if day in one.volume else 0 for day in one.days},
        files_waiting=None if waiting.problem else waiting.files,
        failing_since=status.failing.since if status.failing else None,
        alerts=one.alerts,
        running=tuple(RunningLine.of(asked, one.source, run) for run in status.open_runs),
        schedule_off=off,
        next_sync=None if off else status.next_sync,
    )


@dataclass(frozen=True, slots=True)
class TableTrend:
    """A table over the period; `rows_by_day` as in the catalog, by receivedAt."""

    name: str
    rows: int
    rows_by_day: dict[str, int]
    change: Change
    ratio: float | None
    notable: bool


@dataclass(frozen=True, slots=True)
class SourceTrend:
    slug: str
    level: Level
    problems: tuple[str, ...]
    lag_seconds: float | None
    change: Change
    ratio: float | None
    notable: bool
    total: Counts
    rows_by_day: dict[str, int]
    rows_by_hour: dict[str, int]
    synced_by_day: dict[str, Counts]
    tables: tuple[TableTrend, ...]


@dataclass(frozen=True, slots=True)
class HealthPage:
    days: int
    until: str  # the last day
    is_past: bool  # as the last days have no rows
    source: str
    slugs: tuple[str, ...]
    sources: tuple[SourceTrend, ...]


def health(asked: Asked, console: "Console") -> HealthPage:
    days, source = int(asked.one_of("days", PERIODS, "30")), asked.source()
    until = asked.day("until")
    found = synced = _health(asked, days, until, source)
    is_past = until is None and not any(_rows(one) for one in found)
    if is_past and (newest := max((max(one.volume, default="") for one in found), default="")):
        until = date.fromisoformat(newest)
        found = _health(asked, days, until, source)
    return HealthPage(
        days,
        str(until or now().date()),
        is_past and until is not None,
        source or "",
        tuple(one.slug for one in asked.my.sources),
        # Rows of the past may have been synced today.
        tuple(_trend(one, its) for one, its in zip(found, synced, strict=True)),
    )


def _health(
    asked: Asked, days: int, until: date | None, source: str | None
) -> tuple[SourceHealth, ...]:
    found = asked.my.health(days=days, last=until).sources
    return tuple(one for one in found if source in (None, one.source.slug))


def _rows(one: SourceHealth) -> int:
    return sum(rows_by_day(one.volume, one.days).values())


def _trend(one: SourceHealth, synced: SourceHealth) -> SourceTrend:
    tables = [_table_trend(name, volume, one) for name, volume in one.tables.items()]
    tables.sort(key=lambda table: (not table.notable, -table.rows, table.name))
    total = Counts.of(run for run in synced.runs if not run.is_replay)
    found = one.change
    return SourceTrend(
        slug=one.source.slug,
        level=one.level,
        problems=one.problems,
        lag_seconds=one.lag.total_seconds() if one.lag is not None else None,
        change=found,
        ratio=found.ratio,
        notable=found.notable,
        total=total,
        rows_by_day=rows_by_day(one.volume, one.days),
        rows_by_hour=_last_hours(one),
        synced_by_day=synced.by_day,
        tables=tuple(tables),
    )


def _table_trend(name: str, volume: Volume, one: SourceHealth) -> TableTrend:
    rows = rows_by_day(volume, one.days)
    found = change(volume, one.last)
    return TableTrend(name, sum(rows.values()), rows, found, found.ratio, found.notable)


def rows_by_day(volume: Volume, days: Iterable[str]) -> dict[str, int]:
    return {day: volume[day].rows if day in volume else 0 for day in days}


def _last_hours(one: SourceHealth, hours: int = 48) -> dict[str, int]:
    """The last two days by hour; none for tables that are partitioned by day."""
    found: dict[str, int] = {}
    end = one.at if one.last >= one.at.date() else datetime.combine(one.last, time(23))
    for n in reversed(range(hours)):
        hour = end - timedelta(hours=n)
        day = one.volume.get(f"{hour:%Y-%m-%d}")
        found[f"{hour:%Y-%m-%d %H}:00"] = day.hours[hour.hour] if day and day.hours else 0
    return found if any(found.values()) else {}

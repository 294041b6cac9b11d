"""How the sources of a lake are doing: one reading of it for every screen."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum

from eventlake.alerts.wording import MessageWriter
from eventlake.api.past import Past, Volume, summed
from eventlake.lake import Lake
from eventlake.runs.report_history import RunReport
from eventlake.settings.models import Source
from eventlake.status import SourceStatus, source_status

DAY = timedelta(days=1)
WEEK = 7
_NOTABLE = 0.3  # of a week's rows, up or down


class Level(StrEnum):
    """How a source is doing, the worst first."""

    FAILING = "failing"
    WARNING = "needs attention"
    NEW = "no sync yet"
    OK = "healthy"


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An open problem, as an alert would report it."""

    kind: str
    title: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the rows of some runs."""

    runs: int = 0
    failed: int = 0
    rows_in: int = 0
    rows: int = 0
    duplicates: int = 0
    rejected: int = 0
    rescued: int = 0

    @classmethod
    def of(cls, runs: Iterable[RunReport]) -> "Counts":
        runs = list(runs)
        lines = [run.source for run in runs if run.finished_well]
        return cls(
            runs=len(runs),
            failed=sum(not run.finished_well for run in runs),
            rows_in=sum(line.rows_in for line in lines),
            rows=sum(line.row_count for line in lines),
            duplicates=sum(line.duplicates for line in lines),
            rejected=sum(line.rejected for line in lines),
            rescued=sum(line.rescued_cells for line in lines),
        )

    def share(self, count: int) -> float | None:
        """A count as a part of all rows read; None without rows."""
        return count / self.rows_in if self.rows_in else None


@dataclass(frozen=True, slots=True)
class Change:
    """Rows of the last seven whole days, and of the seven before."""

    now: int
    before: int

    @property
    def ratio(self) -> float | None:
        return self.now / self.before - 1 if self.before else None

    @property
    def notable(self) -> bool:
        return self.ratio is not None and abs(self.ratio) >= _NOTABLE


@dataclass(frozen=True)
class SourceHealth:
    """A source over the last days; `runs` are without the lines of their tables."""

    source: Source
    status: SourceStatus
    alerts: tuple[OpenAlert, ...]
    runs: tuple[RunReport, ...]
    tables: dict[str, Volume]  # rows by day of receivedAt
    days: tuple[str, ...]  # of the period
    at: datetime
    volume: Volume = field(default_factory=dict)  # of all tables

    @property
    def level(self) -> Level:
        if self.status.failing:
            return Level.FAILING
        if any(problem.needs_attention for problem in self.status.problems):
            return Level.WARNING
        return Level.OK if self.status.last_sync else Level.NEW

    @property
    def problems(self) -> tuple[str, ...]:
        """What `datalake status` says of the source, the worst first."""
        return tuple(problem.text for problem in self.status.problems)

    @property
    def lag(self) -> timedelta | None:
        return self.status.lag

    @property
    def last_day(self) -> Counts:
        """Of runs that ended within the last 24 hours."""
        return Counts.of(run for run in self.runs if self.at - run.finished <= DAY)

    @property
    def by_day(self) -> dict[str, Counts]:
        """What became of the rows that syncs have read, by the day on which they began."""
        found: dict[str, list[RunReport]] = {day: [] for day in self.days}
        for run in self.runs:
            if not run.is_replay and run.source.day in found:
                found[run.source.day].append(run)
        return {day: Counts.of(runs) for day, runs in found.items()}

    @property
    def change(self) -> Change:
        return change(self.volume, self.last)

    @property
    def last(self) -> date:
        """The last day of the period."""
        return date.fromisoformat(self.days[-1])


@dataclass(frozen=True)
class Health:
    """All sources over the last days."""

    sources: tuple[SourceHealth, ...]
    at: datetime

    @property
    def level(self) -> Level:
        """That of the source in the worst state."""
        order = list(Level)
        return min((one.level for one in self.sources), key=order.index, default=Level.NEW)


def health(lake: Lake, past: Past, days: int, at: datetime, last: date | None = None) -> Health:
    """Read everything, change nothing. The period ends today, or with another last day."""
    last, sources = last or at.date(), lake.settings.sources
    return Health(tuple(_source(lake, past, one, days, at, last) for one in sources), at)


def _source(
    lake: Lake, past: Past, source: Source, days: int, at: datetime, last: date
) -> SourceHealth:
    first = last - timedelta(days=days - 1)
    tables = past.volumes(lake, source)
    status = source_status(lake, source, at, look_for_damage=False)
    status = replace(status, damaged=past.damaged(lake, source))
    return SourceHealth(
        source=source,
        status=status,
        alerts=_alerts(source, status, at),
        runs=tuple(past.runs(lake, source, first, last)),
        tables=tables,
        days=tuple(str(first + timedelta(days=n)) for n in range(days)),
        at=at,
        volume=summed(tables.values()),
    )


def _alerts(source: Source, status: SourceStatus, at: datetime) -> tuple[OpenAlert, ...]:
    writer = MessageWriter(source, at)
    troubles = status.troubles.items()
    return tuple(OpenAlert(kind, writer.title(kind, one), one.since) for kind, one in troubles)


def change(volume: Volume, today: date) -> Change:
    """The seven days before one against the seven before them; today is not over yet."""

    def rows(first: int, end: int) -> int:
        days = (str(today - timedelta(days=n)) for n in range(first, end))
        return sum(volume[day].rows for day in days if day in volume)

    return Change(rows(1, 1 + WEEK), rows(1 + WEEK, 1 + 2 * WEEK))

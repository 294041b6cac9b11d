"""What can be replayed: tables that the source has, and days that Dagster knows of it."""

from datetime import UTC, date, datetime, timedelta

from eventlake.lake import Lake
from eventlake.rules.errors import UsageError, did_you_mean
from eventlake.rules.types import TableSchema
from eventlake.runs.plan import list_archive
from eventlake.runs.unit import Window
from eventlake.settings.models import Source
from eventlake.state.source_state import SourceState, read_state


def refuse_replay(
    lake: Lake, source: Source, window: Window, tables: tuple[str, ...] | None
) -> list[TableSchema]:
    """The tables of a replay; what is asked for in vain is refused before anything begins."""
    lake = lake.for_source(source)
    state = read_state(lake.storage, source.id)
    _refuse_hours(source, window)
    _refuse_days(source, first_day(lake, source, state), window)
    known = {t: s for t, s in state.tables_of(source).items() if not source.skips(t)}
    for table in tables or ():
        if source.skips(table):
            raise UsageError(
                f"Table {table!r} is skipped (`skip_events` of source {source.slug!r}). To have "
                "its rows, take it off that list; to take them out of the lake, replay all tables."
            )
        if table not in known:
            raise UsageError(
                f"Source {source.slug!r} has no table {table!r}{did_you_mean(table, known) or '.'} "
                f"`datalake tables {source.database}` lists them."
            )
    return [known[table] for table in tables] if tables else list(known.values())


def first_day(lake: Lake, source: Source, state: SourceState) -> date | None:
    """Before its first sync a source begins with the oldest folder of its archive."""
    return list_archive(lake.storage, source).start(source, state)


def _refuse_hours(source: Source, window: Window) -> None:
    if not source.date_partition.has_hours and (window.start.hour or window.end.hour):
        raise UsageError(
            f"The tables of {source.slug!r} are partitioned by {source.date_partition}: a replay "
            "begins and ends at midnight. Give days, YYYY-MM-DD."
        )


def _refuse_days(source: Source, first: date | None, window: Window) -> None:
    """Dagster's partitions are the days from the source's first to today."""
    asked_first, asked_last = map(date.fromisoformat, window.days)
    today = datetime.now(UTC).date()
    if first is not None and asked_first < first:
        raise UsageError(
            f"{asked_first} cannot be replayed: the first day of source {source.slug!r} is {first}."
            f" Begin there, or set `start: {asked_first}` for the source in lake.yaml."
        )
    if asked_last > today:
        raise UsageError(
            f"{asked_last} cannot be replayed yet: today is {today} (UTC). End with today, that is "
            f"--to {today + timedelta(days=1)}."
        )

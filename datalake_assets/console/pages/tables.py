"""Tables, and the passport of each column."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from datalake_assets.console.asked import Asked
from datalake_assets.console.charts import Cell, days_until
from datalake_assets.console.pages.sources import rows_by_day
from eventlake.api import Fill, Profile, Table
from eventlake.api.past import Volume
from eventlake.catalog.base import CatalogPartition, partition_day
from eventlake.rules.clock import now
from eventlake.rules.errors import LakeError
from eventlake.rules.text import headline

if TYPE_CHECKING:
    from datalake_assets.console.app import Console

_TABLES = 200
_CHART_DAYS = 90
_FILL_DAYS = 30
_PICTURE_DAYS = 30
_SAMPLE = 10


@dataclass(frozen=True, slots=True)
class TableLine:
    name: str
    database: str
    event: str
    columns: int
    rows: int | None
    bytes: int | None
    files: int | None
    newest: str
    rows_by_day: dict[str, int]


@dataclass(frozen=True, slots=True)
class TablesPage:
    q: str
    database: str
    databases: tuple[str, ...]
    found: int
    page: int
    more: bool
    tables: tuple[TableLine, ...]


def tables(asked: Asked, console: "Console") -> TablesPage:
    my, q = asked.my, asked.text("q", 200).lower()
    databases = my.databases()
    database = asked.one_of("database", databases)
    page = asked.number("page", 1, range(1, 10_000))
    volumes = _volumes(asked)
    found = [
        table
        for table in my.tables(database or None)
        if q in table.name.lower() or q in table.event.lower()
    ]
    today = now().date()
    days = [str(today - timedelta(days=n)) for n in reversed(range(30))]
    shown = found[(page - 1) * _TABLES : page * _TABLES]
    lines = tuple(_table_line(table, volumes.get(table.name), days) for table in shown)
    return TablesPage(
        q, database, tuple(databases), len(found), page, len(found) > page * _TABLES, lines
    )


def _volumes(asked: Asked) -> dict[str, Volume]:
    my = asked.my
    return {k: v for one in my.sources for k, v in my.past.volumes(my.lake, one).items()}


def _table_line(table: Table, volume: Volume | None, days: Sequence[str]) -> TableLine:
    sums = volume.values() if volume is not None else ()
    known = volume is not None
    return TableLine(
        name=table.name,
        database=table.entry.database,
        event=table.event,
        columns=len(table.columns),
        rows=sum(one.rows for one in sums) if known else None,
        bytes=sum(one.bytes for one in sums) if known else None,
        files=sum(one.files for one in sums) if known else None,
        newest=max(volume or (), default=""),
        rows_by_day=rows_by_day(volume or {}, days),
    )


@dataclass(frozen=True, slots=True)
class ColumnLine:
    """A column in one line: `distinct` and `rescued` are of the newest rows."""

    name: str
    type: str
    path: str
    is_key: bool
    fill: float | None
    course: list[float]
    silent: bool
    distinct: int
    rescued: int
    first_run: str
    first_seen: datetime | None
    requested: str


@dataclass(frozen=True, slots=True)
class TablePage:
    name: str
    database: str
    table: str
    event: str
    location: str
    rows: int | None
    files: int | None
    bytes: int | None
    partitions: int
    rows_by_day: dict[str, int]
    bytes_by_day: dict[str, int]
    newest_partitions: tuple[Cell, ...]
    columns: tuple[ColumnLine, ...]
    fill_days: tuple[str, ...]
    newest_rows: int  # that were looked at
    rescued: dict[str, tuple[str, ...]]  # examples by column
    sample_columns: tuple[str, ...]
    sample: tuple[tuple[Any, ...], ...]
    queries: dict[str, str]
    in_dagster: bool  # as an asset
    problem: str  # why rows and shares are missing: a data file is gone or damaged


def table(asked: Asked, console: "Console") -> TablePage:
    database, name = asked.path["database"], asked.path["table"]
    found = asked.my.table(f"{database}.{name}")
    volume = _volumes(asked).get(found.name, {})
    days = days_until(max(volume), max(min(volume), _long_before(max(volume)))) if volume else []
    size, problem = found.size(), ""
    seen, fill = Profile(found.schema.empty_table(), {}, {}), Fill({}, {})
    try:
        seen, fill = found.profile(), found.fill(_FILL_DAYS)
    except (LakeError, pa.ArrowException) as error:
        problem = headline(error)
    partitions = found.partitions()
    newest = max((_day(found, one) for one in partitions), default="")
    sample = seen.rows[:_SAMPLE]
    counted = found.is_counted
    return TablePage(
        name=found.name,
        database=database,
        table=name,
        event=found.event,
        location=found.location,
        rows=size.rows if counted else None,
        files=size.files if counted else None,
        bytes=size.bytes if counted else None,
        partitions=size.partitions,
        rows_by_day=rows_by_day(volume, days),
        bytes_by_day={day: volume[day].bytes if day in volume else 0 for day in days},
        newest_partitions=_cells(found, partitions, days[-_PICTURE_DAYS:]) if counted else (),
        columns=_columns(found, fill, seen),
        fill_days=fill.days,
        newest_rows=len(seen.rows),
        rescued=seen.rescued,
        sample_columns=tuple(sample.column_names),
        sample=tuple(tuple(row.values()) for row in sample.to_pylist()),
        queries=_queries(found, newest),
        in_dagster=counted,
        problem=problem,
    )


def _long_before(day: str) -> str:
    return str(date.fromisoformat(day) - timedelta(days=_CHART_DAYS - 1))


def _day(table: Table, partition: CatalogPartition) -> str:
    return partition_day(table.entry.partition_keys, partition.values)


def _cells(
    table: Table, partitions: Sequence[CatalogPartition], days: Sequence[str]
) -> tuple[Cell, ...]:
    keys, shown = table.entry.partition_keys, set(days)
    hour = keys.index("hr") if "hr" in keys else None
    return tuple(
        Cell(day, None if hour is None else int(p.values[hour]), p.rows, p.files, p.bytes)
        for p in partitions
        if (day := _day(table, p)) in shown
    )


def _columns(table: Table, fill: Fill, seen: Profile) -> tuple[ColumnLine, ...]:
    requested, added = table.requested_types(), table.added_columns()
    silent = set(fill.silent())
    return tuple(
        ColumnLine(
            name=one.name,
            type=one.type,
            path=one.path,
            is_key=one.is_key,
            fill=None if one.is_key else fill.of(one.name),
            course=[] if one.is_key else list(fill.by_day(one.name).values()),
            silent=one.name in silent,
            distinct=seen.columns[one.name].distinct if one.name in seen.columns else 0,
            rescued=seen.columns[one.name].rescued if one.name in seen.columns else 0,
            first_run=added[one.name].run_id if one.name in added else "",
            first_seen=added[one.name].started if one.name in added else None,
            requested=requested[one.name].sql if one.name in requested else "",
        )
        for one in table.columns
    )


@dataclass(frozen=True, slots=True)
class TypeLine:
    """What would become of the values that were looked at as another type."""

    type: str
    exact: int
    lossy: int
    failed: int
    is_present: bool
    is_proposed: bool


@dataclass(frozen=True, slots=True)
class ColumnPage:
    """The passport of a column."""

    name: str
    database: str
    table: str
    column: str
    type: str
    path: str
    is_key: bool
    fill: float | None
    fill_by_day: dict[str, float]
    silent: bool
    newest_rows: int
    values: int
    distinct: int
    kinds: dict[str, int]
    frequent: tuple[tuple[str, int], ...]
    rescued: int
    rescued_examples: tuple[str, ...]
    types: tuple[TypeLine, ...]
    requested: str
    proposed: str
    reason: str
    command: str
    source: str
    first_day: str
    after_last_day: str
    first_run: str
    first_run_started: datetime | None
    first_message_id: str
    first_received: datetime | None
    first_library: str


def column(asked: Asked, console: "Console") -> ColumnPage:
    path = asked.path
    table = asked.my.table(f"{path['database']}.{path['table']}")
    found = table.passport(path["column"], _FILL_DAYS)
    present, proposal, first = found.column.type, found.proposal, found.first
    fill = table.fill(_FILL_DAYS)
    days = sorted(_day(table, one) for one in table.partitions())
    return ColumnPage(
        name=f"{table.name}.{found.column.name}",
        database=table.entry.database,
        table=table.entry.name,
        column=found.column.name,
        type=present,
        path=found.column.path,
        is_key=found.column.is_key,
        fill=None if found.column.is_key else fill.of(found.column.name),
        fill_by_day=found.fill,
        silent=found.silent,
        newest_rows=found.values.rows,
        values=found.values.values,
        distinct=found.values.distinct,
        kinds=found.kinds,
        frequent=found.frequent,
        rescued=found.values.rescued,
        rescued_examples=found.rescued,
        types=tuple(
            TypeLine(
                type.sql,
                counts.exact,
                counts.lossy,
                counts.failed,
                is_present=type.sql == present,
                is_proposed=proposal is not None and type is proposal.type,
            )
            for type, counts in found.casts.items()
        ),
        requested=found.requested.sql if found.requested else "",
        proposed=proposal.type.sql if proposal else "",
        reason=proposal.reason if proposal else "",
        command=f"datalake retype {table.name}.{found.column.name} {proposal.type.value}"
        if proposal
        else "",
        source=table.owner.source.slug if table.owner else "",
        first_day=days[0] if days else "",
        after_last_day=str(date.fromisoformat(days[-1]) + timedelta(days=1)) if days else "",
        first_run=first.run.run_id if first.run else "",
        first_run_started=first.run.started if first.run else None,
        first_message_id=first.message_id,
        first_received=first.received_at,
        first_library=first.library,
    )


def _queries(table: Table, newest: str) -> dict[str, str]:
    where = f"day = '{newest}'"
    if "year" in table.entry.partition_keys and newest:
        year, month, day = newest.split("-")
        where = f"year = '{year}' AND month = '{month}' AND day = '{day}'"
    quoted = f'"{table.entry.database}"."{table.entry.name}"'
    spark = f"`{table.entry.database}`.`{table.entry.name}`"
    return {
        "Athena": f"SELECT *\nFROM {quoted}\nWHERE {where}\nLIMIT 100",
        "Spark": f"SELECT *\nFROM {spark}\nWHERE {where}\nLIMIT 100",
        "DuckDB": f'datalake sql "SELECT * FROM {table.name} WHERE {where} LIMIT 100"',
        "pandas": 'import eventlake\n\nmy = eventlake.open("lake.yaml")\n'
        f'rows = my.sql("SELECT * FROM {table.name} WHERE {where}").to_pandas()',
    }

"""Tables, and the passport of each column."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from datalake_assets.console.asked import Asked
from eventlake.api.past import Volume
from eventlake.api.tables import Fill, Table
from eventlake.catalog.base import partition_day
from eventlake.rules.clock import now
from eventlake.rules.names import RESCUED_DATA
from eventlake.runs.report_history import RunReport

if TYPE_CHECKING:
    from datalake_assets.console.app import Console

from datalake_assets.console.pages.sources import rows_by_day

_TABLES = 200


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
    """The passport of a column."""

    name: str
    type: str
    path: str
    is_key: bool
    fill: float | None
    course: list[float]
    silent: bool
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
    columns: tuple[ColumnLine, ...]
    fill_days: tuple[str, ...]
    sample_columns: tuple[str, ...]
    sample: tuple[tuple[Any, ...], ...]
    rescued: tuple[str, ...]
    queries: dict[str, str]
    in_dagster: bool  # as an asset


def table(asked: Asked, console: "Console") -> TablePage:
    database, name = asked.path["database"], asked.path["table"]
    found = asked.my.table(f"{database}.{name}")
    size, volume = found.size(), _volumes(asked).get(found.name, {})
    days = sorted(volume)[-90:]
    sample, fill = found.sample(10), found.fill()
    rescued = sample[RESCUED_DATA].to_pylist() if RESCUED_DATA in sample.column_names else []
    counted = found.is_counted
    partitions = found.partitions()
    newest = max(
        (partition_day(found.entry.partition_keys, p.values) for p in partitions), default=""
    )
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
        bytes_by_day={day: volume[day].bytes for day in days},
        columns=_columns(asked, found, fill),
        fill_days=fill.days,
        sample_columns=tuple(sample.column_names),
        sample=tuple(tuple(row.values()) for row in sample.to_pylist()),
        rescued=tuple(str(one) for one in rescued if one is not None),
        queries=_queries(found, newest),
        in_dagster=counted,
    )


def _columns(asked: Asked, table: Table, fill: Fill) -> tuple[ColumnLine, ...]:
    requested, first = table.requested_types(), _first_seen(asked, table)
    return tuple(
        ColumnLine(
            name=one.name,
            type=one.type,
            path=one.path,
            is_key=one.is_key,
            fill=None if one.is_key else fill.of(one.name),
            course=[] if one.is_key else fill.course(one.name),
            silent=not one.is_key and fill.is_silent(one.name),
            first_run=first[one.name].run_id if one.name in first else "",
            first_seen=first[one.name].started if one.name in first else None,
            requested=requested[one.name].sql if one.name in requested else "",
        )
        for one in table.columns
    )


def _first_seen(asked: Asked, table: Table) -> dict[str, RunReport]:
    """The run that added each column, of the last 90 days."""
    my, last = asked.my, now().date()
    found: dict[str, RunReport] = {}
    for source in my.sources:
        if source.database == table.entry.database:
            for run in my.past.runs(my.lake, source, last - timedelta(days=89), last):
                for line in run.tables:
                    if line.table_name == table.entry.name:
                        found |= {column.name: run for column in line.new_columns or ()}
    return found


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

"""Suppressed users: their rows that remain in the lake until a replay removes them."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.lake import Lake
from eventlake.rules.names import STANDARD_COLUMNS
from eventlake.rules.suppression import IdKind, People
from eventlake.settings.models import Source
from eventlake.state.source_state import read_state
from eventlake.state.suppression import Suppression
from eventlake.storage import Storage

_DAY = timedelta(days=1)
_THREADS = 8


@dataclass(frozen=True, slots=True)
class Remaining:
    """The number of rows in a table (`name` as in the catalog), received on a day."""

    table: str
    name: str
    day: date
    rows: int


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """Consecutive days, and the tables that have rows on any of them."""

    first: date
    end: date  # the day after the last
    tables: tuple[str, ...]


def remaining(
    lake: Lake, source: Source, progress: Callable[[str], None] = lambda _: None
) -> list[Remaining]:
    """The remaining rows by table and day; reads two columns of every file."""
    lake = lake.for_source(source)
    suppression = Suppression.of(lake.storage, source)
    if suppression is None:
        return []
    people = suppression.people(lake.storage)
    columns = [c.name(source.naming) for k in IdKind for c in STANDARD_COLUMNS if c.field == k]
    found: list[Remaining] = []
    for table, schema in read_state(lake.storage, source.id).tables_of(source).items():
        progress(f"{schema.key}")
        days: dict[date, list[str]] = {}
        for partition in lake.catalog.partitions(schema.database, schema.name):
            day = source.date_partition.parse(partition.values).date()
            days.setdefault(day, []).append(partition.location)
        with ThreadPoolExecutor(_THREADS) as pool:
            counts = pool.map(lambda at: _rows(lake.storage, at, columns, people), days.values())
            for day, rows in zip(days, counts, strict=True):
                if rows:
                    found.append(Remaining(table, schema.name, day, rows))
    return found


def replay_ranges(found: Iterable[Remaining]) -> Iterator[ReplayRange]:
    """The replays that remove all remaining rows."""
    tables: dict[date, set[str]] = {}
    for one in found:
        tables.setdefault(one.day, set()).add(one.table)
    days = sorted(tables)
    while days:
        first = end = days[0]
        needed: set[str] = set()
        while days and days[0] == end:
            needed |= tables[days.pop(0)]
            end += _DAY
        yield ReplayRange(first, end, tuple(sorted(needed)))


def _rows(storage: Storage, folders: list[str], columns: list[str], people: People) -> int:
    rows = 0
    for file in (file for folder in folders for file in storage.files(folder, recursive=False)):
        with storage.open_input(file.path) as stream:
            users, visitors = pq.ParquetFile(stream).read(columns).select(columns).columns
        named = pc.or_(_among(users, people.users), _among(visitors, people.anonymous))
        rows += pc.sum(named).as_py() or 0
    return rows


def _among(ids: pa.ChunkedArray, suppressed: frozenset[str]) -> pa.ChunkedArray:
    """Whether each id is suppressed; every distinct id is looked up once."""
    hits = [id for id in pc.unique(ids).to_pylist() if id is not None and id in suppressed]
    return pc.is_in(ids, pa.array(hits, pa.string()))

"""Tables of the lake as Python sees them, with samples and counts of values by column."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.catalog.base import CatalogPartition, CatalogTable, partition_day
from eventlake.lake import Lake
from eventlake.rules.errors import UsageError, did_you_mean
from eventlake.rules.names import STANDARD_COLUMNS
from eventlake.rules.suppression import IdKind
from eventlake.rules.types import LakeType
from eventlake.state.source_state import read_state
from eventlake.state.suppression import suppressed_people
from eventlake.storage import Storage

if TYPE_CHECKING:
    import duckdb
    import pyarrow.dataset as ds

_COUNTED = 100  # partitions whose footers are read, at most: the newest of each day


@dataclass(frozen=True, slots=True)
class Fill:
    """Rows, and rows with a value by column, by day; files without a column have no value of it."""

    rows: dict[str, int]
    filled: dict[str, dict[str, int]]

    @property
    def days(self) -> tuple[str, ...]:
        return tuple(sorted(self.rows))

    def of(self, column: str, days: Iterable[str] | None = None) -> float | None:
        """The share of rows with a value; None without rows."""
        chosen = self.days if days is None else tuple(days)
        rows = sum(self.rows[day] for day in chosen)
        return sum(self.filled[day].get(column, 0) for day in chosen) / rows if rows else None

    def course(self, column: str) -> list[float]:
        """The share of each day."""
        return [self.of(column, [day]) or 0.0 for day in self.days]

    def is_silent(self, column: str) -> bool:
        """Whether a column that had values on the days before has none on the last two."""
        early, late = self.days[:-2], self.days[-2:]
        return bool(early) and bool(self.of(column, early)) and not self.of(column, late)


def read_fill(
    storage: Storage, table: CatalogTable, partitions: Sequence[CatalogPartition], days: int
) -> Fill:
    """The newest days of a table, a bounded number of files."""
    by_day: dict[str, list[CatalogPartition]] = {}
    for one in partitions if table.format == "parquet" else ():
        by_day.setdefault(partition_day(table.partition_keys, one.values), []).append(one)
    newest = sorted(by_day)[-days:]
    each = max(1, _COUNTED // max(1, len(newest)))
    found = Fill(dict.fromkeys(newest, 0), {day: {} for day in newest})
    chosen = [(day, one) for day in newest for one in by_day[day][-each:]]
    counts = storage.each(lambda one: _counts(storage, one[1]), chosen)
    for (day, _), (rows, filled) in zip(chosen, counts, strict=True):
        found.rows[day] += rows
        for column, count in filled.items():
            found.filled[day][column] = found.filled[day].get(column, 0) + count
    return found


def _counts(storage: Storage, partition: CatalogPartition) -> tuple[int, dict[str, int]]:
    rows, filled = 0, dict[str, int]()
    for file in storage.files(partition.location, recursive=False):
        with storage.open_input(file.path) as stream:
            footer = pq.read_metadata(stream)
        rows += footer.num_rows
        for group in range(footer.num_row_groups):
            chunks = footer.row_group(group)
            for n in range(chunks.num_columns):
                chunk = chunks.column(n)
                known = chunk.statistics is not None and chunk.statistics.has_null_count
                nulls = chunk.statistics.null_count if known else 0
                name = chunk.path_in_schema
                filled[name] = filled.get(name, 0) + chunk.num_values - nulls
    return rows, filled


_PEOPLE = [column for kind in IdKind for column in STANDARD_COLUMNS if column.field == kind]
_SUPPRESSED = 200  # rows of suppressed people that are passed over, by partition
_SAMPLED = 10  # partitions that are looked into for a sample


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column; `type` is spelled as in SQL, `path` is the JSON pointer to its field."""

    name: str
    type: str
    path: str = ""
    is_key: bool = False  # of the partitions


@dataclass(frozen=True, slots=True)
class TableSize:
    """The size of a table by its catalog."""

    partitions: int
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the lake, as it was when it was asked for.

    >>> table = my.table("web_shop.page")
    >>> table.event, len(table.columns), table.size().rows
    ('page', 47, 35)
    """

    lake: Lake
    entry: CatalogTable

    @property
    def name(self) -> str:
        """The full name: `database.table`."""
        return self.entry.full_name

    @property
    def event(self) -> str:
        """The event that the table has, as it was sent."""
        return self.entry.comment

    @property
    def location(self) -> str:
        """The folder of its data files, as a path or URI."""
        return self.lake.storage.full(self.entry.location)

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """The columns in the order of the catalog, then the keys of the partitions."""
        keys = (TableColumn(key, "string", is_key=True) for key in self.entry.partition_keys)
        own = (TableColumn(one.name, one.type, one.comment) for one in self.entry.columns)
        return (*own, *keys)

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow types."""
        from eventlake.sql.scan import column_types

        return column_types(self.entry)

    def partitions(self) -> list[CatalogPartition]:
        """Where its rows lie, by the values of its keys."""
        return self.lake.catalog.partitions(self.entry.database, self.entry.name)

    @property
    def is_counted(self) -> bool:
        """Whether the catalog counts its rows: only those of events, not the sync reports."""
        return self.entry.format == "parquet"

    def size(self) -> TableSize:
        found = self.partitions()
        return TableSize(
            len(found),
            sum(one.rows for one in found),
            sum(one.files for one in found),
            sum(one.bytes for one in found),
        )

    def requested_types(self) -> dict[str, LakeType]:
        """Types requested by `datalake retype` that wait for a replay, by column."""
        sources = self.lake.settings.sources
        states = (read_state(self.lake.for_source(one).storage, one.id) for one in sources)
        requested = (state.requested_types.get(self.name) for state in states)
        return next(filter(None, requested), {})

    def sample(self, rows: int = 10) -> pa.Table:
        """Some rows of the newest partitions, without those of suppressed people.

        >>> my.table("web_shop.page").sample(3).num_rows
        3
        """
        found, wanted = [self.schema.empty_table()], rows
        for partition in sorted(self.partitions(), key=lambda one: one.values, reverse=True):
            some = self._rows_of(partition).head(wanted + _SUPPRESSED)
            found.append(self._shown(some)[:wanted])
            wanted -= len(found[-1])
            if not wanted or len(found) > _SAMPLED:
                break
        return pa.concat_tables(found)

    def _rows_of(self, partition: CatalogPartition) -> "ds.Dataset":
        import pyarrow.dataset as ds

        from eventlake.sql.scan import scan

        rows = scan(self.lake.storage, self.entry, [partition])
        return ds.dataset(rows) if isinstance(rows, pa.Table) else rows

    def _shown(self, rows: pa.Table) -> pa.Table:
        rows = rows.select(self.schema.names).cast(self.schema)
        for source in self.lake.settings.sources:
            people = suppressed_people(self.lake.for_source(source).storage, source)
            names = [column.name(source.naming) for column in _PEOPLE]
            if (
                people
                and source.database == self.entry.database
                and set(names) <= {*rows.schema.names}
            ):
                users = zip(*(rows[name].to_pylist() for name in names), strict=True)
                keep = [not people.has({"userId": u, "anonymousId": a}) for u, a in users]
                rows = rows.filter(pa.array(keep, pa.bool_()))
        return rows

    def fill(self, days: int = 14) -> "Fill":
        """The share of rows with a value, by column, for the newest days: from footers alone.

        >>> fill = my.table("web_shop.page").fill()
        >>> fill.of("message_id"), fill.days
        (1.0, ('2026-10-01', '2026-10-02'))
        """
        return read_fill(self.lake.storage, self.entry, self.partitions(), days)

    def scan(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> "Scan":
        """Some columns and rows; files of partitions that cannot match are not opened.

        >>> import pyarrow.compute as pc
        >>> first_day = pc.field("day") == "2026-10-01"
        >>> my.table("web_shop.page").scan(["message_id", "hr"], first_day).arrow().num_rows
        20
        """
        import pyarrow.dataset as ds

        from eventlake.sql.scan import scan, snapshot

        known = self.schema.names
        for column in columns or ():
            if column not in known:
                raise UsageError(
                    f"Table {self.name} has no column {column!r}"
                    f"{did_you_mean(column, known) or '.'} `Table.columns` lists them."
                )
        entry, partitions = snapshot(self.lake.catalog, self.entry)
        found = scan(self.lake.storage, entry, partitions)
        rows = ds.dataset(found) if isinstance(found, pa.Table) else found
        return Scan(rows, tuple(columns or known), filter)


@dataclass(frozen=True, slots=True)
class Scan:
    """Chosen columns and rows of a table; each method reads them."""

    dataset: "ds.Dataset"
    columns: tuple[str, ...]
    filter: pc.Expression | None = None

    def _scanner(self) -> "ds.Scanner":
        return self.dataset.scanner(columns=list(self.columns), filter=self.filter)

    def reader(self) -> pa.RecordBatchReader:
        """The rows batch by batch, without holding all of them."""
        return self._scanner().to_reader()

    def arrow(self) -> pa.Table:
        """All rows in memory."""
        return self._scanner().to_table()

    def duckdb(
        self, connection: "duckdb.DuckDBPyConnection | None" = None
    ) -> "duckdb.DuckDBPyRelation":
        """A DuckDB relation that reads the rows when it is executed.

        >>> my.table("web_shop.page").scan().duckdb().count("*").fetchall()
        [(35,)]
        """
        import duckdb

        rows = self.dataset if self.filter is None else self.dataset.filter(self.filter)
        relation = (connection or duckdb.default_connection()).from_arrow(rows)
        return relation.project(", ".join(f'"{column}"' for column in self.columns))

    def pandas(self) -> Any:
        """A pandas DataFrame."""
        return self.arrow().to_pandas()

    def polars(self) -> Any:
        """A Polars DataFrame, if Polars is installed."""
        try:
            import polars  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise UsageError(
                "Polars is not installed. Install it (`pip install polars`), or use `arrow()` or "
                "`pandas()`."
            ) from None
        return polars.from_arrow(self.arrow())


def find_table(lake: Lake, database: str, name: str) -> Table:
    """A table; raises `UsageError` with similar names."""
    found = lake.catalog.table(known_database(lake, database), name)
    if found is None:
        known = [table.name for table in lake.catalog.tables(database)]
        raise UsageError(
            f"Database {database} has no table {name!r}{did_you_mean(name, known) or '.'} "
            f"`datalake tables {database}` lists its tables."
        )
    return Table(lake, found)


def known_database(lake: Lake, name: str) -> str:
    known = lake.catalog.databases()
    if name in known:
        return name
    listed = ", ".join(known) or "none yet; `datalake sync` creates them"
    raise UsageError(
        f"There is no database {name!r}{did_you_mean(name, known)} (databases: {listed})."
    )

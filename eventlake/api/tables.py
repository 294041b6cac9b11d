"""Tables of the lake as Python sees them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from eventlake.api.past import Past
from eventlake.catalog.base import CatalogPartition, CatalogTable
from eventlake.checks.fill import Fill, read_fill
from eventlake.lake import Lake
from eventlake.rules.errors import UsageError, did_you_mean
from eventlake.rules.names import STANDARD_COLUMNS
from eventlake.rules.suppression import IdKind
from eventlake.rules.types import LakeType, TableSchema
from eventlake.settings.models import Source
from eventlake.state.suppression import suppressed_people
from eventlake.storage import Storage

if TYPE_CHECKING:
    import duckdb
    import pyarrow.dataset as ds

    from eventlake.api.passport import Passport, Profile
    from eventlake.runs.report_history import RunReport


_PEOPLE = [column for kind in IdKind for column in STANDARD_COLUMNS if column.field == kind]
_PAYLOAD = "record_payload"
_SUPPRESSED = 200  # rows of suppressed people that a sample passes over
_PARTITIONS = 64  # that are looked into for a sample


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
class Owner:
    """The source that writes a table, its schema, and types that wait for a replay, by column."""

    source: Source
    schema: TableSchema
    requested: dict[str, LakeType]


@dataclass(frozen=True)
class Table:
    """A table of the lake, as it was when it was asked for.

    >>> table = my.table("web_shop.page")
    >>> table.event, len(table.columns), table.size().rows
    ('page', 47, 35)
    """

    lake: Lake
    entry: CatalogTable
    past: Past = field(default_factory=Past, repr=False, compare=False)

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

    @cached_property
    def owner(self) -> Owner | None:
        """The source of an event table; None for the tables of reports and records."""
        for source in self.lake.settings.sources:
            state = self.past.state(self.lake, source)
            if schema := state.tables.get(self.name):
                return Owner(source, schema, state.requested_types.get(self.name, {}))
        return None

    def requested_types(self) -> dict[str, LakeType]:
        """Types requested by `datalake retype` that wait for a replay, by column."""
        return self.owner.requested if self.owner else {}

    @cached_property
    def storage(self) -> Storage:
        """The storage of its files, with the access of its source."""
        lake = self.lake.for_source(self.owner.source) if self.owner else self.lake
        return lake.storage

    def sample(self, rows: int = 10) -> pa.Table:
        """Some rows of the newest partitions, without those of suppressed people.

        >>> my.table("web_shop.page").sample(3).num_rows
        3
        """
        newest = sorted(self.partitions(), key=lambda one: one.values, reverse=True)
        chosen, found = list[CatalogPartition](), 0
        for one in newest[:_PARTITIONS]:
            chosen.append(one)
            found += one.rows
            if found >= rows + _SUPPRESSED:
                break
        return self.rows_of(chosen, rows)

    def rows_of(
        self,
        partitions: Sequence[CatalogPartition],
        rows: int | None = None,
        filter: pc.Expression | None = None,
    ) -> pa.Table:
        """The rows of some partitions, or the first of them, without suppressed people."""
        import pyarrow.dataset as ds

        from eventlake.sql.scan import scan

        found = scan(self.storage, self.entry, partitions)
        data = ds.dataset(found) if isinstance(found, pa.Table) else found
        scanner = data.scanner(columns=self.schema.names, filter=filter)
        read = scanner.to_table() if rows is None else scanner.head(rows + _SUPPRESSED)
        return self._shown(read)[:rows]

    def _shown(self, rows: pa.Table) -> pa.Table:
        rows = rows.cast(self.schema)
        for column, values in self.suppressed().items():
            named = pc.is_in(rows[column], pa.array(values, pa.string()))
            rows = rows.filter(pc.invert(named))
        for column in self.withheld():
            empty = pa.nulls(len(rows), rows.schema.field(column).type)
            rows = rows.set_column(rows.schema.get_field_index(column), column, empty)
        return rows

    def withheld(self) -> tuple[str, ...]:
        """Columns with raw lines, which may name suppressed people in any place."""
        known = {one.name for one in self.entry.columns}
        if self.owner is not None or _PAYLOAD not in known:
            return ()
        lakes = ((self.lake.for_source(one), one) for one in self.lake.settings.sources)
        anybody = any(suppressed_people(lake.storage, one) for lake, one in lakes)
        return (_PAYLOAD,) if anybody else ()

    def suppressed(self) -> dict[str, frozenset[str]]:
        """The suppressed people of its source: the ids in each column that identifies one."""
        people = suppressed_people(self.storage, self.owner.source) if self.owner else None
        if people is None or self.owner is None:
            return {}
        ids = {IdKind.USER: people.users, IdKind.ANONYMOUS: people.anonymous}
        columns = {one.field: one.name(self.owner.source.naming) for one in _PEOPLE}
        known = {one.name for one in self.entry.columns}
        return {columns[kind]: ids[kind] for kind in IdKind if columns[kind] in known}

    def profile(self) -> "Profile":
        """The newest rows, and for each column how many have a value, how many of them differ.

        >>> found = my.table("web_shop.page").profile().columns["message_id"]
        >>> found.rows, found.values, found.distinct
        (35, 35, 35)
        """
        from eventlake.api.passport import profile

        return profile(self)

    def passport(self, column: str, days: int = 30) -> "Passport":
        """A column: fill rate by day, values and their kinds, what was rescued, its first event.

        >>> found = my.table("web_shop.page").passport("name")
        >>> found.column.path, found.kinds, found.first.library
        ('/name', {'text': 35}, 'analytics.js npm:next-1.70.0')
        """
        from eventlake.api.passport import passport

        return passport(self, self.column(column), days)

    def added_columns(self) -> "dict[str, RunReport]":
        """The run that added each column, of the last 90 days."""
        from eventlake.api.passport import added_columns

        return added_columns(self)

    def column(self, name: str) -> TableColumn:
        """A column by its name."""
        for one in self.columns:
            if one.name == name:
                return one
        raise self._unknown(name)

    def _unknown(self, name: str) -> UsageError:
        known = self.schema.names
        return UsageError(
            f"Table {self.name} has no column {name!r}{did_you_mean(name, known) or '.'} "
            "`Table.columns` lists them."
        )

    def fill(self, days: int = 30) -> "Fill":
        """The share of rows with a value, by column, for the newest days: from footers alone.

        >>> fill = my.table("web_shop.page").fill()
        >>> fill.of("message_id"), fill.days
        (1.0, ('2026-10-01', '2026-10-02'))
        """
        return read_fill(self.storage, self.entry, self.partitions(), days)

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
                raise self._unknown(column)
        entry, partitions = snapshot(self.lake.catalog, self.entry)
        found = scan(self.storage, entry, partitions)
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
            import polars
        except ImportError:
            raise UsageError(
                "Polars is not installed. Install it (`pip install polars`), or use `arrow()` or "
                "`pandas()`."
            ) from None
        return polars.from_arrow(self.arrow())


def find_table(lake: Lake, database: str, name: str, past: Past) -> Table:
    """A table; raises `UsageError` with similar names."""
    found = lake.catalog.table(known_database(lake, database), name)
    if found is None:
        known = [table.name for table in lake.catalog.tables(database)]
        raise UsageError(
            f"Database {database} has no table {name!r}{did_you_mean(name, known) or '.'} "
            f"`datalake tables {database}` lists its tables."
        )
    return Table(lake, found, past)


def known_database(lake: Lake, name: str) -> str:
    known = lake.catalog.databases()
    if name in known:
        return name
    listed = ", ".join(known) or "none yet; `datalake sync` creates them"
    raise UsageError(
        f"There is no database {name!r}{did_you_mean(name, known)} (databases: {listed})."
    )

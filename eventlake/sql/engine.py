"""Runs a SQL statement over the lake."""

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from threading import Timer
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.catalog.base import Catalog, CatalogTable
from eventlake.rules.errors import LakeError, StateError, UsageError
from eventlake.sql.scan import column_types, scan, snapshot
from eventlake.sql.statement import (
    Statement,
    needed_partitions,
    parse,
    quoting,
    resolve,
    unknown_table,
)
from eventlake.storage import Storage

_SETTINGS = {
    "TimeZone": "UTC",  # days of the lake are in UTC
    "python_enable_replacements": "false",  # no table from a Python variable
    "autoinstall_known_extensions": "false",  # no downloads
}
# No files of the machine, no network.
_ONLY_OUR_SCANS: dict[str, Any] = {"enable_external_access": "false"}
_SCAN = "__scan_"
_HIDDEN = "__hidden_"
_EMPTY = "__empty"


@dataclass(frozen=True, slots=True)
class Hidden:
    """What a query does not see of a table: rows by values of a column, and whole columns."""

    values: Mapping[str, Collection[str]] = field(default_factory=dict)
    columns: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """Bounds of a query; more rows than `rows` are not read. Nothing is written to disk."""

    seconds: float = 30
    memory: str = "1GB"
    rows: int = 10_000


@dataclass(frozen=True)
class LakeSql:
    """Runs SQL on the current state of the catalog; nothing is kept between queries."""

    catalog: Catalog
    storage: Storage
    hidden: Callable[[CatalogTable], Hidden] = lambda table: Hidden()
    # No statement can name the scans below the views, which have the hidden rows.
    _secret: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)

    def query(self, sql: str, limits: SqlLimits | None = None) -> pa.Table:
        """The rows of one read-only statement; raises UsageError if it is wrong."""
        # DuckDB prints warnings if a connection is open when the program ends.
        with closing(duckdb.connect(config=_ONLY_OUR_SCANS)) as connection:
            for name, value in _SETTINGS.items():
                connection.execute(f"SET {name} = '{value}'")
            if limits is not None:
                connection.execute(f"SET memory_limit = '{limits.memory}'")
                connection.execute("SET max_temp_directory_size = '0B'")
            databases = self.catalog.databases()
            for database in databases:
                connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{database}"')
            if databases:
                connection.execute(f"SET search_path = '{','.join(databases)}'")
            connection.execute("SET lock_configuration = true")
            with _interrupted_after(connection, limits):
                statement = self._parsed(connection, sql, databases)
                return self._run(connection, statement, databases, limits)

    def _parsed(
        self, connection: duckdb.DuckDBPyConnection, sql: str, databases: list[str]
    ) -> Statement:
        try:
            return parse(connection, sql)
        except UsageError as error:
            if hint := quoting(connection, error, self.catalog, databases):
                raise UsageError(f"{error}{hint}") from error
            raise

    def _run(
        self,
        connection: duckdb.DuckDBPyConnection,
        statement: Statement,
        databases: list[str],
        limits: SqlLimits | None,
    ) -> pa.Table:
        meant = {m: resolve(self.catalog, databases, m) for m in statement.mentions}
        tables = {table.full_name: table for table in meant.values() if table}
        for table in tables.values():
            self._make_view(connection, statement, table)
        if statement.lists_tables:
            self._make_empty_tables(connection, databases, tables)
        try:
            return _whole_numbers(_rows(connection.sql(statement.sql), limits))
        except duckdb.CatalogException as error:
            # Checked late, because the name may be that of a table of DuckDB.
            for mention in (m for m, table in meant.items() if table is None):
                raise unknown_table(self.catalog, databases, mention) from error
            raise _refused(error) from error
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            raise
        except duckdb.Error as error:
            raise _refused(error) from error

    def _make_view(
        self, connection: duckdb.DuckDBPyConnection, statement: Statement, table: CatalogTable
    ) -> None:
        """Create a view of the partitions that the statement may need."""
        table, partitions = snapshot(self.catalog, table)
        partitions = needed_partitions(connection, statement, table, partitions)
        source = f"{_SCAN}{self._secret}.{table.full_name}"
        connection.register(source, scan(self.storage, table, partitions))
        hidden = self.hidden(table)
        columns = ", ".join(
            f'NULL::VARCHAR AS "{name}"' if name in hidden.columns else f'"{name}"'
            for name in column_types(table).names
        )
        shown = " AND ".join(self._shown(connection, table, hidden)) or "true"
        connection.execute(
            f'CREATE VIEW {_name(table)} AS SELECT {columns} FROM "{source}" WHERE {shown}'
        )

    def _shown(
        self, connection: duckdb.DuckDBPyConnection, table: CatalogTable, hidden: Hidden
    ) -> Iterator[str]:
        """Conditions that leave out the hidden rows."""
        for column, values in hidden.values.items():
            name = f"{_HIDDEN}{self._secret}.{table.full_name}.{column}"
            connection.register(name, pa.table({"value": pa.array(list(values), pa.string())}))
            yield f'coalesce("{column}" NOT IN (SELECT value FROM "{name}"), true)'

    def _make_empty_tables(
        self,
        connection: duckdb.DuckDBPyConnection,
        databases: list[str],
        known: Collection[str],
    ) -> None:
        """Create all other tables without rows, for statements that list tables and columns."""
        others = [t for d in databases for t in self.catalog.tables(d) if t.full_name not in known]
        for table in others:
            connection.register(_EMPTY, column_types(table).empty_table())
            connection.execute(f'CREATE TABLE {_name(table)} AS FROM "{_EMPTY}"')
            connection.unregister(_EMPTY)


@contextmanager
def _interrupted_after(
    connection: duckdb.DuckDBPyConnection, limits: SqlLimits | None
) -> Iterator[None]:
    if limits is None:
        yield
        return
    timer = Timer(limits.seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    except duckdb.InterruptException:
        raise UsageError(
            f"The query was stopped after {limits.seconds:g} seconds. Select fewer days, for "
            "example `WHERE day >= '2026-10-01'`, or fewer columns."
        ) from None
    except duckdb.OutOfMemoryException:
        raise UsageError(
            f"The query needs more than {limits.memory} of memory. Select fewer days or columns."
        ) from None
    finally:
        timer.cancel()


def _rows(relation: duckdb.DuckDBPyRelation, limits: SqlLimits | None) -> pa.Table:
    """All rows; with limits, one more than is allowed at most, so that the caller can tell."""
    if limits is None:
        return relation.to_arrow_table()
    batches, found = list[pa.RecordBatch](), 0
    reader = relation.to_arrow_reader(1_024)
    for batch in reader:
        batches.append(batch[: limits.rows + 1 - found])
        found += len(batches[-1])
        if found > limits.rows:
            break
    return pa.Table.from_batches(batches, reader.schema)


def _name(table: CatalogTable) -> str:
    return f'"{table.database}"."{table.name}"'


def _refused(error: duckdb.Error) -> LakeError:
    if _SCAN in str(error):
        return StateError(
            f"A file of the lake cannot be read: {error}. If a run has just moved it, try "
            "again; otherwise replay its day to rewrite it."
        )
    if isinstance(error, duckdb.PermissionException):
        return UsageError(f"SQL reads the tables of the lake and no other files. {error}")
    return UsageError(str(error))


def _whole_numbers(table: pa.Table) -> pa.Table:
    """Convert sums of integers to integers; DuckDB returns them as decimals."""
    for place, known in enumerate(table.schema):
        if known.type == pa.decimal128(38, 0):
            try:
                column = pc.cast(table.column(place), pa.int64())
            except pa.ArrowInvalid:
                continue  # too large
            table = table.set_column(place, known.with_type(pa.int64()), column)
    return table

"""Runs a SQL statement over the lake."""

import time
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.catalog.base import Catalog, CatalogPartition, CatalogTable
from eventlake.rules.errors import LakeError, StateError, UsageError
from eventlake.sql.scan import column_types, scan
from eventlake.sql.statement import Statement, needed_partitions, parse, resolve, unknown_table
from eventlake.storage import Storage

_SETTINGS = {
    "TimeZone": "UTC",  # days of the lake are in UTC
    "python_enable_replacements": "false",  # no table from a Python variable
    "autoinstall_known_extensions": "false",  # no downloads
}
# No files of the machine, no network.
_ONLY_OUR_SCANS: dict[str, Any] = {"enable_external_access": "false"}
_SCAN = "__scan_"
_EMPTY = "__empty"
_WAITS = (0.1, 0.2, 0.4, 0.8, 1.6, *[2.0] * 10)  # seconds, while types are changing


@dataclass(frozen=True)
class LakeSql:
    """Runs SQL on the current state of the catalog; nothing is kept between queries."""

    catalog: Catalog
    storage: Storage

    def query(self, sql: str) -> pa.Table:
        """The rows of one read-only statement; raises UsageError if it is wrong."""
        # DuckDB prints warnings if a connection is open when the program ends.
        with closing(duckdb.connect(config=_ONLY_OUR_SCANS)) as connection:
            for name, value in _SETTINGS.items():
                connection.execute(f"SET {name} = '{value}'")
            databases = self.catalog.databases()
            for database in databases:
                connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{database}"')
            if databases:
                connection.execute(f"SET search_path = '{','.join(databases)}'")
            connection.execute("SET lock_configuration = true")
            return self._run(connection, parse(connection, sql), databases)

    def _run(
        self, connection: duckdb.DuckDBPyConnection, statement: Statement, databases: list[str]
    ) -> pa.Table:
        meant = {m: resolve(self.catalog, databases, m) for m in statement.mentions}
        tables = {table.full_name: table for table in meant.values() if table}
        for table in tables.values():
            self._make_view(connection, statement, table)
        if statement.lists_tables:
            self._make_empty_tables(connection, databases, tables)
        try:
            return _whole_numbers(connection.sql(statement.sql).to_arrow_table())
        except duckdb.CatalogException as error:
            # Only now, as the name may have been that of one of DuckDB's own tables.
            for mention in (m for m, table in meant.items() if table is None):
                raise unknown_table(self.catalog, databases, mention) from error
            raise _refused(error) from error
        except duckdb.Error as error:
            raise _refused(error) from error

    def _make_view(
        self, connection: duckdb.DuckDBPyConnection, statement: Statement, table: CatalogTable
    ) -> None:
        """Create a view of the partitions that the statement may need."""
        table, lying = self._as_one(table)
        partitions = needed_partitions(connection, statement, table, lying)
        source = f"{_SCAN}{table.full_name}"
        connection.register(source, scan(self.storage, table, partitions))
        columns = ", ".join(f'"{name}"' for name in column_types(table).names)
        connection.execute(f'CREATE VIEW {_name(table)} AS SELECT {columns} FROM "{source}"')

    def _as_one(self, table: CatalogTable) -> tuple[CatalogTable, list[CatalogPartition]]:
        """A consistent snapshot of columns and partitions: types change together with all files."""
        for wait in _WAITS:
            if table.retyped >= 0:
                partitions = self.catalog.partitions(table.database, table.name)
                now = self.catalog.table(table.database, table.name) or table
                if now.retyped == table.retyped:
                    return table, partitions
            else:
                time.sleep(wait)
                now = self.catalog.table(table.database, table.name) or table
            table = now
        raise StateError(
            f"Columns of {table.full_name} are changing their types. Try again in a moment; if the "
            "run that changes them has crashed, `datalake recover` completes it."
        )

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
    for place, field in enumerate(table.schema):
        if field.type == pa.decimal128(38, 0):
            try:
                column = pc.cast(table.column(place), pa.int64())
            except pa.ArrowInvalid:
                continue  # too large
            table = table.set_column(place, field.with_type(pa.int64()), column)
    return table

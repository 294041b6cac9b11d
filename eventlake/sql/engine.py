"""One statement over the lake, from its text to its rows."""

import time
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.catalog.base import Catalog, CatalogPartition, CatalogTable
from eventlake.rules.errors import LakeError, StateError, UsageError
from eventlake.sql.scan import column_types, scan
from eventlake.sql.statement import Statement, needed_partitions, parse, resolve, unknown_table
from eventlake.storage import Storage


def duckdb_type(kind: pa.DataType) -> str:
    """The type of a column in DuckDB's SQL."""
    if pa.types.is_list(kind):
        return f"{duckdb_type(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"MAP({duckdb_type(kind.key_type)}, {duckdb_type(kind.item_type)})"
    if pa.types.is_struct(kind):
        fields = (f'"{field.name}" {duckdb_type(field.type)}' for field in kind)
        return f"STRUCT({', '.join(fields)})"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _PLAIN[kind]


_PLAIN: dict[pa.DataType, str] = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.binary(): "BLOB",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
}


_SETTINGS = {
    "TimeZone": "UTC",  # the lake's days are days of UTC
    "python_enable_replacements": "false",  # a table is never a variable of this program
    "autoinstall_known_extensions": "false",  # a query never downloads anything
}
_SCAN = "__scan_"
_WAITS = (0.1, 0.2, 0.4, 0.8, 1.6, *[2.0] * 10)  # seconds for a change of types to be over


@dataclass(frozen=True)
class LakeSql:
    """Answers SQL with what the catalog says at this moment; nothing is kept between queries."""

    catalog: Catalog
    storage: Storage

    def query(self, sql: str) -> pa.Table:
        """The rows of one reading statement; whatever is wrong with it is a UsageError."""
        # DuckDB prints complaints when the program ends with an open connection.
        with closing(duckdb.connect()) as connection:
            for name, value in _SETTINGS.items():
                connection.execute(f"SET {name} = '{value}'")
            databases = self.catalog.databases()
            for database in databases:
                connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{database}"')
            if databases:
                connection.execute(f"SET search_path = '{','.join(databases)}'")
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
            # Only now: what the lake does not know may have been one of DuckDB's own tables.
            for mention in (m for m, table in meant.items() if table is None):
                raise unknown_table(self.catalog, databases, mention) from error
            raise _refused(error) from error
        except duckdb.Error as error:
            raise _refused(error) from error

    def _make_view(
        self, connection: duckdb.DuckDBPyConnection, statement: Statement, table: CatalogTable
    ) -> None:
        """A view of the partitions that the statement can need, as they lie now."""
        table, lying = self._as_one(table)
        partitions = needed_partitions(connection, statement, table, lying)
        source = f"{_SCAN}{table.full_name}"
        connection.register(source, scan(self.storage, table, partitions))
        columns = ", ".join(f'"{name}"' for name in column_types(table).names)
        connection.execute(f'CREATE VIEW {_name(table)} AS SELECT {columns} FROM "{source}"')

    def _as_one(self, table: CatalogTable) -> tuple[CatalogTable, list[CatalogPartition]]:
        """Columns and partitions of one moment: types change together with all files."""
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
            f"Columns of {table.full_name} are just getting other types. Ask again in a moment; "
            "should the run that does it have died, `datalake recover` completes it."
        )

    def _make_empty_tables(
        self,
        connection: duckdb.DuckDBPyConnection,
        databases: list[str],
        known: Collection[str],
    ) -> None:
        """All other tables without their rows, for statements that list tables and columns."""
        others = [t for d in databases for t in self.catalog.tables(d) if t.full_name not in known]
        for table in others:
            columns = ", ".join(f'"{f.name}" {duckdb_type(f.type)}' for f in column_types(table))
            connection.execute(f"CREATE TABLE {_name(table)} ({columns})")


def _name(table: CatalogTable) -> str:
    return f'"{table.database}"."{table.name}"'


def _refused(error: duckdb.Error) -> LakeError:
    if _SCAN in str(error):
        return StateError(
            f"A file of the lake cannot be read: {error}. If a run has moved it just now, ask "
            "again; otherwise replay its time to write it anew."
        )
    return UsageError(str(error))


def _whole_numbers(table: pa.Table) -> pa.Table:
    """Sums of whole numbers as whole numbers; DuckDB gives decimals, as they may be huge."""
    for place, field in enumerate(table.schema):
        if field.type == pa.decimal128(38, 0):
            try:
                column = pc.cast(table.column(place), pa.int64())
            except pa.ArrowInvalid:
                continue  # huge it is
            table = table.set_column(place, field.with_type(pa.int64()), column)
    return table

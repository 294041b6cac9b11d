"""The embedded catalog: JSON files in the lake's own state, no server to run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from eventlake.catalog.base import CatalogColumn, CatalogPartition, CatalogTable, Days, TableName
from eventlake.catalog.pages import Month, PageTable, change_pages, read_pages, switch_pages
from eventlake.rules import paths
from eventlake.rules.errors import StateError
from eventlake.storage import Storage
from eventlake.storage.documents import decode, decode_note, encode


class Database(msgspec.Struct, frozen=True):
    """`database.json`: marks an existing database."""

    name: str


@dataclass(frozen=True)
class LocalCatalog:
    """One file per table for its columns; its partitions are the lake's own pages.

    Every file is replaced whole, so readers need no lock, and by `Storage.update`, so concurrent
    changes of one file are all kept.
    """

    follows: ClassVar[bool] = False

    storage: Storage

    def databases(self) -> list[str]:
        return self.storage.folders(paths.CATALOG)

    def count_databases(self) -> int:
        return len(self.databases())

    def names(self, database: str) -> set[str] | None:
        if database not in self.databases():
            return None
        return set(self.storage.folders(paths.catalog_database(database)))

    def tables(self, database: str) -> list[CatalogTable]:
        names = self.storage.folders(paths.catalog_database(database))
        files = [paths.catalog_table_file(database, name) for name in names]
        found = zip(files, self.storage.read_many(files), strict=True)
        # A folder without its file is a table that is being created.
        return [decode(data, CatalogTable, file) for file, data in found if data]

    def table(self, database: str, name: str) -> CatalogTable | None:
        path = paths.catalog_table_file(database, name)
        data = self.storage.read(path)
        return None if data is None else decode(data, CatalogTable, path)

    def ensure_database(self, database: str) -> None:
        path = f"{paths.catalog_database(database)}/database.json"
        self.storage.create(path, encode(Database(database)))

    def create_table(self, table: CatalogTable) -> bool:
        return self.create_tables([table])[0]

    def create_tables(self, tables: Sequence[CatalogTable]) -> list[bool]:
        return self.storage.create_all(
            [(paths.catalog_table_file(t.database, t.name), encode(t)) for t in tables]
        )

    def append_columns(self, database: str, name: str, columns: Iterable[CatalogColumn]) -> None:
        wanted = tuple(columns)

        def grown(table: CatalogTable) -> CatalogTable:
            known = {column.name for column in table.columns}
            new = tuple(column for column in wanted if column.name not in known)
            return msgspec.structs.replace(table, columns=table.columns + new)

        self._change_table(database, name, grown)

    def restore(self, table: CatalogTable) -> None:
        if not self.create_table(table):
            self._change_table(
                table.database,
                table.name,
                lambda found: msgspec.structs.replace(
                    found,
                    columns=table.columns,
                    location=table.location,
                    format=table.format,
                    retyped=table.retyped,
                ),
            )

    def partitions(
        self, database: str, name: str, days: Days | None = None
    ) -> list[CatalogPartition]:
        return read_pages(self.storage, page_table(self._existing(database, name)), days)

    def put_partitions(
        self, database: str, name: str, partitions: Iterable[CatalogPartition]
    ) -> None:
        self.put_all({(database, name): list(partitions)})

    def put_all(self, partitions: Mapping[TableName, Sequence[CatalogPartition]]) -> None:
        tables = self.storage.each(lambda name: self._existing(*name), list(partitions))
        change_pages(self.storage, map(page_table, tables), partitions, {}, 0)

    def drop_partitions(
        self, database: str, name: str, values: Iterable[Sequence[str]], version: int
    ) -> None:
        gone = {(database, name): [tuple(one) for one in values]}
        change_pages(self.storage, [page_table(self._existing(database, name))], {}, gone, version)

    def retype(
        self,
        database: str,
        name: str,
        types: Mapping[str, str],
        partitions: Iterable[CatalogPartition],
        version: int,
    ) -> None:
        """The partitions get a new folder; one write switches to it and to the types."""
        table = self._existing(database, name)
        if table.retyped >= version:
            return
        switch_pages(self.storage, page_table(table), list(partitions), version)

        def switched(table: CatalogTable) -> CatalogTable:
            if table.retyped >= version:
                return table
            columns = tuple(
                msgspec.structs.replace(column, type=types.get(column.name, column.type))
                for column in table.columns
            )
            return msgspec.structs.replace(table, columns=columns, retyped=version)

        self._change_table(database, name, switched)

    def _change_table(
        self, database: str, name: str, change: Callable[[CatalogTable], CatalogTable]
    ) -> None:
        self._existing(database, name)
        path = paths.catalog_table_file(database, name)

        def changed(data: bytes | None) -> bytes | None:
            old = decode(data or b"", CatalogTable, path)
            new = change(old)
            return encode(new) if new != old else None

        self.storage.update(path, changed)

    def _existing(self, database: str, name: str) -> CatalogTable:
        table = self.table(database, name)
        if table is None:
            raise StateError(
                f"Table {database}.{name} is not in the catalog. "
                "Create it before its columns and partitions."
            )
        return table


def remove_damaged(storage: Storage, folder: str) -> None:
    """Remove files of a table, or of all tables of a database, that cannot be read."""
    for file in storage.files(folder):
        kind = CatalogTable if file.name == "table.json" else Month
        is_ours = file.name.endswith(".json") and file.name != "database.json"
        data = storage.read(file.path) if is_ours else None
        if data is not None and decode_note(data, kind, file.path) is None:
            storage.delete(file.path)


def page_table(table: CatalogTable) -> PageTable:
    return PageTable(table.database, table.name, table.partition_keys, table.retyped)

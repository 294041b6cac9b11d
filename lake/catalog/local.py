"""The embedded catalog: JSON files in the lake's own state, no server to run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from lake import paths
from lake.catalog.base import (
    CatalogColumn,
    CatalogPartition,
    CatalogTable,
    Days,
    partition_day,
)
from lake.catalog.documents import Database, Month
from lake.catalog.lock import exclusive
from lake.catalog.months import with_dropped, with_partitions
from lake.errors import StateError
from lake.state.codec import decode, encode
from lake.storage import Storage

T = TypeVar("T")


@dataclass(frozen=True)
class LocalCatalog:
    """One folder per table: its columns in one file, its partitions in one file a month.

    Every file is replaced whole, so readers need no lock. Writers of one table take turns (see
    `lake.catalog.lock`), so that no update is lost between reading a file and replacing it.
    """

    storage: Storage

    def databases(self) -> list[str]:
        return self.storage.folders(paths.CATALOG)

    def tables(self, database: str) -> list[CatalogTable]:
        names = self.storage.folders(paths.catalog_database(database))
        files = [paths.catalog_table_file(database, name) for name in names]
        found = zip(files, self.storage.read_many(files), strict=True)
        # A folder without its file is a table that somebody is making just now.
        return [decode(data, CatalogTable, file) for file, data in found if data]

    def table(self, database: str, name: str) -> CatalogTable | None:
        path = paths.catalog_table_file(database, name)
        data = self.storage.read(path)
        return None if data is None else decode(data, CatalogTable, path)

    def ensure_database(self, database: str) -> None:
        path = f"{paths.catalog_database(database)}/database.json"
        self.storage.create(path, encode(Database(database)))

    def create_table(self, table: CatalogTable) -> bool:
        path = paths.catalog_table_file(table.database, table.name)
        return self.storage.create(path, encode(table))

    def append_columns(self, database: str, name: str, columns: Iterable[CatalogColumn]) -> None:
        self._existing(database, name)
        with exclusive(self.storage, paths.catalog_table(database, name)):
            table = self._existing(database, name)  # again: columns may have come while we waited
            known = {column.name for column in table.columns}
            new = tuple(column for column in columns if column.name not in known)
            if new:
                grown = msgspec.structs.replace(table, columns=table.columns + new)
                path = paths.catalog_table_file(database, name)
                self.storage.write(path, encode(grown))

    def partitions(
        self, database: str, name: str, days: Days | None = None
    ) -> list[CatalogPartition]:
        table = self._existing(database, name)
        keys, folder = table.partition_keys, paths.catalog_months(database, name, table.retyped)
        months = [
            file.path
            for file in self.storage.files(folder, recursive=False)
            if days is None or days[0][:7] <= file.name.removesuffix(".json") <= days[1][:7]
        ]
        read = zip(months, self.storage.read_many(months), strict=True)
        found = [
            partition
            for path, data in read
            if data is not None
            for partition in decode(data, Month, path).partitions
            if days is None or days[0] <= partition_day(keys, partition.values) <= days[1]
        ]
        return sorted(found, key=lambda partition: partition.values)

    def put_partitions(
        self, database: str, name: str, partitions: Iterable[CatalogPartition]
    ) -> None:
        self._change(database, name, ((p.values, p) for p in partitions), with_partitions)

    def drop_partitions(
        self, database: str, name: str, values: Iterable[Sequence[str]], version: int
    ) -> None:
        gone = (tuple(v) for v in values)
        self._change(
            database, name, ((v, v) for v in gone), lambda old, v: with_dropped(old, v, version)
        )

    def retype(
        self,
        database: str,
        name: str,
        types: Mapping[str, str],
        partitions: Iterable[CatalogPartition],
        version: int,
    ) -> None:
        """The partitions go to a folder of their own; one write brings it in with the types."""
        moved = _by_month(self._existing(database, name), ((p.values, p) for p in partitions))
        with exclusive(self.storage, paths.catalog_table(database, name)):
            table = self._existing(database, name)
            if table.retyped >= version:
                return
            old = paths.catalog_months(database, name, table.retyped)
            known = {file.name.removesuffix(".json") for file in self.storage.files(old)}
            for month in sorted(known | moved.keys()):
                before = self._month(f"{old}/{month}.json")
                path = paths.catalog_month_file(database, name, month, version)
                self.storage.write(path, encode(with_partitions(before, moved.get(month, ()))))
            columns = tuple(
                msgspec.structs.replace(column, type=types.get(column.name, column.type))
                for column in table.columns
            )
            switched = msgspec.structs.replace(table, columns=columns, retyped=version)
            self.storage.write(paths.catalog_table_file(database, name), encode(switched))

    def _change(
        self,
        database: str,
        name: str,
        items: Iterable[tuple[tuple[str, ...], T]],
        change: Callable[[Month, list[T]], Month],
    ) -> None:
        """Apply a change to the file of every month that the items lie in."""
        by_month = _by_month(self._existing(database, name), items)
        with exclusive(self.storage, paths.catalog_table(database, name)):
            retyped = self._existing(database, name).retyped  # now, not while we waited
            for month, group in by_month.items():
                path = paths.catalog_month_file(database, name, month, retyped)
                old = self._month(path)
                new = change(old, group)
                if new != old:
                    self.storage.write(path, encode(new))

    def _month(self, path: str) -> Month:
        data = self.storage.read(path)
        return Month() if data is None else decode(data, Month, path)

    def _existing(self, database: str, name: str) -> CatalogTable:
        table = self.table(database, name)
        if table is None:
            raise StateError(
                f"Table {database}.{name} is not in the catalog. "
                "Create it before its columns and partitions."
            )
        return table


def _by_month(
    table: CatalogTable, items: Iterable[tuple[tuple[str, ...], T]]
) -> dict[str, list[T]]:
    """Items with their partition's values, by the month whose file they belong into."""
    by_month: dict[str, list[T]] = {}
    for values, item in items:
        month = partition_day(table.partition_keys, values)[:7]
        by_month.setdefault(month, []).append(item)
    return by_month

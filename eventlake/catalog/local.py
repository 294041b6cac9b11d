"""The embedded catalog: JSON files in the lake's own state, no server to run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from eventlake.catalog.base import (
    CatalogColumn,
    CatalogPartition,
    CatalogTable,
    Days,
    TableName,
    partition_day,
)
from eventlake.rules import paths
from eventlake.rules.errors import StateError
from eventlake.storage import Storage
from eventlake.storage.base import Change
from eventlake.storage.documents import decode, encode, read_each


class Database(msgspec.Struct, frozen=True):
    """`database.json`: that a database was made."""

    name: str


class Dropped(msgspec.Struct, frozen=True):
    """A dropped partition, and the number of the manifest that dropped it."""

    values: tuple[str, ...]
    version: int


class Month(msgspec.Struct, frozen=True):
    """`partitions/<YYYY-MM>.json`: the partitions of one month, and those it no longer has."""

    partitions: tuple[CatalogPartition, ...] = ()
    dropped: tuple[Dropped, ...] = ()


Values = tuple[str, ...]


def with_partitions(month: Month, new: Iterable[CatalogPartition]) -> Month:
    """The month with partitions added or moved, but for those a later manifest decided on."""
    partitions, dropped = _by_values(month)
    for partition in new:
        if partition.version >= _decided(partition.values, partitions, dropped):
            partitions[partition.values] = partition
            dropped.pop(partition.values, None)
    return _month(month, partitions, dropped)


def with_dropped(month: Month, gone: Iterable[Values], version: int) -> Month:
    """A month without some partitions; the dropping manifest is kept, so that they stay dropped."""
    partitions, dropped = _by_values(month)
    for values in gone:
        if version >= _decided(values, partitions, dropped):
            partitions.pop(values, None)
            dropped[values] = Dropped(values, version)
    return _month(month, partitions, dropped)


Held = dict[Values, CatalogPartition]
Gone = dict[Values, Dropped]


def _by_values(month: Month) -> tuple[Held, Gone]:
    return {p.values: p for p in month.partitions}, {d.values: d for d in month.dropped}


def _decided(values: Values, partitions: Held, dropped: Gone) -> int:
    """The number of the last manifest that said anything about a partition; -1 for none."""
    last = partitions.get(values) or dropped.get(values)
    return last.version if last else -1


def _month(month: Month, partitions: Held, dropped: Gone) -> Month:
    return msgspec.structs.replace(
        month,
        partitions=tuple(partitions[values] for values in sorted(partitions)),
        dropped=tuple(dropped[values] for values in sorted(dropped)),
    )


T = TypeVar("T")


@dataclass(frozen=True)
class LocalCatalog:
    """One folder per table: its columns in one file, its partitions in one file a month.

    Every file is replaced whole, so readers need no lock, and by `Storage.update`, so that of
    two who change one file at the same time neither loses the other's change.
    """

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
                    found, columns=table.columns, location=table.location, format=table.format
                ),
            )

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
        found = [
            partition
            for month in read_each(self.storage, months, Month)
            for partition in month.partitions
            if days is None or days[0] <= partition_day(keys, partition.values) <= days[1]
        ]
        return sorted(found, key=lambda partition: partition.values)

    def put_partitions(
        self, database: str, name: str, partitions: Iterable[CatalogPartition]
    ) -> None:
        self.put_all({(database, name): list(partitions)})

    def put_all(self, partitions: Mapping[TableName, Sequence[CatalogPartition]]) -> None:
        items = {table: [(p.values, p) for p in put] for table, put in partitions.items()}
        self._change(items, with_partitions)

    def drop_partitions(
        self, database: str, name: str, values: Iterable[Sequence[str]], version: int
    ) -> None:
        gone = [(tuple(v), tuple(v)) for v in values]
        self._change({(database, name): gone}, lambda old, v: with_dropped(old, v, version))

    def retype(
        self,
        database: str,
        name: str,
        types: Mapping[str, str],
        partitions: Iterable[CatalogPartition],
        version: int,
    ) -> None:
        """The partitions go to a folder of their own; one write brings it in with the types."""
        table = self._existing(database, name)
        if table.retyped >= version:
            return
        moved = _by_month(table, ((p.values, p) for p in partitions))
        old = paths.catalog_months(database, name, table.retyped)
        known = {file.name.removesuffix(".json") for file in self.storage.files(old)}
        for month in sorted(known | moved.keys()):
            path = paths.catalog_month_file(database, name, month, version)
            # A late writer finds it filled, maybe by later manifests, and keeps their changes.
            before = self._month(f"{old}/{month}.json")
            group = moved.get(month, [])
            self.storage.update(path, _month_change(path, before, group, with_partitions))

        def switched(table: CatalogTable) -> CatalogTable:
            if table.retyped >= version:
                return table
            columns = tuple(
                msgspec.structs.replace(column, type=types.get(column.name, column.type))
                for column in table.columns
            )
            return msgspec.structs.replace(table, columns=columns, retyped=version)

        self._change_table(database, name, switched)

    def leftovers(self, database: str, name: str) -> list[str]:
        retyped = self._existing(database, name).retyped
        folders = self.storage.folders(paths.catalog_table(database, name))
        numbers = (int(folder.partition("-")[2] or 0) for folder in folders)
        # A switch that is under way fills the folder of a later number.
        return [paths.catalog_months(database, name, n) for n in numbers if n < retyped]

    def _change(
        self,
        items: Mapping[TableName, Sequence[tuple[tuple[str, ...], T]]],
        change: Callable[[Month, list[T]], Month],
    ) -> None:
        """Apply a change to the file of every month that the items of some tables lie in."""
        each = self.storage.each
        due = each(lambda name: self._existing(*name), list(items))
        while due := [table for table in due if items[table.database, table.name]]:
            months = [
                (paths.catalog_month_file(table.database, table.name, month, table.retyped), group)
                for table in due
                for month, group in _by_month(table, items[table.database, table.name]).items()
            ]
            self.storage.update_all(
                [(path, _month_change(path, Month(), group, change)) for path, group in months]
            )
            now = each(lambda table: self._existing(table.database, table.name), due)
            # Of others the partitions stand elsewhere since then.
            due = [new for old, new in zip(due, now, strict=True) if new.retyped != old.retyped]

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


def _month_change(
    path: str, first: Month, group: list[T], change: Callable[[Month, list[T]], Month]
) -> Change:
    """A change to the file of a month; `first` is what it begins with if there is none."""

    def changed(data: bytes | None) -> bytes | None:
        old = first if data is None else decode(data, Month, path)
        new = change(old, group)
        return encode(new) if data is None or new != old else None

    return changed


def _by_month(
    table: CatalogTable, items: Iterable[tuple[tuple[str, ...], T]]
) -> dict[str, list[T]]:
    """Items with their partition's values, by the month whose file they belong into."""
    by_month: dict[str, list[T]] = {}
    for values, item in items:
        month = partition_day(table.partition_keys, values)[:7]
        by_month.setdefault(month, []).append(item)
    return by_month

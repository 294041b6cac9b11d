"""The partitions of all tables in the state: one file (page) per table and month.

Every lake has these pages. The embedded catalog reads them; other catalogs follow them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from eventlake.catalog.base import CatalogPartition, Days, TableName, partition_day
from eventlake.rules import paths
from eventlake.storage import Storage
from eventlake.storage.base import Change
from eventlake.storage.documents import decode, encode, read_each


class Dropped(msgspec.Struct, frozen=True):
    """A dropped partition, and the number of the manifest that dropped it."""

    values: tuple[str, ...]
    version: int


class Month(msgspec.Struct, frozen=True):
    """`partitions/<YYYY-MM>.json`: the partitions of one month, and the dropped ones."""

    partitions: tuple[CatalogPartition, ...] = ()
    dropped: tuple[Dropped, ...] = ()


Values = tuple[str, ...]


def with_partitions(month: Month, new: Iterable[CatalogPartition]) -> Month:
    """The month with partitions added or moved, except those that a later manifest changed."""
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
    """The number of the last manifest that changed a partition; -1 for none."""
    last = partitions.get(values) or dropped.get(values)
    return last.version if last else -1


def _month(month: Month, partitions: Held, dropped: Gone) -> Month:
    return msgspec.structs.replace(
        month,
        partitions=tuple(partitions[values] for values in sorted(partitions)),
        dropped=tuple(dropped[values] for values in sorted(dropped)),
    )


T = TypeVar("T")


class PageTable(msgspec.Struct, frozen=True):
    """A table, its partition keys, and the manifest that last changed the type of a column.

    Each change of types starts a new folder of pages, so that types and partitions change at once.
    """

    database: str
    name: str
    keys: tuple[str, ...]
    retyped: int = 0

    @property
    def named(self) -> TableName:
        return self.database, self.name

    @property
    def folder(self) -> str:
        return paths.catalog_months(self.database, self.name, self.retyped)

    def by_month(self, items: Iterable[tuple[Values, T]]) -> dict[str, list[T]]:
        """Group items, given with the values of their partition, by month."""
        by_month: dict[str, list[T]] = {}
        for values, item in items:
            by_month.setdefault(partition_day(self.keys, values)[:7], []).append(item)
        return by_month


def read_pages(
    storage: Storage, table: PageTable, days: Days | None = None
) -> list[CatalogPartition]:
    """The partitions of a table, by their values; of some days only, if days are given."""
    months = [
        file.path
        for file in storage.files(table.folder, recursive=False)
        if days is None or days[0][:7] <= file.name.removesuffix(".json") <= days[1][:7]
    ]
    found = [
        partition
        for month in read_each(storage, months, Month)
        for partition in month.partitions
        if days is None or days[0] <= partition_day(table.keys, partition.values) <= days[1]
    ]
    return sorted(found, key=lambda partition: partition.values)


def change_pages(
    storage: Storage,
    tables: Iterable[PageTable],
    put: Mapping[TableName, Sequence[CatalogPartition]],
    dropped: Mapping[TableName, Sequence[Values]],
    version: int,
) -> None:
    """Add, move and drop partitions, except those that a later manifest changed."""
    changes: list[tuple[str, Change]] = []
    for table in tables:
        came = table.by_month((p.values, p) for p in put.get(table.named, ()))
        went = table.by_month((values, values) for values in dropped.get(table.named, ()))
        changes += (
            (
                f"{table.folder}/{month}.json",
                _change(table, month, came.get(month, []), went.get(month, []), version),
            )
            for month in {**came, **went}
        )
    storage.update_all(changes)


def switch_pages(
    storage: Storage, table: PageTable, partitions: Sequence[CatalogPartition], version: int
) -> None:
    """Start a new folder of pages in which these partitions have moved."""
    moved = table.by_month((p.values, p) for p in partitions)
    old, new = table.folder, msgspec.structs.replace(table, retyped=version)
    known = {file.name.removesuffix(".json") for file in storage.files(old)}
    for month in sorted(known | moved.keys()):
        # A late writer finds the folder filled, and keeps the changes of later manifests.
        data = storage.read(f"{old}/{month}.json")
        first = Month() if data is None else decode(data, Month, f"{old}/{month}.json")
        change = _change(new, month, moved.get(month, []), [], version, first)
        storage.update(f"{new.folder}/{month}.json", change)


def _change(
    table: PageTable,
    month: str,
    put: Sequence[CatalogPartition],
    dropped: Sequence[Values],
    version: int,
    first: Month | None = None,
) -> Change:
    """A change of one page; `first` is the initial content of a missing page."""
    path = f"{table.folder}/{month}.json"

    def changed(data: bytes | None) -> bytes | None:
        old = (first or Month()) if data is None else decode(data, Month, path)
        new = with_dropped(with_partitions(old, put), dropped, version)
        return encode(new) if data is None or new != old else None

    return changed


def leftover_pages(storage: Storage, table: PageTable) -> list[str]:
    """Folders of pages from before the last change of types."""
    folders = storage.folders(paths.catalog_table(table.database, table.name))
    numbers = (int(f.partition("-")[2] or 0) for f in folders if f.startswith("partitions"))
    # A change of types in progress fills the folder of a later number.
    return [paths.catalog_months(*table.named, n) for n in numbers if n < table.retyped]

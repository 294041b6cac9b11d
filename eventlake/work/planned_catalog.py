"""The catalog as it would be: what is there, and what a dry run has thought of since."""

from collections.abc import Iterable

from eventlake.catalog.base import (
    Catalog,
    CatalogPartition,
    CatalogTable,
    Days,
    partition_day,
)
from eventlake.rules.partitions import DatePartition
from eventlake.state.manifest import Manifest
from eventlake.state.source_state import SourceState, partition_name
from eventlake.work.publish import catalog_partition

Planned = dict[str, CatalogPartition | None]
"""By partition; None is one that is dropped."""


class PlannedCatalog:
    """Answers like the catalog behind it, after changes that are nowhere but in here."""

    def __init__(self, real: Catalog, layout: DatePartition) -> None:
        self._real = real
        self._layout = layout
        self._tables: dict[str, Planned] = {}

    def apply(self, after: SourceState, manifest: Manifest) -> None:
        """Remember what a manifest would do; `after` is the state it would lead to."""
        for schema in manifest.tables:
            self._tables.setdefault(schema.key, {})
        for change in manifest.partitions:
            planned = self._tables.setdefault(after.tables[change.table].key, {})
            planned[partition_name(change.values)] = (
                None if change.dropped else catalog_partition(change, manifest.number)
            )

    def databases(self) -> list[str]:
        return self._real.databases()

    def count_databases(self) -> int:
        return self._real.count_databases()

    def tables(self, database: str) -> list[CatalogTable]:
        return self._real.tables(database)

    def table(self, database: str, name: str) -> CatalogTable | None:
        return self._real.table(database, name)

    def names(self, database: str) -> set[str] | None:
        real = self._real.names(database)
        mine = {key.split(".", 1)[1] for key in self._tables if key.split(".", 1)[0] == database}
        return real if real is None and not mine else (real or set()) | mine

    def partitions(
        self, database: str, name: str, days: Days | None = None
    ) -> list[CatalogPartition]:
        planned = self._tables.get(f"{database}.{name}")
        if planned is None:
            return self._real.partitions(database, name, days)
        there = name in (self._real.names(database) or ())
        real = self._real.partitions(database, name, days) if there else []
        known: Planned = {partition_name(p.values): p for p in real}
        known |= {key: p for key, p in planned.items() if p is None or self._within(p, days)}
        return sorted(_present(known.values()), key=lambda partition: partition.values)

    def leftovers(self, database: str, name: str) -> list[str]:
        return self._real.leftovers(database, name)

    def ensure_database(self, database: str) -> None:
        raise _changes_nothing()

    def create_table(self, table: CatalogTable) -> bool:
        raise _changes_nothing()

    def create_tables(self, tables: object) -> list[bool]:
        raise _changes_nothing()

    def restore(self, table: CatalogTable) -> None:
        raise _changes_nothing()

    def append_columns(self, database: str, name: str, columns: object) -> None:
        raise _changes_nothing()

    def put_partitions(self, database: str, name: str, partitions: object) -> None:
        raise _changes_nothing()

    def put_all(self, partitions: object) -> None:
        raise _changes_nothing()

    def drop_partitions(self, database: str, name: str, values: object, version: int) -> None:
        raise _changes_nothing()

    def retype(
        self, database: str, name: str, types: object, partitions: object, version: int
    ) -> None:
        raise _changes_nothing()

    def _within(self, partition: CatalogPartition, days: Days | None) -> bool:
        if days is None:
            return True
        return days[0] <= partition_day(self._layout.keys, partition.values) <= days[1]


def _changes_nothing() -> AssertionError:
    return AssertionError("a dry run changes no catalog")


def _present(partitions: Iterable[CatalogPartition | None]) -> list[CatalogPartition]:
    return [partition for partition in partitions if partition is not None]

"""The partitions of the tables of a source in the state: location and files of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from eventlake.catalog.base import Catalog, CatalogPartition, Days, HeldFile, partition_day
from eventlake.catalog.pages import change_pages, read_pages, switch_pages
from eventlake.rules.types import TableSchema
from eventlake.state.manifest import Manifest, PartitionChange
from eventlake.state.source_state import SourceState, write_state
from eventlake.storage import Storage

Planned = Mapping[str, Mapping[tuple[str, ...], CatalogPartition | None]]
"""Planned changes by key of the table; None is a dropped partition."""


@dataclass(frozen=True)
class Partitions:
    """Reads the pages of a lake; a dry run adds its planned changes."""

    storage: Storage
    catalog: Catalog
    planned: Planned = field(default_factory=dict)

    def of(
        self, state: SourceState, schema: TableSchema, days: Days | None = None
    ) -> list[CatalogPartition]:
        """The partitions of a table, by their values; of some days only, if days are given."""
        table = state.page_table(schema.key)
        if state.paged:
            found = read_pages(self.storage, table, days)
        else:  # a lake of an earlier release, before the first run of this one
            found = self.catalog.partitions(schema.database, schema.name, days)
        if not (planned := self.planned.get(schema.key)):
            return found
        known: dict[tuple[str, ...], CatalogPartition | None] = {p.values: p for p in found}
        known |= {
            values: partition
            for values, partition in planned.items()
            if days is None or days[0] <= partition_day(table.keys, values) <= days[1]
        }
        return [partition for _, partition in sorted(known.items()) if partition]

    def of_all(
        self, state: SourceState, schemas: Iterable[TableSchema], days: Days | None = None
    ) -> dict[str, list[CatalogPartition]]:
        """The partitions of several tables, by key."""
        wanted = list(schemas)
        found = self.storage.each(lambda schema: self.of(state, schema, days), wanted)
        return {schema.key: held for schema, held in zip(wanted, found, strict=True)}

    def with_plan(self, manifest: Manifest) -> "Partitions":
        """The same after a planned manifest."""
        planned = {key: dict(held) for key, held in self.planned.items()}
        for change in manifest.partitions:
            planned.setdefault(change.table, {})[change.values] = change.partition(manifest.number)
        return replace(self, planned=planned)


def show(
    storage: Storage, catalog: Catalog, state: SourceState, after: SourceState, manifest: Manifest
) -> None:
    """Write the partitions of a manifest: into the pages, then into the catalog if it stores its
    own.

    `state` is the state before the manifest. May be repeated, also late.
    """
    number, by_table = manifest.number, dict[str, list[PartitionChange]]()
    for change in manifest.partitions:
        by_table.setdefault(change.table, []).append(change)
    for key in manifest.retyped:
        _switch(storage, catalog, state, after, key, by_table.pop(key, []), number)
    tables = {key: after.page_table(key) for key in by_table}
    put = {
        tables[key].named: _partitions(storage, changes, number)
        for key, changes in by_table.items()
    }
    gone = {
        tables[key].named: [change.values for change in changes if change.dropped]
        for key, changes in by_table.items()
    }
    change_pages(storage, tables.values(), put, gone, number)
    if catalog.follows:
        catalog.put_all(put)
        storage.each(
            lambda one: catalog.drop_partitions(*one[0], one[1], number),
            [(named, values) for named, values in gone.items() if values],
        )


def _switch(
    storage: Storage,
    catalog: Catalog,
    state: SourceState,
    after: SourceState,
    key: str,
    changes: list[PartitionChange],
    number: int,
) -> None:
    """Change all partitions and types at once: readers never see only one of the two."""
    schema = after.tables[key]
    partitions = _partitions(storage, changes, number)
    if catalog.follows:
        switch_pages(storage, state.page_table(key), partitions, number)
    types = {column.name: column.type.sql for column in schema.columns}
    catalog.retype(schema.database, schema.name, types, partitions, number)


def _partitions(
    storage: Storage, changes: Iterable[PartitionChange], number: int
) -> list[CatalogPartition]:
    """The partitions that are not dropped; manifests of earlier releases lack kept files."""
    found = [p for change in changes if (p := change.partition(number))]
    return [p if len(p.held) == p.files else _listed(storage, p) for p in found]


def _listed(storage: Storage, partition: CatalogPartition) -> CatalogPartition:
    return msgspec.structs.replace(partition, held=held_files(storage, partition.location))


def carry_over(storage: Storage, catalog: Catalog, state: SourceState) -> SourceState:
    """Migrate a lake of an earlier release: write pages with all partitions and files.

    Before, only the catalog had the partitions. May be repeated.
    """
    if state.paged:
        return state
    entries = {
        key: entry
        for key, schema in state.tables.items()
        if (entry := catalog.table(schema.database, schema.name)) is not None
    }
    retyped = {key: entry.retyped for key, entry in entries.items() if entry.retyped > 0}
    carried = msgspec.structs.replace(state, paged=True, retyped=retyped)
    for key, entry in entries.items():
        found = catalog.partitions(entry.database, entry.name)
        known = storage.each(lambda partition: _listed(storage, partition), found)
        table = carried.page_table(key)
        change_pages(storage, [table], {table.named: known}, {}, 0)
    write_state(storage, carried)
    return carried


def held_files(storage: Storage, location: str) -> tuple[HeldFile, ...]:
    """The files in a folder."""
    files = storage.files(location, recursive=False)
    return tuple(HeldFile(file.name, file.size) for file in files)

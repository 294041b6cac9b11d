"""From a committed manifest to everything readers see. Each action may be repeated at any time."""

from collections.abc import Sequence

from eventlake.catalog.base import Catalog, CatalogColumn, CatalogPartition, CatalogTable
from eventlake.rules import paths
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import TableSchema
from eventlake.runs.open_runs import close_run
from eventlake.state.ledger import add_to_ledger
from eventlake.state.manifest import Manifest, PartitionChange, read_manifest
from eventlake.state.source_state import SourceState, read_state, write_state
from eventlake.storage import Storage

Shown = tuple[TableSchema, list[PartitionChange]]


def catch_up(storage: Storage, catalog: Catalog, source_id: str) -> SourceState:
    """Apply every manifest that is committed but not known to be applied; the state after it."""
    state = read_state(storage, source_id)
    while (manifest := read_manifest(storage, source_id, state.manifest + 1)) is not None:
        state = apply(storage, catalog, state, manifest)
    return state


def apply(
    storage: Storage, catalog: Catalog, state: SourceState, manifest: Manifest
) -> SourceState:
    """Apply a manifest. If this is interrupted, the next run repeats it."""
    after = state.after(manifest)
    layout = DatePartition(manifest.date_partition)
    for database in {schema.database: None for schema in manifest.tables}:
        catalog.ensure_database(database)
    _declare(storage, catalog, [catalog_entry(s, layout, after.source_id) for s in manifest.tables])
    by_table: dict[str, list[PartitionChange]] = {}
    for change in manifest.partitions:
        by_table.setdefault(change.table, []).append(change)
    changed = (*manifest.partitions, *manifest.shadows)
    files = [*(file for change in changed for file in change.added), *manifest.records]
    storage.move_all_into_place([(f.written, f.path) for f in files if f.written != f.path])
    for key in manifest.retyped:
        _switch(catalog, after.tables[key], by_table.pop(key, []), manifest.number)
    shown = [(after.tables[key], changes) for key, changes in by_table.items()]
    _show(storage, catalog, shown, manifest.number)
    add_to_ledger(storage, manifest.source_id, manifest.ledger)
    if manifest.finish_time is not None:
        close_run(storage, catalog, manifest.run, manifest.report, manifest.finish_time)
    write_state(storage, after)
    return after


def _declare(storage: Storage, catalog: Catalog, entries: Sequence[CatalogTable]) -> None:
    """Tables in the catalog, with all their columns."""
    made = zip(entries, catalog.create_tables(entries), strict=True)
    storage.each(
        lambda entry: catalog.append_columns(entry.database, entry.name, entry.columns),
        [entry for entry, is_new in made if not is_new],
    )


def catalog_entry(schema: TableSchema, layout: DatePartition, source_id: str) -> CatalogTable:
    """A table as the catalog is to have it."""
    return CatalogTable(
        database=schema.database,
        name=schema.name,
        columns=tuple(CatalogColumn(c.name, c.type.sql, c.pointer) for c in schema.columns),
        partition_keys=layout.keys,
        location=paths.table_folder(source_id, schema.table),
        comment=schema.original,
    )


def _show(storage: Storage, catalog: Catalog, shown: Sequence[Shown], number: int) -> None:
    """Partitions where they lie from now on: the moment readers see them."""
    named = [((schema.database, schema.name), changes) for schema, changes in shown]
    catalog.put_all({name: _partitions(changes, number) for name, changes in named})
    gone = [(name, [c.values for c in changes if c.dropped]) for name, changes in named]
    storage.each(
        lambda one: catalog.drop_partitions(*one[0], one[1], number),
        [(name, values) for name, values in gone if values],
    )


def _switch(
    catalog: Catalog, schema: TableSchema, changes: list[PartitionChange], number: int
) -> None:
    """All partitions and the types of all columns at once: readers never see one of these alone."""
    types = {column.name: column.type.sql for column in schema.columns}
    partitions = _partitions(changes, number)
    catalog.retype(schema.database, schema.name, types, partitions, number)


def _partitions(changes: list[PartitionChange], number: int) -> list[CatalogPartition]:
    return [catalog_partition(change, number) for change in changes if not change.dropped]


def catalog_partition(change: PartitionChange, number: int) -> CatalogPartition:
    """A partition as the catalog is to have it since a manifest."""
    return CatalogPartition(
        change.values, change.location, number, change.rows, change.bytes, change.files
    )

"""Applies committed manifests: everything that readers see. Each action may be repeated."""

from collections.abc import Sequence

import msgspec

from eventlake.catalog.base import Catalog, CatalogColumn, CatalogTable, HeldFile
from eventlake.rules import paths
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import TableSchema
from eventlake.runs.open_runs import close_run
from eventlake.state.ledger import add_to_ledger
from eventlake.state.manifest import Manifest, read_manifest
from eventlake.state.partitions import carry_over, show
from eventlake.state.source_state import SourceState, lost_state, read_state, write_state
from eventlake.storage import Storage


def catch_up(storage: Storage, catalog: Catalog, source_id: str) -> SourceState:
    """Apply every committed manifest that is not applied; returns the state."""
    state = carry_over(storage, catalog, read_state(storage, source_id))
    while (manifest := read_manifest(storage, source_id, state.manifest + 1)) is not None:
        try:
            state = apply(storage, catalog, state, manifest)
        except FileNotFoundError as error:
            if state.manifest:
                raise
            raise lost_state(source_id) from error  # it was applied, long ago
    return state


def apply(
    storage: Storage, catalog: Catalog, state: SourceState, manifest: Manifest
) -> SourceState:
    """Apply a manifest. If this is interrupted, the next run repeats it."""
    after = state.after(manifest)
    declared = msgspec.structs.replace(after, retyped=state.retyped)
    for database in {schema.database: None for schema in manifest.tables}:
        catalog.ensure_database(database)
    _declare(storage, catalog, [catalog_entry(declared, s) for s in manifest.tables])
    changed = (*manifest.partitions, *manifest.shadows)
    files = [*(file for change in changed for file in change.added), *manifest.records]
    storage.move_all_into_place([(f.written, f.path) for f in files if f.written != f.path])
    for change in manifest.partitions:
        if change.cleared is not None:
            _bring_home(storage, change.left or "", change.location, change.cleared, change.kept)
    show(storage, catalog, state, after, manifest)
    add_to_ledger(storage, manifest.source_id, manifest.ledger)
    if manifest.finish_time is not None:
        close_run(storage, catalog, manifest.run, manifest.report, manifest.finish_time)
    write_state(storage, after)
    return after


def _bring_home(
    storage: Storage, left: str, home: str, cleared: Sequence[str], kept: Sequence[HeldFile]
) -> None:
    """Copy the files of a partition to its own folder, and remove the files that were there before.

    File names are never reused, so a late repetition removes nothing that is needed.
    """
    storage.each(lambda name: storage.delete(f"{home}/{name}"), cleared)
    storage.copy_all([(f"{left}/{file.name}", f"{home}/{file.name}") for file in kept])
    storage.make_durable([f"{home}/{file.name}" for file in kept])


def _declare(storage: Storage, catalog: Catalog, entries: Sequence[CatalogTable]) -> None:
    """Create tables in the catalog, or add their new columns."""
    made = zip(entries, catalog.create_tables(entries), strict=True)
    storage.each(
        lambda entry: catalog.append_columns(entry.database, entry.name, entry.columns),
        [entry for entry, is_new in made if not is_new],
    )


def catalog_entry(state: SourceState, schema: TableSchema) -> CatalogTable:
    """The catalog entry of a table."""
    return CatalogTable(
        database=schema.database,
        name=schema.name,
        columns=tuple(CatalogColumn(c.name, c.type.sql, c.pointer) for c in schema.columns),
        partition_keys=DatePartition(state.layouts[schema.key].date_partition).keys,
        location=paths.table_folder(state.source_id, schema.table),
        comment=schema.original,
        retyped=state.retyped.get(schema.key, 0),
    )

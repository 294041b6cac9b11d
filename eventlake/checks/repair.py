"""Repairs the catalog: restores what the manifests published."""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from eventlake.catalog.base import Catalog, CatalogPartition, CatalogTable
from eventlake.catalog.local import remove_damaged
from eventlake.catalog.pages import change_pages
from eventlake.checks.drift import column_problems
from eventlake.checks.partitions import Comparison
from eventlake.checks.view import Values
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.clock import new_run_id
from eventlake.rules.errors import StateError
from eventlake.rules.types import TableSchema
from eventlake.runs.open_runs import restore_reports
from eventlake.runs.publish import catalog_entry, catch_up
from eventlake.settings.models import Source
from eventlake.state.lease import Lease, held_lease
from eventlake.state.manifest import read_manifest, read_pruned
from eventlake.state.partitions import Partitions
from eventlake.state.source_state import SourceState, read_state
from eventlake.storage import Storage

Published = dict[Values, CatalogPartition]


@dataclass
class CatalogRepair:
    """What was repaired."""

    entries: list[str] = field(default_factory=list)  # tables
    registered: dict[str, int] = field(default_factory=dict)  # partitions, by table
    unregistered: dict[str, int] = field(default_factory=dict)
    lost_rows: dict[str, int] = field(default_factory=dict)  # of partitions that no manifest has

    def __bool__(self) -> bool:
        return bool(self.entries or self.registered or self.unregistered)

    def note(self, key: str, compared: Comparison) -> None:
        if put := len(compared.missing) + len(compared.moved):
            self.registered[key] = max(put, self.registered.get(key, 0))
        if compared.foreign:
            self.unregistered[key] = len(compared.foreign)


def repair_catalog(lake: Lake, source: Source, waiting: Callable[[Lease], None]) -> CatalogRepair:
    """Make the pages of a source match its manifests, and the catalog match both; no data file is
    changed.

    Idempotent. The lease keeps runs from publishing at the same time.
    """
    lake = lake.for_source(source)
    storage, catalog, repaired = lake.storage, lake.catalog, CatalogRepair()
    with held_lease(storage, source.id, new_run_id(), "repair of the catalog", waiting):
        for schema in read_state(storage, source.id).tables.values():
            remove_damaged(storage, paths.catalog_table(schema.database, schema.name))
        restore_reports(storage, catalog)
        state = catch_up(storage, catalog, source.id)
        pruned = read_pruned(storage, source.id)
        published = published_partitions(storage, state, pruned)
        for schema in state.tables_of(source).values():
            wanted = catalog_entry(state, schema)
            found = catalog.table(schema.database, schema.name)
            if found is None or _is_wrong(catalog, found, wanted, schema):
                catalog.ensure_database(schema.database)
                catalog.restore(wanted)
                repaired.entries.append(schema.key)
            kept = _mend_pages(lake, state, schema.key, published, pruned, repaired)
            if catalog.follows:
                _mend_catalog(catalog, state, schema.key, kept, repaired)
    return repaired


def _is_wrong(
    catalog: Catalog, found: CatalogTable, wanted: CatalogTable, schema: TableSchema
) -> bool:
    elsewhere = found.location != wanted.location
    older = not catalog.follows and found.retyped != wanted.retyped
    return elsewhere or older or any(column_problems(found, schema))


def published_partitions(storage: Storage, state: SourceState, pruned: int) -> dict[str, Published]:
    """The partitions that result from all manifests that are kept."""
    tables: dict[str, Published] = {}
    for number in range(pruned + 1, state.manifest + 1):
        manifest = read_manifest(storage, state.source_id, number)
        if manifest is None:
            raise StateError(
                f"Manifest {number} of source {state.source_id} is missing, so the content of "
                "the catalog cannot be derived. Restore it from a backup, or replay all days."
            )
        for change in manifest.partitions:
            held = tables.setdefault(change.table, {})
            held.pop(change.values, None)
            if (partition := change.partition(number)) is not None:
                held[change.values] = partition
    return tables


def _mend_pages(
    lake: Lake,
    state: SourceState,
    key: str,
    published: dict[str, Published],
    pruned: int,
    repaired: CatalogRepair,
) -> list[CatalogPartition]:
    """Bring the pages of a table in line with its manifests; the partitions that it has then."""
    partitions = Partitions(lake.storage, lake.catalog)
    schema, table = state.tables[key], state.page_table(key)
    held = partitions.of(state, schema)
    # Only the pages have what pruned manifests published.
    wanted = {p.values: p for p in held if 0 < p.version <= pruned} | published.get(key, {})
    if lost := state.rows.get(key, 0) - sum(partition.rows for partition in wanted.values()):
        repaired.lost_rows[key] = lost
    compared = Comparison.of(wanted.values(), held)
    put = {table.named: compared.to_put()}
    gone = {table.named: [partition.values for partition in compared.foreign]}
    change_pages(lake.storage, [table], put, gone, state.manifest)
    repaired.note(key, compared)
    return partitions.of(state, schema)


def _mend_catalog(
    catalog: Catalog,
    state: SourceState,
    key: str,
    wanted: list[CatalogPartition],
    repaired: CatalogRepair,
) -> None:
    """Bring a catalog that has partitions of its own in line with the pages."""
    database, name = key.split(".", 1)
    compared = Comparison.of(wanted, catalog.partitions(database, name))
    catalog.put_partitions(database, name, compared.to_put())
    if compared.missing:
        still = Comparison.of(wanted, catalog.partitions(database, name)).missing
        # A later manifest dropped others, and Glue stores only the version of the last drop.
        again = [msgspec.structs.replace(one, version=state.manifest) for one in still]
        catalog.put_partitions(database, name, again)
    if compared.foreign:
        foreign = [partition.values for partition in compared.foreign]
        catalog.drop_partitions(database, name, foreign, state.manifest)
    repaired.note(key, compared)

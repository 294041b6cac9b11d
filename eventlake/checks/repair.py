"""Repairs the catalog: restores what the manifests published."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from eventlake.catalog.base import Catalog, CatalogPartition
from eventlake.checks.drift import column_problems
from eventlake.checks.view import Values
from eventlake.lake import Lake
from eventlake.rules.clock import new_run_id
from eventlake.rules.errors import StateError
from eventlake.rules.partitions import DatePartition
from eventlake.runs.publish import catalog_entry, catalog_partition, catch_up
from eventlake.settings.models import Source
from eventlake.state.lease import Lease, held_lease
from eventlake.state.manifest import read_manifest, read_pruned
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage

Partitions = dict[Values, CatalogPartition]


@dataclass
class CatalogRepair:
    """What was repaired."""

    entries: list[str] = field(default_factory=list)  # tables
    registered: dict[str, int] = field(default_factory=dict)  # partitions, by table
    unregistered: dict[str, int] = field(default_factory=dict)
    lost_rows: dict[str, int] = field(default_factory=dict)  # of partitions that no manifest has

    def __bool__(self) -> bool:
        return bool(self.entries or self.registered or self.unregistered)


def repair_catalog(lake: Lake, source: Source, waiting: Callable[[Lease], None]) -> CatalogRepair:
    """Make the catalog entries of a source match its manifests; no data file is changed.

    Idempotent. The lease keeps runs from publishing at the same time.
    """
    lake = lake.for_source(source)
    repaired = CatalogRepair()
    with held_lease(lake.storage, source.id, new_run_id(), "repair of the catalog", waiting):
        state = catch_up(lake.storage, lake.catalog, source.id)
        pruned = read_pruned(lake.storage, source.id)
        published = published_partitions(lake.storage, state, pruned)
        for schema in state.tables_of(source).values():
            layout = DatePartition(state.layouts[schema.key].date_partition)
            wanted = catalog_entry(schema, layout, source.id)
            found = lake.catalog.table(schema.database, schema.name)
            wrong = found is None or found.location != wanted.location
            if wrong or (found and any(column_problems(found, schema))):
                lake.catalog.ensure_database(schema.database)
                lake.catalog.restore(wanted)
                repaired.entries.append(schema.key)
            wanted_now = published.get(schema.key, {})
            _repair_partitions(lake.catalog, state, schema.key, wanted_now, pruned, repaired)
    return repaired


def published_partitions(
    storage: Storage, state: SourceState, pruned: int
) -> dict[str, Partitions]:
    """The partitions that result from all manifests that are kept."""
    tables: dict[str, Partitions] = {}
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
            if not change.dropped:
                held[change.values] = catalog_partition(change, number)
    return tables


def _repair_partitions(
    catalog: Catalog,
    state: SourceState,
    key: str,
    published: Partitions,
    pruned: int,
    repaired: CatalogRepair,
) -> None:
    database, name = key.split(".", 1)
    found = _registered(catalog, database, name)
    # Only the catalog has what pruned manifests published.
    wanted = {v: p for v, p in found.items() if 0 < p.version <= pruned} | published
    if lost := state.rows.get(key, 0) - sum(partition.rows for partition in wanted.values()):
        repaired.lost_rows[key] = lost
    moved = [p for v, p in wanted.items() if v in found and _differs(found[v], p)]
    missing = [partition for values, partition in wanted.items() if values not in found]
    foreign = found.keys() - wanted.keys()
    if missing or moved:
        catalog.put_partitions(database, name, [*missing, *_newer(moved, found)])
        repaired.registered[key] = len(missing) + len(moved)
    if missing and (left := wanted.keys() - _registered(catalog, database, name).keys()):
        # A later manifest dropped others, and Glue stores only the version of the last drop.
        last = {"version": state.manifest}
        again = [msgspec.structs.replace(wanted[values], **last) for values in sorted(left)]
        catalog.put_partitions(database, name, again)
    if foreign:
        catalog.drop_partitions(database, name, sorted(foreign), state.manifest)
        repaired.unregistered[key] = len(foreign)


def _registered(catalog: Catalog, database: str, name: str) -> Partitions:
    return {partition.values: partition for partition in catalog.partitions(database, name)}


def _differs(found: CatalogPartition, wanted: CatalogPartition) -> bool:
    """But for the version: who has repaired it before has given it a later one."""
    return msgspec.structs.replace(found, version=0) != msgspec.structs.replace(wanted, version=0)


def _newer(moved: Iterable[CatalogPartition], found: Partitions) -> Iterable[CatalogPartition]:
    """With a version that the catalog accepts as the newest."""
    for one in moved:
        version = max(one.version, found[one.values].version)
        yield msgspec.structs.replace(one, version=version)

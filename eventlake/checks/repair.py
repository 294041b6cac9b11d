"""The catalog as all manifests together say it is to be: put back what somebody changed by hand."""

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
class Mended:
    """What was put right."""

    entries: list[str] = field(default_factory=list)  # tables
    registered: dict[str, int] = field(default_factory=dict)  # partitions, by table
    unregistered: dict[str, int] = field(default_factory=dict)
    lost_rows: dict[str, int] = field(default_factory=dict)  # of partitions nobody remembers

    def __bool__(self) -> bool:
        return bool(self.entries or self.registered or self.unregistered)


def mend_catalog(lake: Lake, source: Source, waiting: Callable[[Lease], None]) -> Mended:
    """Hold all tables of a source against all its manifests; no file of theirs is touched.

    It is repeatable, and what a run publishes later has the last word. The lease keeps runs from
    publishing while it looks.
    """
    lake = lake.for_source(source)
    mended = Mended()
    with held_lease(lake.storage, source.id, new_run_id(), "mending the catalog", waiting):
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
                mended.entries.append(schema.key)
            wanted_now = published.get(schema.key, {})
            _mend_partitions(lake.catalog, state, schema.key, wanted_now, pruned, mended)
    return mended


def published_partitions(
    storage: Storage, state: SourceState, pruned: int
) -> dict[str, Partitions]:
    """Where partitions lie by all manifests that are kept, in their order."""
    tables: dict[str, Partitions] = {}
    for number in range(pruned + 1, state.manifest + 1):
        manifest = read_manifest(storage, state.source_id, number)
        if manifest is None:
            raise StateError(
                f"Manifest {number} of source {state.source_id} is not there, so nobody can tell "
                "what the catalog is to hold. Restore it from a backup, or replay all days."
            )
        for change in manifest.partitions:
            held = tables.setdefault(change.table, {})
            held.pop(change.values, None)
            if not change.dropped:
                held[change.values] = catalog_partition(change, number)
    return tables


def _mend_partitions(
    catalog: Catalog,
    state: SourceState,
    key: str,
    published: Partitions,
    pruned: int,
    mended: Mended,
) -> None:
    database, name = key.split(".", 1)
    found = _registered(catalog, database, name)
    # What manifests said that are gone by now, only the catalog knows.
    wanted = {v: p for v, p in found.items() if 0 < p.version <= pruned} | published
    if lost := state.rows.get(key, 0) - sum(partition.rows for partition in wanted.values()):
        mended.lost_rows[key] = lost
    moved = [p for v, p in wanted.items() if v in found and _differs(found[v], p)]
    missing = [partition for values, partition in wanted.items() if values not in found]
    foreign = found.keys() - wanted.keys()
    if missing or moved:
        catalog.put_partitions(database, name, [*missing, *_newer(moved, found)])
        mended.registered[key] = len(missing) + len(moved)
    if missing and (left := wanted.keys() - _registered(catalog, database, name).keys()):
        # Since then a manifest dropped others, and Glue remembers no more than that.
        last = {"version": state.manifest}
        again = [msgspec.structs.replace(wanted[values], **last) for values in sorted(left)]
        catalog.put_partitions(database, name, again)
    if foreign:
        catalog.drop_partitions(database, name, sorted(foreign), state.manifest)
        mended.unregistered[key] = len(foreign)


def _registered(catalog: Catalog, database: str, name: str) -> Partitions:
    return {partition.values: partition for partition in catalog.partitions(database, name)}


def _differs(found: CatalogPartition, wanted: CatalogPartition) -> bool:
    """But for the version: who has mended it before has given it a later one."""
    return msgspec.structs.replace(found, version=0) != msgspec.structs.replace(wanted, version=0)


def _newer(moved: Iterable[CatalogPartition], found: Partitions) -> Iterable[CatalogPartition]:
    """With a version that the catalog takes for the last word."""
    for one in moved:
        version = max(one.version, found[one.values].version)
        yield msgspec.structs.replace(one, version=version)

"""What manifests replaced goes after a grace time, in which queries that began before can end."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from eventlake.catalog.base import Catalog, partition_day
from eventlake.rules import paths
from eventlake.rules.partitions import DatePartition
from eventlake.state.manifest import Manifest, made_at, raise_mark, read_manifest, read_mark
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage
from eventlake.upkeep.removal import Removed, remove_places, unneeded
from eventlake.upkeep.unused import state_places


def clean_replaced(
    storage: Storage, catalog: Catalog, state: SourceState, before: datetime
) -> Iterator[Removed]:
    """Remove what manifests replaced that were made before a moment, one by one.

    Whoever stops in the middle has lost nothing: what is gone is gone, and the manifest that was
    not done with is taken again.
    """
    for manifest, needed in _due(storage, catalog, state, before):
        removed = remove_places(storage, vacated(manifest), needed)
        raise_mark(storage, paths.cleaned(state.source_id), manifest.number)
        yield removed


def due_places(
    storage: Storage, catalog: Catalog, state: SourceState, hours: int, at: datetime
) -> list[str]:
    """What a clean-up would remove."""
    due = _due(storage, catalog, state, at - timedelta(hours=hours))
    return [place for manifest, needed in due for place in unneeded(vacated(manifest), needed)]


def _due(
    storage: Storage, catalog: Catalog, state: SourceState, before: datetime
) -> Iterator[tuple[Manifest, set[str]]]:
    """The manifests to clean up after that were made before a moment, and what has to stay."""
    for number in _uncleaned(storage, state):
        # Mostly the first is not due yet, and need not be read as a whole.
        made = made_at(storage, state.source_id, number)
        if made is not None and made >= before:
            return
        manifest = read_manifest(storage, state.source_id, number) if made else None
        if manifest is not None:
            yield manifest, state_places(state) | _in_catalog(catalog, state, manifest)


def replacing(storage: Storage, state: SourceState) -> Iterator[Manifest]:
    """The manifests that are not cleaned up after yet, the oldest first."""
    for number in _uncleaned(storage, state):
        manifest = read_manifest(storage, state.source_id, number)
        if manifest is not None:
            yield manifest


def _uncleaned(storage: Storage, state: SourceState) -> range:
    """Their numbers."""
    return range(cleaned_up_to(storage, state.source_id) + 1, state.manifest + 1)


def vacated(manifest: Manifest) -> list[str]:
    """Folders and files that nothing leads to since a manifest."""
    changes = (*manifest.partitions, *manifest.shadows)
    folders = dict.fromkeys(change.vacated for change in changes if change.vacated)
    return [*folders, *manifest.unused]


def _in_catalog(catalog: Catalog, state: SourceState, manifest: Manifest) -> set[str]:
    """Where the tables of a manifest lie now: to be on the safe side, should a folder be back."""
    keys = DatePartition(manifest.date_partition).keys
    days: dict[str, list[str]] = {}
    for change in manifest.partitions:
        if change.vacated:
            days.setdefault(change.table, []).append(partition_day(keys, change.values))
    return {
        partition.location
        for schema, touched in ((state.tables[key], days[key]) for key in days)
        for partition in catalog.partitions(
            schema.database, schema.name, (min(touched), max(touched))
        )
    }


def cleaned_up_to(storage: Storage, source_id: str) -> int:
    """The number of the last manifest after which all is cleaned up."""
    return read_mark(storage, paths.cleaned(source_id))

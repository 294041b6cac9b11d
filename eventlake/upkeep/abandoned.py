"""Files of runs that failed, or lost a race, before these files were committed."""

from datetime import datetime

from eventlake.catalog.base import Catalog
from eventlake.rules import paths
from eventlake.state.manifest import abandoned_runs, forget_abandoned
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage
from eventlake.upkeep.removal import Removed, remove_places
from eventlake.upkeep.replaced import replacing, vacated
from eventlake.upkeep.unused import state_places


def clean_abandoned(
    storage: Storage, catalog: Catalog, state: SourceState, before: datetime
) -> Removed:
    """Remove what such runs left in version folders and in the index, some time after their end.

    At once would be too early: tasks of a dead run may still be writing.
    """
    source_id = state.source_id
    open_runs = {file.name for file in storage.files(paths.open_runs(source_id))}
    runs = [
        run.run_id
        for run in abandoned_runs(storage, source_id, before)
        if f"{run.run_id}.json" not in open_runs
    ]
    # If somebody has committed just now, a run that is over may have more in the lake than the
    # state tells: next time.
    if not runs or storage.exists(paths.manifest(source_id, state.manifest + 1)):
        return Removed()
    folders = _written_folders(storage, source_id, tuple(runs))
    index = [
        file.path
        for file in storage.files(paths.id_indexes(source_id))
        if _is_of(file.name, tuple(runs))
    ]
    # What is replaced has its own time.
    needed = {place for manifest in replacing(storage, state) for place in vacated(manifest)}
    needed |= state_places(state)
    needed |= _in_catalog(catalog, state, folders)
    removed = remove_places(storage, [*folders, *index], needed)
    for run_id in runs:
        storage.abandon("segment-data", run_id)
        forget_abandoned(storage, source_id, run_id)
    return removed


def _written_folders(storage: Storage, source_id: str, runs: tuple[str, ...]) -> dict[str, str]:
    """Folders with files in the version folders of these runs, each with its table."""
    root = paths.versions(source_id)
    found: dict[str, str] = {}
    for version in storage.folders(root):
        if _is_of(version, runs):
            for file in storage.files(f"{root}/{version}"):
                folder = file.path.rpartition("/")[0]
                found[folder] = folder.partition("segment_type=")[2].partition("/")[0]
    return found


def _is_of(name: str, runs: tuple[str, ...]) -> bool:
    """Folders and files are named after the run, then a dash and more."""
    return name.partition("-")[0] in runs


def _in_catalog(catalog: Catalog, state: SourceState, folders: dict[str, str]) -> set[str]:
    tables = set(folders.values())
    return {
        partition.location
        for schema in state.tables.values()
        if schema.table in tables
        for partition in catalog.partitions(schema.database, schema.name)
    }

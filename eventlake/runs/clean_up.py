"""Clean-up of a source at the end of its runs: everything that is due, within a bounded time."""

import time
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from eventlake.catalog.base import Catalog, partition_day
from eventlake.rules import paths
from eventlake.rules.partitions import DatePartition
from eventlake.runs.open_runs import open_run_ids
from eventlake.settings.models import Source
from eventlake.state.manifest import (
    Manifest,
    abandoned_runs,
    forget_abandoned,
    made_at,
    raise_mark,
    read_mark,
    whole_manifest,
)
from eventlake.state.partitions import Partitions
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage, StoredFile

THREADS = 16


@dataclass(frozen=True, slots=True)
class Removed:
    """Files and bytes that were removed."""

    files: int = 0
    bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.files)

    def __add__(self, other: "Removed") -> "Removed":
        return Removed(self.files + other.files, self.bytes + other.bytes)


def remove_paths(storage: Storage, removable: Iterable[str], needed: Collection[str]) -> Removed:
    """Remove files and folders, except needed ones and those that contain a needed one."""
    gone = unneeded(removable, needed)
    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(lambda path: _remove(storage, path), gone), Removed())


def unneeded(removable: Iterable[str], needed: Collection[str]) -> list[str]:
    """The paths that can be removed: neither they nor anything below them are needed."""
    around = {folder for path in needed for folder in _and_parents(path)}
    return [path for path in removable if path not in around]


def _remove(storage: Storage, path: str) -> Removed:
    """Remove a folder with everything below it; a path with an extension is a file."""
    if path.endswith(".arrow"):
        had = storage.files(path.rpartition("/")[0], recursive=False)
        storage.delete(path)
        return counted(file for file in had if file.path == path)
    had = storage.files(path)
    # Files that other programs put into our folders are left alone.
    ours = [file for file in had if paths.is_removable(file.path)]
    if len(ours) == len(had):
        storage.delete_folder(path)
    else:
        storage.each(lambda file: storage.delete(file.path), ours)
    return counted(ours)


def counted(files: Iterable[StoredFile]) -> Removed:
    """The number and size of these files."""
    return sum((Removed(1, file.size) for file in files), Removed())


def _and_parents(path: str) -> Iterable[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def with_unused(state: SourceState, manifest: Manifest, made: datetime) -> Manifest:
    """The manifest with its time, and with everything that is unreferenced after it."""
    after = state.after(manifest)
    moved = {change.location for change in manifest.partitions}
    gone = state_places(state) - state_places(after) - moved
    # The old files of a partition that was away are in its documented folder.
    gone |= {
        after.home(change.table, change.values)
        for change in manifest.partitions
        if change.dropped and after.tables[change.table].owns_folder
    }
    return msgspec.structs.replace(manifest, made=made, unused=tuple(sorted(gone)))


def state_places(state: SourceState) -> set[str]:
    """What the state itself references: index files, and folders of shadows."""
    files = {file.path for files in state.index.values() for file in files}
    return files | {s.location for shadows in state.shadows.values() for s in shadows.values()}


def clean_replaced(
    storage: Storage, catalog: Catalog, state: SourceState, before: datetime
) -> Iterator[Removed]:
    """Remove what older manifests replaced, one manifest at a time.

    If this is interrupted, the next clean-up repeats the manifest that was not completed.
    """
    for manifest, needed in _due(storage, catalog, state, before):
        removed = remove_paths(storage, vacated(manifest), needed)
        raise_mark(storage, paths.cleaned(state.source_id), manifest.number)
        yield removed


def due_places(
    storage: Storage, catalog: Catalog, state: SourceState, hours: int, at: datetime
) -> list[str]:
    """What a clean-up would remove."""
    due = _due(storage, catalog, state, at - timedelta(hours=hours))
    return [path for manifest, needed in due for path in unneeded(vacated(manifest), needed)]


def _due(
    storage: Storage, catalog: Catalog, state: SourceState, before: datetime
) -> Iterator[tuple[Manifest, set[str]]]:
    """The older manifests to clean up after, and the paths that have to stay."""
    for number in _uncleaned(storage, state):
        # Usually the first is not due yet, so it need not be read completely.
        made = made_at(storage, state.source_id, number)
        if made is not None and made >= before:
            return
        manifest = whole_manifest(storage, state.source_id, number) if made else None
        if manifest is not None:
            yield manifest, state_places(state) | _in_catalog(storage, catalog, state, manifest)


def replacing(storage: Storage, state: SourceState) -> Iterator[Manifest]:
    """The manifests that have not been cleaned up after, the oldest first."""
    for number in _uncleaned(storage, state):
        manifest = whole_manifest(storage, state.source_id, number)
        if manifest is not None:
            yield manifest


def _uncleaned(storage: Storage, state: SourceState) -> range:
    """Their numbers."""
    return range(cleaned_up_to(storage, state.source_id) + 1, state.manifest + 1)


def vacated(manifest: Manifest) -> list[str]:
    """Folders and files that are unreferenced since a manifest."""
    changes = (*manifest.partitions, *manifest.shadows)
    folders = dict.fromkeys(change.vacated for change in changes if change.vacated)
    return [*folders, *manifest.unused]


def _in_catalog(
    storage: Storage, catalog: Catalog, state: SourceState, manifest: Manifest
) -> set[str]:
    """The current locations of the tables of a manifest, in case a folder is in use again."""
    keys = DatePartition(manifest.date_partition).keys
    days: dict[str, list[str]] = {}
    for change in manifest.partitions:
        if change.vacated:
            days.setdefault(change.table, []).append(partition_day(keys, change.values))
    return {
        partition.location
        for schema, touched in ((state.tables[key], days[key]) for key in days)
        for partition in Partitions(storage, catalog).of(
            state, schema, (min(touched), max(touched))
        )
    }


def cleaned_up_to(storage: Storage, source_id: str) -> int:
    """The number of the last manifest that was cleaned up after."""
    return read_mark(storage, paths.cleaned(source_id))


def clean_abandoned(
    storage: Storage, catalog: Catalog, state: SourceState, before: datetime
) -> Removed:
    """Remove what abandoned runs left in version folders and in the index, some time after their
    end.

    Tasks of a dead run may still be writing, so this cannot be done at once.
    """
    source_id = state.source_id
    open_runs = open_run_ids(storage, source_id)
    runs = [
        run.run_id
        for run in abandoned_runs(storage, source_id, before)
        if run.run_id not in open_runs
    ]
    # After a concurrent commit, a finished run may have more in the lake than the state
    # shows: leave it to the next time.
    if not runs or storage.exists(paths.manifest(source_id, state.manifest + 1)):
        return Removed()
    folders = _written_folders(storage, source_id, tuple(runs))
    index = [
        file.path
        for file in storage.files(paths.id_indexes(source_id))
        if _is_of(file.name, tuple(runs))
    ]
    # Replaced files have their own grace period.
    needed = {path for manifest in replacing(storage, state) for path in vacated(manifest)}
    needed |= state_places(state)
    needed |= _lies_in_catalog(storage, catalog, state, folders)
    removed = remove_paths(storage, [*folders, *index], needed)
    for run_id in runs:
        storage.discard_partial_writes("segment-data", run_id)
        forget_abandoned(storage, source_id, run_id)
    return removed


def _written_folders(storage: Storage, source_id: str, runs: tuple[str, ...]) -> dict[str, str]:
    """The version folders of these runs that have files, each with its table."""
    found: dict[str, str] = {}
    for root in paths.version_roots(source_id):
        for version in (name for name in storage.folders(root) if _is_of(name, runs)):
            for file in storage.files(f"{root}/{version}"):
                folder = file.path.rpartition("/")[0]
                found[folder] = folder.partition("segment_type=")[2].partition("/")[0]
    return found


def _is_of(name: str, runs: tuple[str, ...]) -> bool:
    """Folders and files are named after the run, then a dash and more."""
    return name.partition("-")[0] in runs


def _lies_in_catalog(
    storage: Storage, catalog: Catalog, state: SourceState, folders: dict[str, str]
) -> set[str]:
    tables = set(folders.values())
    return {
        partition.location
        for schema in state.tables.values()
        if schema.table in tables
        for partition in Partitions(storage, catalog).of(state, schema)
    }


ORPHANED_AFTER = timedelta(days=1)
"""A task that outlives its run may still be writing, and dry runs are not registered."""


def clean_staging(
    storage: Storage, source_id: str, now: datetime, most_days: int
) -> dict[str, Removed]:
    """Remove the staging of runs that are not open, some time after the last write.

    Messages of clusters are removed after `most_days`.
    """
    open_runs = open_run_ids(storage, source_id)
    removed: dict[str, Removed] = {}
    for run_id in filter(paths.is_run_id, storage.folders(paths.staged_runs(source_id))):
        if run_id in open_runs:
            continue
        folder = paths.stage(source_id, run_id)
        gone = _cleared(storage, folder, now - ORPHANED_AFTER)
        if gone is not None:
            removed[run_id] = gone
    for run_id in filter(paths.is_run_id, storage.folders(paths.all_pipes())):
        gone = _cleared(storage, paths.pipes(run_id), now - timedelta(days=most_days))
        if gone is not None:
            removed[run_id] = removed.get(run_id, Removed()) + gone
    return removed


def _cleared(storage: Storage, folder: str, before: datetime) -> Removed | None:
    """Clear a folder that was not written to since a time; returns what was removed."""
    files = storage.files(folder)
    last = max((file.modified_ns for file in files), default=0)
    if datetime.fromtimestamp(last / 1e9, UTC) > before:
        return None
    storage.delete_folder(folder)
    return counted(files)


MOST_SECONDS = 60.0
"""Clean up at the end of a run; the next run continues."""


@dataclass(frozen=True, slots=True)
class CleanUp:
    """The removed files and folders."""

    replaced: Removed
    abandoned: Removed
    staging: tuple[str, ...]  # runs
    staged: Removed  # by these

    def __bool__(self) -> bool:
        return bool(self.replaced or self.abandoned or self.staging)


def clean_up(
    storage: Storage,
    catalog: Catalog,
    source: Source,
    state: SourceState,
    now: datetime,
    most_seconds: float = MOST_SECONDS,
) -> CleanUp:
    """Remove what has been replaced or abandoned for longer than the grace period.

    Catch up before: manifests that are not applied need their staged files."""
    end = time.monotonic() + most_seconds
    before = now - timedelta(hours=source.retention.replaced_hours)
    replaced = Removed()
    for removed in clean_replaced(storage, catalog, state, before):
        replaced += removed
        if time.monotonic() > end:
            break
    abandoned = clean_abandoned(storage, catalog, state, before)
    staging = clean_staging(storage, source.id, now, source.retention.stage_days)
    return CleanUp(replaced, abandoned, tuple(staging), sum(staging.values(), Removed()))

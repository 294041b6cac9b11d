"""Files of ours that nothing leads to: seen once they are noted, seen again much later they go."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from eventlake.catalog.base import Catalog
from eventlake.rules import paths
from eventlake.runs.clean_up import Removed, counted, replacing, state_places, vacated
from eventlake.state.manifest import abandoned_runs
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage, StoredFile
from eventlake.storage.documents import decode, encode

# `<run>-<unit>-<part>.parquet`: what others put into a table's folder is called otherwise.
_OURS = re.compile(r"[A-Za-z0-9]+-\d+-\d+\.parquet", re.ASCII)

_ANY_TIME = datetime.max.replace(tzinfo=UTC)


class Notes(msgspec.Struct, frozen=True):
    """When each of them was first seen, by path."""

    seen: dict[str, datetime] = {}


@dataclass(frozen=True, slots=True)
class Orphans:
    """Files that nothing leads to: those whose time has come, and those that wait for it."""

    due: tuple[StoredFile, ...] = ()
    waiting: tuple[StoredFile, ...] = ()


def look_for_orphans(
    storage: Storage, catalog: Catalog, state: SourceState, at: datetime, days: int
) -> Orphans:
    """Look, and change nothing; while somebody commits, nothing is judged."""
    if storage.exists(paths.manifest(state.source_id, state.manifest + 1)):
        return Orphans()
    known, before = _notes(storage, state.source_id).seen, at - timedelta(days=days)
    due: list[StoredFile] = []
    waiting: list[StoredFile] = []
    for file in orphans(storage, catalog, state):
        (due if known.get(file.path, at) <= before else waiting).append(file)
    return Orphans(tuple(due), tuple(waiting))


def remove_orphans(storage: Storage, source_id: str, found: Orphans, at: datetime) -> Removed:
    """Remove those that are due, and note when the others were first seen."""
    storage.each(lambda file: storage.delete(file.path), found.due)
    known = _notes(storage, source_id).seen
    seen = {file.path: known.get(file.path, at) for file in found.waiting}
    if seen != known:
        storage.write(paths.orphans(source_id), encode(Notes(seen)))
    return counted(found.due)


def orphans(storage: Storage, catalog: Catalog, state: SourceState) -> Iterator[StoredFile]:
    """Data and index files, and partitions of the catalog in types that tables had once."""
    folders = {
        partition.location
        for schema in state.tables.values()
        for partition in catalog.partitions(schema.database, schema.name)
    }
    # What is replaced or abandoned has its own time.
    folders |= {place for manifest in replacing(storage, state) for place in vacated(manifest)}
    folders |= state_places(state)
    pending = _pending_runs(storage, state)
    for file in _written(storage, state):
        folder = file.path.rpartition("/")[0]
        if not {file.path, folder} & folders and _run_of(file.path) not in pending:
            yield file
    for schema in state.tables.values():
        for folder in catalog.leftovers(schema.database, schema.name):
            yield from storage.files(folder)


def _written(storage: Storage, state: SourceState) -> Iterator[StoredFile]:
    """Files that runs of this lake have written: where others may keep tables, by their names."""
    source_id = state.source_id
    own = {schema.table for schema in state.tables.values() if schema.owns_folder}
    places = [paths.versions(source_id), *(paths.table_folder(source_id, table) for table in own)]
    for files in storage.each(storage.files, sorted(places)):
        yield from (file for file in files if _OURS.fullmatch(file.name))
    index = storage.files(paths.id_indexes(source_id))
    yield from (file for file in index if file.name.endswith(".arrow"))


def _run_of(path: str) -> str:
    """Files are named after the run, then a dash and more."""
    return path.rpartition("/")[2].partition("-")[0]


def _pending_runs(storage: Storage, state: SourceState) -> set[str]:
    """Runs that may commit what they have written, or are cleaned up after by and by."""
    source_id = state.source_id
    going_on = {f.name.removesuffix(".json") for f in storage.files(paths.open_runs(source_id))}
    notes = abandoned_runs(storage, source_id, _ANY_TIME)
    return going_on | {note.run_id for note in notes}


def _notes(storage: Storage, source_id: str) -> Notes:
    path = paths.orphans(source_id)
    data = storage.read(path)
    return Notes() if data is None else decode(data, Notes, path)

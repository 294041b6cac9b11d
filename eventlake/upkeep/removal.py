"""Upkeep that removes: orphaned files, old days of the id index, old manifests, expired logs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import msgspec
from msgspec.structs import replace

from eventlake.catalog.base import Catalog
from eventlake.catalog.pages import leftover_pages
from eventlake.rules import paths
from eventlake.rules.errors import CommitConflict, StateError
from eventlake.runs.clean_up import (
    Removed,
    cleaned_up_to,
    counted,
    remove_paths,
    replacing,
    state_places,
    vacated,
    with_unused,
)
from eventlake.runs.context import now
from eventlake.runs.open_runs import open_run_ids, open_runs
from eventlake.runs.record_log import drop_records, read_metadata
from eventlake.runs.run import Run
from eventlake.settings.models import Settings, Source
from eventlake.state.manifest import RunKind, abandoned_runs, note_pruned
from eventlake.state.partitions import Partitions
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage, StoredFile
from eventlake.storage.documents import decode_note, encode

_ANY_TIME = datetime.max.replace(tzinfo=UTC)


class Notes(msgspec.Struct, frozen=True):
    """When each orphan was first seen, by path."""

    seen: dict[str, datetime] = {}


@dataclass(frozen=True, slots=True)
class Orphans:
    """Files that nothing refers to: due for removal, or within the grace period."""

    due: tuple[StoredFile, ...] = ()
    waiting: tuple[StoredFile, ...] = ()


def find_orphans(
    storage: Storage, catalog: Catalog, state: SourceState, at: datetime, days: int
) -> Orphans:
    """Find orphans without changing anything; returns none while a commit is being applied."""
    if storage.exists(paths.manifest(state.source_id, state.manifest + 1)):
        return Orphans()
    known, before = _notes(storage, state.source_id).seen, at - timedelta(days=days)
    due: list[StoredFile] = []
    waiting: list[StoredFile] = []
    for file in orphans(storage, catalog, state):
        (due if known.get(file.path, at) <= before else waiting).append(file)
    return Orphans(tuple(due), tuple(waiting))


def remove_orphans(storage: Storage, source_id: str, found: Orphans, at: datetime) -> Removed:
    """Remove those that are due, and record when the others were first seen."""
    storage.each(lambda file: storage.delete(file.path), found.due)
    known = _notes(storage, source_id).seen
    seen = {file.path: known.get(file.path, at) for file in found.waiting}
    if seen != known:
        storage.write(paths.orphans(source_id), encode(Notes(seen)))
    return counted(found.due)


def orphans(storage: Storage, catalog: Catalog, state: SourceState) -> Iterator[StoredFile]:
    """Data and index files, and pages of the catalog with former types."""
    held = Partitions(storage, catalog).of_all(state, state.tables.values())
    folders = {partition.location for partitions in held.values() for partition in partitions}
    # Old files stay in the documented folder of a partition until it comes home.
    folders |= {
        state.home(key, one.values) for key, partitions in held.items() for one in partitions
    }
    # Replaced and abandoned files have their own grace period.
    folders |= {place for manifest in replacing(storage, state) for place in vacated(manifest)}
    folders |= state_places(state)
    pending = _pending_runs(storage, state)
    for file in _written(storage, state):
        folder = file.path.rpartition("/")[0]
        if not {file.path, folder} & folders and _run_of(file.path) not in pending:
            yield file
    for schema in state.tables.values():
        for folder in leftover_pages(storage, state.page_table(schema.key)):
            yield from storage.files(folder)


def _written(storage: Storage, state: SourceState) -> Iterator[StoredFile]:
    """Files that runs of this lake have written, by the pattern of their names."""
    source_id = state.source_id
    own = {schema.table for schema in state.tables.values() if schema.owns_folder}
    places = [
        *paths.version_roots(source_id),
        *(paths.table_folder(source_id, table) for table in own),
    ]
    for files in storage.each(storage.files, sorted(places)):
        yield from (file for file in files if paths.is_own_file(file.name))
    index = storage.files(paths.id_indexes(source_id))
    yield from (file for file in index if file.name.endswith(".arrow"))


def _run_of(path: str) -> str:
    """The run in the name of a file: the part before the first dash."""
    return path.rpartition("/")[2].partition("-")[0]


def _pending_runs(storage: Storage, state: SourceState) -> set[str]:
    """Runs that may still commit their files, or whose files are cleaned up separately."""
    source_id = state.source_id
    notes = abandoned_runs(storage, source_id, _ANY_TIME)
    return open_run_ids(storage, source_id) | {note.run_id for note in notes}


def _notes(storage: Storage, source_id: str) -> Notes:
    path = paths.orphans(source_id)
    return decode_note(storage.read(path), Notes, path) or Notes()


def kept_from(source: Source, at: datetime) -> date:
    """The first day whose index is kept: at least the dedup window."""
    return (at - timedelta(days=max(source.retention.index_days, source.dedup_days + 1))).date()


def spare_days(state: SourceState, source: Source, at: datetime) -> list[str]:
    first = kept_from(source, at).isoformat()
    return sorted(day for day in state.index if day < first)


def drop_index_days(run: Run, at: datetime) -> list[str]:
    """Commit the removal of old index days; their files are removed after the grace period."""
    source = run.context.source
    if not spare_days(run.state, source, at):
        return []
    with run.lease("upkeep of the id index"):
        while True:
            state = run.catch_up()
            days = spare_days(state, source, at)
            manifest = replace(
                state.next_manifest(source, RunKind.UPKEEP, run.context.facts),
                index_days_replaced=tuple(days),
                index_from=kept_from(source, at).isoformat(),
            )
            try:
                run.commit(with_unused(state, manifest, now()))
            except CommitConflict as conflict:
                run.context.listener.log(str(conflict))
                continue
            return days


KEPT = 500
"""The newest manifests are kept for analysis: some weeks at twelve a day."""


def spare_manifests(storage: Storage, state: SourceState) -> list[StoredFile]:
    """Manifests that are applied, cleaned up and not needed by any run or replay."""
    last = _last_spare(storage, state)
    replays = state.replays
    needed = {*replays.days.values()} | {d.manifest for r in replays.open for d in r.days.values()}
    return [
        file
        for file in storage.files(paths.manifests(state.source_id))
        if (number := _number(file)) is not None and number <= last and number not in needed
    ]


def prune_manifests(storage: Storage, state: SourceState) -> Removed:
    """Remove old manifests, after recording that their numbers must not be reused."""
    spare = spare_manifests(storage, state)
    if not spare:
        return Removed()
    note_pruned(storage, state.source_id, _last_spare(storage, state))
    storage.each(lambda file: storage.delete(file.path), spare)
    return counted(spare)


def _last_spare(storage: Storage, state: SourceState) -> int:
    """The last manifest that is not needed."""
    began = [run.after_manifest for run in open_runs(storage, state.source_id)]
    cleaned = cleaned_up_to(storage, state.source_id)
    return min(state.manifest - KEPT, cleaned, *began)


def _number(file: StoredFile) -> int | None:
    stem = file.name.removesuffix(".json")
    return int(stem) if stem.isdecimal() else None


def expired_logs(storage: Storage, settings: Settings, source: Source, at: datetime) -> list[str]:
    """Log folders of ended runs that started before the retention period."""
    before = at - timedelta(days=source.retention.record_log_days)
    still_open = open_run_ids(storage, source.id)
    root = paths.tracked_runs(settings.workspace_id, source.id)
    ours = filter(paths.is_run_id, storage.folders(root))
    runs = [run for run in ours if run not in still_open]
    folders = [f"{root}/{run}" for run in runs]
    began = storage.each(lambda folder: _began(storage, folder), folders)
    return [folder for folder, when in zip(folders, began, strict=True) if when < before]


def remove_expired_logs(
    storage: Storage, catalog: Catalog, settings: Settings, source: Source, at: datetime
) -> Removed:
    """Take the logs out of the table of records, then remove them."""
    expired = expired_logs(storage, settings, source, at)
    runs = {folder.rpartition("/")[2] for folder in expired}
    drop_records(storage, catalog, source.id, runs)
    return remove_paths(storage, expired, ())


def _began(storage: Storage, folder: str) -> datetime:
    try:
        metadata = read_metadata(storage, folder)
    except StateError:
        metadata = None
    if metadata is not None:
        return metadata.started_at
    # A removal was interrupted, or the folder has foreign files.
    written = (file.modified_ns for file in storage.files(folder))
    return datetime.fromtimestamp(max(written, default=0) / 1e9, UTC)

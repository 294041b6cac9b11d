"""Days of the id index that no event near the present is compared with leave state and disk.

Should events of such a day come after all, or a replay, its index is made anew from the tables.
"""

from datetime import UTC, date, datetime, timedelta

from msgspec.structs import replace

from eventlake.rules import paths
from eventlake.rules.errors import CommitConflict, StateError
from eventlake.runs.clean_up import Removed, cleaned_up_to, counted, remove_places, with_unused
from eventlake.runs.context import now
from eventlake.runs.open_runs import OpenRun
from eventlake.runs.record_log import read_metadata
from eventlake.runs.run import Run
from eventlake.settings.models import Settings, Source
from eventlake.state.manifest import RunKind, note_pruned
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage, StoredFile
from eventlake.storage.documents import decode


def kept_from(source: Source, at: datetime) -> date:
    """The first day whose index stays: all that today's events are compared with, and more."""
    return (at - timedelta(days=max(source.retention.index_days, source.dedup_days + 1))).date()


def spare_days(state: SourceState, source: Source, at: datetime) -> list[str]:
    first = kept_from(source, at).isoformat()
    return sorted(day for day in state.index if day < first)


def drop_index_days(run: Run, at: datetime) -> list[str]:
    """Commit that they are gone; their files go after the grace time, like all that is replaced."""
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
"""The last ones stay, for people who want to know what happened: some weeks of twelve a day."""


def spare_manifests(storage: Storage, state: SourceState) -> list[StoredFile]:
    """Those whose work is done: applied, cleaned up after, and asked for by no run or replay."""
    last = _last_spare(storage, state)
    replays = state.replays
    needed = {*replays.days.values()} | {d.manifest for r in replays.open for d in r.days.values()}
    return [
        file
        for file in storage.files(paths.manifests(state.source_id))
        if (number := _number(file)) is not None and number <= last and number not in needed
    ]


def prune_manifests(storage: Storage, state: SourceState) -> Removed:
    """Remove them, after it is noted that their numbers are taken for ever."""
    spare = spare_manifests(storage, state)
    if not spare:
        return Removed()
    note_pruned(storage, state.source_id, _last_spare(storage, state))
    storage.each(lambda file: storage.delete(file.path), spare)
    return counted(spare)


def _last_spare(storage: Storage, state: SourceState) -> int:
    """The last number that nobody reads in order."""
    files = [file.path for file in storage.files(paths.open_runs(state.source_id))]
    read = zip(files, storage.read_many(files), strict=True)
    began = [decode(data, OpenRun, path).after_manifest for path, data in read if data is not None]
    cleaned = cleaned_up_to(storage, state.source_id)
    return min(state.manifest - KEPT, cleaned, *began)


def _number(file: StoredFile) -> int | None:
    stem = file.name.removesuffix(".json")
    return int(stem) if stem.isdecimal() else None


def expired_logs(storage: Storage, settings: Settings, source: Source, at: datetime) -> list[str]:
    """Folders of runs that began before the time for which logs are kept, and are over."""
    before = at - timedelta(days=source.retention.record_log_days)
    open_runs = {file.name for file in storage.files(paths.open_runs(source.id))}
    root = paths.tracked_runs(settings.workspace_id, source.id)
    runs = [run for run in storage.folders(root) if f"{run}.json" not in open_runs]
    folders = [f"{root}/{run}" for run in runs]
    began = storage.each(lambda folder: _began(storage, folder), folders)
    return [folder for folder, when in zip(folders, began, strict=True) if when < before]


def remove_expired_logs(
    storage: Storage, settings: Settings, source: Source, at: datetime
) -> Removed:
    return remove_places(storage, expired_logs(storage, settings, source, at), ())


def _began(storage: Storage, folder: str) -> datetime:
    try:
        metadata = read_metadata(storage, folder)
    except StateError:
        metadata = None
    if metadata is not None:
        return metadata.started_at
    # Somebody was stopped in the middle of removing it, or wrote into it himself.
    written = (file.modified_ns for file in storage.files(folder))
    return datetime.fromtimestamp(max(written, default=0) / 1e9, UTC)

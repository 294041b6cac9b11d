"""Manifests that nothing needs any more: the state is what all of them add up to."""

from eventlake.rules import paths
from eventlake.runs.clean_up import Removed, cleaned_up_to, counted
from eventlake.runs.open_runs import OpenRun
from eventlake.state.manifest import note_pruned
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage, StoredFile
from eventlake.storage.documents import decode

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

"""Staging that no run will ever clear: its run is over, or was never known."""

from datetime import UTC, datetime, timedelta

from eventlake.rules import paths
from eventlake.storage import Storage
from eventlake.upkeep.removal import Removed, counted

ORPHANED_AFTER = timedelta(days=1)
"""A task that outlives its run may still be writing, and a dry run is no known run."""


def clean_staging(
    storage: Storage, source_id: str, now: datetime, most_days: int
) -> dict[str, Removed]:
    """Remove the staging of runs that are not open, some time after the last write; what that was.

    What clusters told goes when it has lain there for as long as staging may.
    """
    open_runs = {file.name for file in storage.files(paths.open_runs(source_id))}
    removed: dict[str, Removed] = {}
    for run_id in storage.folders(paths.staged_runs(source_id)):
        if f"{run_id}.json" in open_runs:
            continue
        folder = paths.stage(source_id, run_id)
        gone = _cleared(storage, folder, now - ORPHANED_AFTER)
        if gone is not None:
            removed[run_id] = gone
    for run_id in storage.folders(paths.all_pipes()):
        gone = _cleared(storage, paths.pipes(run_id), now - timedelta(days=most_days))
        if gone is not None:
            removed[run_id] = removed.get(run_id, Removed()) + gone
    return removed


def _cleared(storage: Storage, folder: str, before: datetime) -> Removed | None:
    """What lay in a folder, if nobody has written to it since."""
    files = storage.files(folder)
    last = max((file.modified_ns for file in files), default=0)
    if datetime.fromtimestamp(last / 1e9, UTC) > before:
        return None
    storage.delete_folder(folder)
    return counted(files)

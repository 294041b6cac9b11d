"""Staging that no run will ever clear: its run is over, or was never known."""

from datetime import UTC, datetime, timedelta

from lake import paths
from lake.storage import Storage

ORPHANED_AFTER = timedelta(days=1)
"""A task that outlives its run may still be writing, and a dry run is no known run."""


def clean_staging(storage: Storage, source_id: str, now: datetime) -> list[str]:
    """Remove the staging of runs that are not open, some time after the last write; their ids."""
    open_runs = {file.name for file in storage.files(paths.open_runs(source_id))}
    removed: list[str] = []
    for run_id in storage.folders(paths.staged_runs(source_id)):
        if f"{run_id}.json" in open_runs:
            continue
        folder = paths.stage(source_id, run_id)
        written = (file.modified_ns for file in storage.files(folder))
        last = datetime.fromtimestamp(max(written, default=0) / 1e9, UTC)
        if now - last >= ORPHANED_AFTER:
            storage.delete_folder(folder)
            removed.append(run_id)
    return removed

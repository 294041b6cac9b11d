"""Record logs that have been kept long enough."""

from datetime import UTC, datetime, timedelta

from eventlake.rules import paths
from eventlake.rules.errors import StateError
from eventlake.runs.clean_up import Removed, remove_places
from eventlake.runs.record_log import read_metadata
from eventlake.settings.models.models import Settings, Source
from eventlake.storage import Storage


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

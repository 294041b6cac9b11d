"""The first sync of a source by schedule: some hours after it was added, or at once."""

from datetime import datetime, timedelta

from eventlake.rules import paths
from eventlake.settings.models.models import Source
from eventlake.state.first_seen import note_first_seen, read_first_seen
from eventlake.storage import Storage


def first_sync_due(storage: Storage, source: Source, now: datetime) -> datetime | None:
    """When it is due, which notes that the source was seen; None if it has data already."""
    if _has_begun(storage, source):
        return None
    return note_first_seen(storage, source.id, now) + timedelta(hours=source.first_sync_hours)


def expected_first_sync(storage: Storage, source: Source) -> datetime | None:
    """The same without noting anything; None also if nobody has seen the source yet."""
    seen = read_first_seen(storage, source.id)
    if seen is None or _has_begun(storage, source):
        return None
    return seen + timedelta(hours=source.first_sync_hours)


def _has_begun(storage: Storage, source: Source) -> bool:
    """Whether a run has loaded anything: then it is no new source, whoever looks at it first."""
    return storage.exists(paths.state_file(source.id))

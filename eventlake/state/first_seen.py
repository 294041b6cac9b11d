"""When a source was first seen: its first sync by schedule comes some time after that."""

from datetime import datetime, timedelta

import msgspec

from eventlake.rules import paths
from eventlake.settings.models import Source
from eventlake.storage import Storage
from eventlake.storage.documents import decode_note, encode


class FirstSeen(msgspec.Struct, frozen=True):
    at: datetime


def read_first_seen(storage: Storage, source_id: str) -> datetime | None:
    """None if it was not seen yet."""
    return _at(storage.read(paths.first_seen(source_id)), source_id)


def note_first_seen(storage: Storage, source_id: str, now: datetime) -> datetime:
    """The recorded time; records the current time if there is none.

    What was noted by a clock that was ahead is corrected, or its source would wait for that time.
    """
    known = read_first_seen(storage, source_id)
    if known is not None and known <= now:
        return known

    def noted(data: bytes | None) -> bytes | None:
        nonlocal known
        known = _at(data, source_id)
        return encode(FirstSeen(now)) if known is None or known > now else None

    storage.update(paths.first_seen(source_id), noted)
    return now if known is None or known > now else known


def _at(data: bytes | None, source_id: str) -> datetime | None:
    note = decode_note(data, FirstSeen, paths.first_seen(source_id))
    return note.at if note else None


def first_sync_due(storage: Storage, source: Source, now: datetime) -> datetime | None:
    """When it is due, which notes that the source was seen; None if it has data already."""
    if _has_begun(storage, source):
        return None
    return note_first_seen(storage, source.id, now) + timedelta(hours=source.first_sync_hours)


def expected_first_sync(storage: Storage, source: Source) -> datetime | None:
    """The same without recording anything; None also if the source was not seen yet."""
    seen = read_first_seen(storage, source.id)
    if seen is None or _has_begun(storage, source):
        return None
    return seen + timedelta(hours=source.first_sync_hours)


def _has_begun(storage: Storage, source: Source) -> bool:
    """Whether a run has loaded anything: if so, the source is not new."""
    return storage.exists(paths.state_file(source.id))

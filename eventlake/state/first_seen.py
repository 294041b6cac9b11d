"""When a source was first seen: its first sync by schedule comes some time after that."""

from datetime import datetime

import msgspec

from eventlake.rules import paths
from eventlake.storage import Storage
from eventlake.storage.documents import decode, encode


class FirstSeen(msgspec.Struct, frozen=True):
    at: datetime


def read_first_seen(storage: Storage, source_id: str) -> datetime | None:
    """None if nobody has seen it yet."""
    return _at(storage.read(paths.first_seen(source_id)), source_id)


def note_first_seen(storage: Storage, source_id: str, now: datetime) -> datetime:
    """When it was: now, if nobody has noted it before.

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
    return None if data is None else decode(data, FirstSeen, paths.first_seen(source_id)).at

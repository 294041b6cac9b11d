"""Suppression as a run applies it: the lists as they were when it was planned, for its source."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Self

import pyarrow as pa

from eventlake.rules.suppression import IdKind, IdSet, People
from eventlake.settings.models.models import Source
from eventlake.storage import Storage
from eventlake.suppression.versions import newest_path, read_entries


@dataclass(frozen=True, slots=True)
class Suppression:
    """Goes to tasks, which read the lists from the lake themselves: they may be large."""

    path: str
    source_id: str
    fingerprint: str  # of who is suppressed: the same in all versions that do not differ in it

    @classmethod
    def of(cls, storage: Storage, source: Source) -> Self | None:
        """Who is suppressed now, for a source; None if nobody is, so that nothing has to look."""
        path = newest_path(storage) if source.suppression else None
        if path is None:
            return None
        entries = read_entries(storage, path)
        ids = [entries.applying_to(kind, source.id) for kind in IdKind]
        return cls(path, source.id, _fingerprint(ids)) if any(map(len, ids)) else None

    def people(self, storage: Storage) -> People:
        """Read once by each process."""
        if self.fingerprint not in _known:
            entries = read_entries(storage, self.path)
            ids = (entries.applying_to(kind, self.source_id) for kind in IdKind)
            while len(_known) >= _KEPT:
                del _known[next(iter(_known))]
            _known[self.fingerprint] = People(*map(IdSet, ids))
        return _known[self.fingerprint]


_KEPT = 4
_known: dict[str, People] = {}  # by fingerprint, the oldest first


def _fingerprint(ids: list[pa.Array]) -> str:
    digest = sha256()
    for one in ids:
        digest.update("\n".join(one.to_pylist()).encode() + b"\0")
    return digest.hexdigest()[:32]

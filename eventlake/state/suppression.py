"""Suppression lists and their versions.

Lists are never changed in place: each change creates the next numbered version, and a run uses the
version that was current when it was planned.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.rules import paths
from eventlake.rules.errors import StateError
from eventlake.rules.suppression import IdKind, People
from eventlake.settings.models import Source
from eventlake.storage import Storage, StoredFile
from eventlake.storage.documents import FORMAT_VERSION

WHOLE_LAKE = ""
"""The source of entries for all sources."""

_VERSION_KEY = b"format_version"
_SCHEMA = pa.schema(
    [
        ("source_id", pa.string()),
        ("kind", pa.string()),
        ("id", pa.string()),
        ("added", pa.timestamp("us", "UTC")),
    ],
    {_VERSION_KEY: str(FORMAT_VERSION)},
)
_ORDER = [("source_id", "ascending"), ("kind", "ascending"), ("id", "ascending")]


@dataclass(frozen=True, slots=True)
class Entries:
    """All entries of a version, in order."""

    table: pa.Table = field(default_factory=_SCHEMA.empty_table)

    def __len__(self) -> int:
        return len(self.table)

    def of(self, kind: IdKind, source_id: str = WHOLE_LAKE) -> pa.Array:
        """The ids of a kind listed for exactly this source, or for the whole lake."""
        return self.table.filter(_matching(kind, source_id))["id"].combine_chunks()

    def applying_to(self, kind: IdKind, source_id: str) -> pa.Array:
        """The ids of a kind that apply to a source, in order."""
        mine = pc.is_in(pc.field("source_id"), pa.array([WHOLE_LAKE, source_id]))
        found = self.table.filter((pc.field("kind") == kind.value) & mine)["id"]
        ids = pc.unique(found.combine_chunks())
        return ids.take(pc.sort_indices(ids))

    def with_ids(self, ids: Iterable[str], kind: IdKind, source_id: str, now: datetime) -> Self:
        """The same with ids added; existing ones keep their time."""
        known = set(self.of(kind, source_id).to_pylist())
        new = [id for id in dict.fromkeys(ids) if id not in known]
        added = pa.table(
            {
                "source_id": pa.array([source_id] * len(new), pa.string()),
                "kind": pa.array([kind.value] * len(new), pa.string()),
                "id": pa.array(new, pa.string()),
                "added": pa.array([now] * len(new), _SCHEMA.field("added").type),
            },
            _SCHEMA,
        )
        return type(self)(pa.concat_tables([self.table, added]).sort_by(_ORDER))

    def without_ids(self, ids: Iterable[str], kind: IdKind, source_id: str) -> Self:
        gone = pc.is_in(pc.field("id"), pa.array(list(ids), pa.string()))
        return type(self)(self.table.filter(~(_matching(kind, source_id) & gone)))

    def rows(self) -> Iterator[Mapping[str, object]]:
        for batch in self.table.to_batches(max_chunksize=10_000):
            yield from batch.to_pylist()

    def encode(self) -> bytes:
        out = pa.BufferOutputStream()
        pq.write_table(self.table.cast(_SCHEMA), out, compression="zstd")
        return bytes(out.getvalue())

    @classmethod
    def decode(cls, data: bytes, path: str) -> Self:
        try:
            table = pq.read_table(pa.BufferReader(data))
            version = int((table.schema.metadata or {})[_VERSION_KEY])
            if version <= FORMAT_VERSION:
                return cls(table.select(_SCHEMA.names).cast(_SCHEMA))
        except (pa.ArrowException, KeyError, ValueError) as error:
            raise StateError(
                f"{path} cannot be read as a list of suppressed people: {error}. It was damaged or "
                "edited; restore it from a backup, or remove it: then the version before counts."
            ) from None
        raise StateError(
            f"{path} has format version {version}; this release knows up to {FORMAT_VERSION}. "
            "A newer release of datalake has worked on this lake: upgrade this one."
        )


def _matching(kind: IdKind, source_id: str) -> pc.Expression:
    return (pc.field("kind") == kind.value) & (pc.field("source_id") == source_id)


KEPT = timedelta(days=30)
"""How long an old version stays: longer than any run that may use it."""

_NAME = re.compile(r"\d{10}\.parquet")


@dataclass(frozen=True, slots=True)
class Version:
    """The lists of a version; version 0 is empty."""

    number: int = 0
    entries: Entries = field(default_factory=Entries)

    @property
    def path(self) -> str:
        return paths.suppression_list(self.number)


def newest_path(storage: Storage) -> str | None:
    """The path of the current lists, if there are any."""
    files = _files(storage)
    return files[-1].path if files else None


def newest(storage: Storage) -> Version:
    """The current lists."""
    path = newest_path(storage)
    return Version() if path is None else Version(_number(path), read_entries(storage, path))


def read_entries(storage: Storage, path: str) -> Entries:
    data = storage.read(path)
    if data is None:
        raise FileNotFoundError(f"{path}, by which this run suppresses people, is gone")
    return Entries.decode(data, path)


def change(
    storage: Storage, edit: Callable[[Entries], Entries], now: datetime
) -> tuple[Version, Version]:
    """Change the lists, on top of concurrent changes; returns them before and after."""
    while True:
        before = newest(storage)
        after = Version(before.number + 1, edit(before.entries))
        if after.entries.table.equals(before.entries.table):
            return before, before
        if storage.create(after.path, after.entries.encode()):
            _forget(storage, now)
            return before, after


def _forget(storage: Storage, now: datetime) -> None:
    """Remove versions that were replaced long ago."""
    oldest = int((now - KEPT).timestamp()) * 1_000_000_000
    files = _files(storage)
    for file, successor in pairwise(files):
        if successor.modified_ns < oldest:
            storage.delete(file.path)


def _files(storage: Storage) -> list[StoredFile]:
    return [file for file in storage.files(paths.suppression()) if _NAME.fullmatch(file.name)]


def _number(path: str) -> int:
    return int(path.rsplit("/", 1)[-1].removesuffix(".parquet"))


@dataclass(frozen=True, slots=True)
class Suppression:
    """The suppression of a source, passed to tasks; they read the lists themselves."""

    path: str
    source_id: str
    fingerprint: str  # equal for versions that suppress the same people

    @classmethod
    def of(cls, storage: Storage, source: Source) -> Self | None:
        """The current suppression of a source; None if nobody is suppressed."""
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
            _known[self.fingerprint] = People(*(frozenset(some.to_pylist()) for some in ids))
        return _known[self.fingerprint]


def suppressed_people(storage: Storage, source: Source) -> People | None:
    """The suppressed people of a source, whose data is never shown."""
    found = Suppression.of(storage, source)
    return found.people(storage) if found else None


_KEPT = 4
_known: dict[str, People] = {}  # by fingerprint, the oldest first


def _fingerprint(ids: list[pa.Array]) -> str:
    digest = sha256()
    for one in ids:
        digest.update("\n".join(one.to_pylist()).encode() + b"\0")
    return digest.hexdigest()[:32]

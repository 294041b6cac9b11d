"""A manifest is a commit: the changes of one unit of work. Everything else follows from it."""

from datetime import datetime
from enum import StrEnum
from typing import Self

import msgspec

from eventlake.catalog.base import CatalogPartition, HeldFile
from eventlake.rules import paths
from eventlake.rules.clock import now
from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import CommitConflict
from eventlake.rules.types import LakeType, TableSchema
from eventlake.state.ledger import LedgerEntry
from eventlake.state.replays import ReplayStep
from eventlake.state.report import RunFacts
from eventlake.storage import Storage
from eventlake.storage.documents import decode, decode_note, encode, read_notes


class Abandoned(msgspec.Struct, frozen=True):
    """A run that failed or lost a race for a commit, and the time."""

    run_id: str
    since: datetime


def note_abandoned(storage: Storage, source_id: str, run_id: str) -> None:
    """Record an abandoned run. Call it before the run is closed; may be repeated."""
    storage.write(_path(source_id, run_id), encode(Abandoned(run_id, now())))


def abandoned_runs(storage: Storage, source_id: str, before: datetime) -> list[Abandoned]:
    """Abandoned runs that were recorded before a time."""
    notes = read_notes(storage, paths.abandoned(source_id), Abandoned)
    return [note for note in notes.values() if note and note.since < before]


def forget_abandoned(storage: Storage, source_id: str, run_id: str) -> None:
    storage.delete(_path(source_id, run_id))


def _path(source_id: str, run_id: str) -> str:
    return f"{paths.abandoned(source_id)}/{run_id}.json"


class Mark(msgspec.Struct, frozen=True):
    """The last manifest that is processed."""

    manifest: int = 0


def read_mark(storage: Storage, path: str) -> int:
    mark = decode_note(storage.read(path), Mark, path)
    return mark.manifest if mark else 0


def raise_mark(storage: Storage, path: str, manifest: int) -> None:
    """Concurrent writers keep the higher number."""

    def higher(data: bytes | None) -> bytes | None:
        mark = decode_note(data, Mark, path)
        return encode(Mark(manifest)) if mark is None or manifest > mark.manifest else None

    storage.update(path, higher)


def read_pruned(storage: Storage, source_id: str) -> int:
    """The number up to which manifests were pruned, so that these numbers cannot be committed."""
    path = paths.pruned(source_id)
    data = storage.read(path)
    mark = decode_note(data, Mark, path)
    if mark is None and data is not None:
        files = storage.files(paths.manifests(source_id))
        return min((int(file.name.removesuffix(".json")) for file in files), default=1) - 1
    return mark.manifest if mark else 0


def note_pruned(storage: Storage, source_id: str, manifest: int) -> None:
    """Call it before the first of them is deleted."""
    raise_mark(storage, paths.pruned(source_id), manifest)


class RunKind(StrEnum):
    SYNC = "sync"
    REPLAY = "replay"
    RETYPE = "retype"  # no run: a request for another type
    UPKEEP = "upkeep"  # no rows change: files are compacted or removed
    CLOSED = "closed"  # no run: a dead one was overtaken, see `eventlake.runs.dead_runs`


class NewFile(msgspec.Struct, frozen=True):
    """A written Parquet file: its path before publication, and its final path."""

    written: str
    path: str
    rows: int
    bytes: int


class PartitionChange(msgspec.Struct, frozen=True):
    """The change of a partition: files added, moved to a location, or (without files) dropped."""

    table: str
    values: tuple[str, ...]
    location: str
    added: tuple[NewFile, ...]
    rows: int
    bytes: int
    files: int
    rows_before: int = 0
    dropped: bool = False
    left: str | None = None  # its previous folder, if the folder changes
    kept: tuple[HeldFile, ...] = ()  # files that it keeps
    cleared: tuple[str, ...] | None = None  # moved home: files to remove first

    @classmethod
    def whole(cls, table: str, held: CatalogPartition, left: str | None = None) -> Self:
        """A change to a complete partition with its files, possibly from another folder."""
        counts = held.rows, held.bytes, held.files, held.rows
        return cls(table, held.values, held.location, (), *counts, left=left, kept=held.held)

    def partition(self, manifest: int) -> CatalogPartition | None:
        """The partition after this manifest; None if it is dropped."""
        if self.dropped:
            return None
        added = (HeldFile(file.path.rpartition("/")[2], file.bytes) for file in self.added)
        counts = self.rows, self.bytes, self.files
        return CatalogPartition(
            self.values, self.location, manifest, *counts, held=(*self.kept, *added)
        )

    @property
    def vacated(self) -> str | None:
        """The folder that is no longer used, of a dropped partition or a former version."""
        if self.dropped:
            return self.location
        return self.left if self.left and paths.is_version_folder(self.left) else None


class IndexFile(msgspec.Struct, frozen=True):
    """Message ids of one received day and a range of hash buckets, from one unit of work."""

    day: str
    path: str
    ids: int
    buckets: tuple[int, int]  # the first, and the last plus one
    bytes: int = 0  # 0: written by an earlier release


class TypeRequest(msgspec.Struct, frozen=True):
    """A request to change the type of a column; None withdraws an earlier request."""

    table: str
    column: str
    type: LakeType | None


class Manifest(msgspec.Struct, frozen=True):
    """One commit of a source; with a finish time, it closes its run, and the report is due."""

    number: int
    source_id: str
    kind: RunKind
    run: RunFacts
    date_partition: str
    naming: str
    tables: tuple[TableSchema, ...] = ()  # created, extended or retyped tables, after the commit
    partitions: tuple[PartitionChange, ...] = ()
    ledger: tuple[LedgerEntry, ...] = ()
    index_added: tuple[IndexFile, ...] = ()
    index_days_replaced: tuple[str, ...] = ()
    records: tuple[NewFile, ...] = ()  # the record log of this unit
    report: UnitReport = UnitReport()  # of the whole run so far
    finish_time: datetime | None = None
    start: str | None = None  # the first day of the source, if known
    requested_types: tuple[TypeRequest, ...] = msgspec.field(default=(), name="wishes")
    switching: tuple[str, ...] = ()  # tables that get files in requested types
    shadows: tuple[PartitionChange, ...] = ()  # these files, not visible to readers yet
    retyped: tuple[str, ...] = ()  # tables that switch to the requested types
    replay: ReplayStep | None = None
    index_from: str | None = None  # earlier days lose their index, except new ones
    made: datetime | None = None  # just before the commit
    unused: tuple[str, ...] = ()  # index files and shadows that become unreferenced
    freed: dict[str, int] = {}  # by day, copies of removed rows that a replay would load

    @property
    def written(self) -> list[str]:
        """The files that have to exist when it is committed."""
        changes = (*self.partitions, *self.shadows)
        files = [file.written for change in changes for file in change.added]
        return [*files, *(f.written for f in self.records), *(f.path for f in self.index_added)]

    @property
    def run_id(self) -> str:
        return self.run.run_id


class _Made(msgspec.Struct, frozen=True):
    """The part of a manifest with its time."""

    run: RunFacts
    made: datetime | None = None


def read_manifest(storage: Storage, source_id: str, number: int) -> Manifest | None:
    path = paths.manifest(source_id, number)
    data = storage.read(path)
    return None if data is None else decode(data, Manifest, path)


def whole_manifest(storage: Storage, source_id: str, number: int) -> Manifest | None:
    """A manifest that was applied; None if it is missing or damaged."""
    path = paths.manifest(source_id, number)
    return decode_note(storage.read(path), Manifest, path)


def made_at(storage: Storage, source_id: str, number: int) -> datetime | None:
    """The time of a manifest, None if it cannot be read; much faster than reading all of it."""
    path = paths.manifest(source_id, number)
    head = decode_note(storage.read(path), _Made, path)
    return head.made or head.run.start_time if head else None


def commit(storage: Storage, manifest: Manifest) -> None:
    """Create the manifest if its number is free. From now on, its content is in the lake."""
    path = paths.manifest(manifest.source_id, manifest.number)
    data = encode(manifest)
    # If the response to a first attempt was lost, the existing manifest is this one.
    won = storage.create(path, data) or storage.read(path) == data
    if won and manifest.number <= read_pruned(storage, manifest.source_id):
        storage.delete(path)  # another run used the number, and the manifest was pruned since
        won = False
    if not won:
        note_abandoned(storage, manifest.source_id, manifest.run_id)
        raise CommitConflict(
            f"Another run committed manifest {manifest.number} of source {manifest.source_id} "
            "first; nothing of this one was published. It is planned again on top of the other."
        )

"""The input of staging tasks: raw files with their checksums, and what all tasks share."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, BinaryIO, Self

from eventlake.load.seen import Seen
from eventlake.rules.names import STANDARD_COLUMNS, Naming
from eventlake.rules.partitions import DatePartition
from eventlake.settings.models import Limits
from eventlake.state.suppression import Suppression
from eventlake.storage import Storage

STANDARD = {naming: frozenset(c.name(naming) for c in STANDARD_COLUMNS) for naming in Naming}


@dataclass(frozen=True, slots=True)
class RawFile:
    """A raw file of the unit, numbered in order of path; lines up to `skip_lines` are loaded."""

    number: int
    path: str
    size: int
    stamp: str
    skip_lines: int = 0
    skip_hours: tuple[str, ...] = ()  # in which these lines were received


@dataclass(frozen=True)
class StageJob:
    """What all staging tasks of a unit share."""

    storage: Storage
    naming: Naming
    date_partition: DatePartition
    limits: Limits
    columns: dict[str, frozenset[str]]  # of the tables the lake has
    skip: frozenset[str] = frozenset()
    suppression: Suppression | None = None  # None: nobody is suppressed
    hash_missing_ids: bool = False
    start_us: int | None = None
    ahead_us: int | None = None
    keep_payloads: bool = False
    window: tuple[int, int] | None = None  # of a replay: [from, to) of receivedAt
    tables: frozenset[str] | None = None  # of a replay: only these
    archive: Storage | None = None  # of the raw files, if that is not `storage`
    days: tuple[int, ...] | None = None  # since 1970, in order: only rows received on them
    ids_only: bool = False  # nothing is loaded
    keep_lines: bool = True  # for the record log
    room: int | None = None  # new tables for which the catalog has room, if known

    @property
    def raw(self) -> Storage:
        return self.archive or self.storage

    def known_columns(self, table: str) -> frozenset[str]:
        """The columns of a table in the lake; of a new table, the standard columns."""
        return self.columns.get(table, STANDARD[self.naming])

    def wants(self, table: str | None, received: int | None) -> bool:
        """Whether a row belongs to this unit; of a sync, every row does."""
        if self.window is not None and (
            received is None or not self.window[0] <= received < self.window[1]
        ):
            return False
        return self.tables is None or table in self.tables


def over_limits(job: StageJob, seen: Seen) -> bool:
    """Whether all tasks together exceed a limit that each of them respected."""
    columns = {table.table: set(job.known_columns(table.table)) for table in seen.tables}
    for table in seen.tables:
        columns[table.table].update(column.column for column in table.columns)
    tables = columns.keys() | job.columns.keys()
    widest = max(map(len, columns.values()), default=0)
    return (
        len(tables) > job.limits.tables
        or (job.room is not None and len(tables) - len(job.columns) > job.room)
        or widest > job.limits.columns
    )


_AT_ONCE = 1 << 20


class Checksum:
    """The checksum of a stream, computed while it is read."""

    def __init__(self, open_stream: Callable[[], BinaryIO]) -> None:
        self._open, self._streams = open_stream, list[BinaryIO]()

    def open(self) -> Any:
        """The stream, with the part of `BinaryIO` that its readers use."""
        self._streams.append(self._open())
        self._hash = blake2b(digest_size=16)
        return self

    def read(self, size: int) -> bytes:
        data = self._streams[-1].read(size)
        self._hash.update(data)
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._streams.pop().close()

    @property
    def value(self) -> str:
        return self._hash.hexdigest()


def checksum(open_stream: Callable[[], BinaryIO]) -> str:
    """The checksum of the whole content of a stream."""
    found = Checksum(open_stream)
    with found.open() as stream:
        while stream.read(_AT_ONCE):
            pass
    return found.value

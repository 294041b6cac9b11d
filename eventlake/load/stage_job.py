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
    suppression: Suppression | None = None  # None: no person is
    hash_missing_ids: bool = False
    start_us: int | None = None
    ahead_us: int | None = None
    keep_payloads: bool = False
    window: tuple[int, int] | None = None  # of a replay: [from, to) of receivedAt
    tables: frozenset[str] | None = None  # of a replay: only these
    archive: Storage | None = None  # of the raw files, if that is not `storage`
    days: tuple[int, ...] | None = None  # since 1970, in order: only rows received on them
    ids_only: bool = False  # nothing is to be loaded
    keep_lines: bool = True  # for the record log
    room: int | None = None  # new tables for which the catalog has room, if known

    @property
    def raw(self) -> Storage:
        return self.archive or self.storage

    def known_columns(self, table: str) -> frozenset[str]:
        """The columns that a table has in the lake, or will have whatever its events are."""
        return self.columns.get(table, STANDARD[self.naming])

    def wants(self, table: str | None, received: int | None) -> bool:
        """Whether a row belongs to this unit at all; every row does, unless it is a replay's."""
        if self.window is not None and (
            received is None or not self.window[0] <= received < self.window[1]
        ):
            return False
        return self.tables is None or table in self.tables


def over_limits(job: StageJob, seen: Seen) -> bool:
    """Whether tasks together found more than each of them, by itself, was allowed to find."""
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
    """Of the bytes of a stream, taken while it is read to its end."""

    def __init__(self, open_stream: Callable[[], BinaryIO]) -> None:
        self._open, self._streams = open_stream, list[BinaryIO]()

    def open(self) -> Any:
        """The stream, as much of a `BinaryIO` as its readers need."""
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
    """The checksum of all that a stream holds."""
    found = Checksum(open_stream)
    with found.open() as stream:
        while stream.read(_AT_ONCE):
            pass
    return found.value

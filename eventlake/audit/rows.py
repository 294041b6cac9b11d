"""The rows that an audit compares: events of the raw archive, and rows of the tables."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.audit.rule import Demand
from eventlake.audit.scope import Scope, TableNumbers, micros, overlaps
from eventlake.columnar.id_hashes import hash_id
from eventlake.columnar.raw_lines import RawLines
from eventlake.rules.events import Reject, open_envelope
from eventlake.rules.gc import gc_paused
from eventlake.rules.names import MESSAGE_ID, RECEIVED_AT, STANDARD_COLUMNS, column_name, table_name
from eventlake.rules.parse import parse_line
from eventlake.rules.suppression import People
from eventlake.runs.unit import Window
from eventlake.storage import Storage

RAW = np.dtype(
    [
        ("hi", "u8"),
        ("lo", "u8"),
        ("received", "i8"),
        ("table", "u4"),
        ("file", "u4"),
        ("line", "u4"),
        ("demand", "u1"),
    ]
)
ROWS = np.dtype(
    [
        ("hi", "u8"),
        ("lo", "u8"),
        ("received", "i8"),
        ("table", "u4"),
        ("file", "u4"),
        ("row", "u4"),
        ("judged", "?"),
    ]
)
ROWS_PER_BUCKET = 2_000_000
PENDING = 500_000
"""Rows that are held before they go to disk: some 20 MB."""

_MOST = 4096


def bucket_bits(rows: int) -> int:
    """The number of buckets for a number of rows, as a power of two."""
    buckets = min(max(-(-rows // ROWS_PER_BUCKET), 1), _MOST)
    return (buckets - 1).bit_length()


def id_words(ids: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """The two halves of the hashes of message ids."""
    words = np.frombuffer(b"".join(map(hash_id, ids)), dtype=">u8").reshape(-1, 2)
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


def rows_of(kind: np.dtype, **columns: np.ndarray | Sequence[int] | int) -> np.ndarray:
    """Rows from their columns; a single number stands for a whole column."""
    size = len(columns["hi"])  # type: ignore[arg-type]
    rows = np.empty(size, dtype=kind)
    for name in kind.names or ():
        rows[name] = columns[name]
    return rows


class Spill:
    """Rows that are added in any order and read back bucket by bucket."""

    def __init__(self, folder: Path, name: str, kind: np.dtype, bits: int) -> None:
        self._folder, self._name, self._kind, self._bits = folder, name, kind, bits
        self._pending: list[np.ndarray] = []
        self._held = 0

    def add(self, rows: np.ndarray) -> None:
        self._pending.append(rows)
        self._held += len(rows)
        if self._held >= PENDING:
            self._flush()

    def read(self, bucket: int) -> np.ndarray:
        self._flush()
        path = self._path(bucket)
        return np.fromfile(path, self._kind) if path.exists() else np.empty(0, self._kind)

    def _flush(self) -> None:
        if not self._pending:
            return
        rows = np.concatenate(self._pending)
        self._pending, self._held = [], 0
        buckets = rows["hi"] >> np.uint64(64 - self._bits) if self._bits else rows["hi"] * 0
        for bucket in np.unique(buckets):
            with self._path(int(bucket)).open("ab") as out:
                out.write(rows[buckets == bucket].tobytes())

    def _path(self, bucket: int) -> Path:
        return self._folder / f"{self._name}.{bucket}"


NOWHERE = 2**32 - 1
"""The table of rows that are where they do not belong: no event asks for them."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a partition; `partition` is its path below the table's folder."""

    number: int
    path: str
    table: str
    partition: str
    window: Window  # the times of the rows that belong to the partition


@dataclass
class LakeRows:
    """Reads data files; counts the rows of the range, and notes what cannot be read."""

    storage: Storage
    scope: Scope
    numbers: TableNumbers
    found: Counter[tuple[str, str]] = field(default_factory=Counter)  # by table and partition
    problems: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def read(self, file: DataFile) -> Iterator[np.ndarray]:
        """The rows of a file in arrays of `ROWS`."""
        names = [column.name(self.scope.source.naming) for column in (MESSAGE_ID, RECEIVED_AT)]
        place = (file.table, file.partition)
        first = 0
        try:
            with self.storage.open_input(file.path) as stream:
                for batch in pq.ParquetFile(stream).iter_batches(columns=names):
                    rows = self._rows(file, batch, names, first)
                    first += len(rows)
                    self.found[place] += int(rows["judged"].sum())
                    yield rows
        except (pa.ArrowException, OSError, KeyError) as error:
            problem = f"{file.path} cannot be read: {' '.join(str(error).split())}"
            self.problems.setdefault(place, []).append(problem)

    def _rows(
        self, file: DataFile, batch: pa.RecordBatch, names: list[str], first: int
    ) -> np.ndarray:
        ids, received = (batch.column(name) for name in names)
        hi, lo = id_words(id or "" for id in ids.to_pylist())
        times = received.cast(pa.int64()).fill_null(0).to_numpy()
        start, end = micros(self.scope.window)
        lowest, highest = micros(file.window)
        in_range = (times >= start) & (times < end)
        right = (times >= lowest) & (times < highest) & ids.is_valid().to_numpy(False)
        return rows_of(
            ROWS,
            hi=hi,
            lo=lo,
            received=times,
            table=np.where(right, self.numbers.of(file.table), NOWHERE),
            file=file.number,
            row=np.arange(first, first + len(times)),
            judged=np.where(right, in_range, overlaps(file.window, self.scope.window)),
        )


BATCH = 50_000


@dataclass
class ArchiveRows:
    """Reads raw files and counts every row of the range: by table, "" for what has none."""

    storage: Storage
    scope: Scope
    numbers: TableNumbers
    columns: dict[str, frozenset[str]]  # of the tables that the lake has
    full: Callable[[], bool] = lambda: False  # whether the catalog has no room for more of them
    people: People | None = None  # who are suppressed
    rows_in: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    suppressed: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._first, self._end = micros(self.scope.window)

    def read(self, number: int, path: str, loaded_lines: int | None = None) -> Iterator[np.ndarray]:
        """The events of a file in arrays of `RAW`, without those that never get a row.

        Events after `loaded_lines` are waiting to be loaded (None: all lines are loaded).
        """
        with gc_paused():  # events die at once: looking for cycles among them doubles the time
            yield from self._read(number, path, loaded_lines)

    def _read(self, file: int, path: str, loaded: int | None) -> Iterator[np.ndarray]:
        limits = self.scope.source.limits
        found: list[tuple[str, int, int, int, int]] = []
        lines = RawLines(lambda: self.storage.open_stream(path), limits.line_bytes)
        for number, line in lines:
            if line.strip() and (event := self._event(line)) is not None:
                id, received, table, demand = event
                if loaded is not None and number > loaded:
                    demand = Demand.WAITING
                found.append((id, received, table, number, demand))
                if len(found) >= BATCH:
                    yield _array(file, found)
                    found = []
        if lines.broken and self.scope.is_everything:  # the end that cannot be read has no time
            self.rows_in[""] += 1
            self.rejected[""] += 1
        if found:
            yield _array(file, found)

    def _event(self, line: bytes) -> tuple[str, int, int, Demand] | None:
        """Id, time and table of an event; None, and counted, for a line that gives no row."""
        source = self.scope.source
        try:
            event = parse_line(line, source.limits)
            envelope = open_envelope(event)
            if not self._first <= envelope.received_at < self._end:
                return None
            table = table_name(envelope.type, envelope.event, source.naming)
        except Reject:
            if self.scope.is_everything:  # what has no time is in no range
                self.rows_in[""] += 1
                self.rejected[""] += 1
            return None
        self.rows_in[table] += 1
        if self.people is not None and self.people.has(event):
            self.suppressed[table] += 1
            return None
        if source.skips(table):
            self.skipped[table] += 1
            return None
        id = envelope.message_id
        if id is None and not source.load_without_message_id:
            self.rejected[table] += 1
            return None
        demand = Demand.BEYOND if self._beyond(table, event, line) else Demand.REQUIRED
        return (
            id if id is not None else sha256(line).hexdigest(),
            envelope.received_at,
            self.numbers.of(table),
            demand,
        )

    def _beyond(self, table: str, event: dict[str, Any], line: bytes) -> bool:
        """Whether a limit keeps the event out of the lake, as it is now."""
        source, known = self.scope.source, self.columns.get(table)
        if known is None:
            if len(self.columns) >= source.limits.tables or self.full():
                return True
            known = frozenset(column.name(source.naming) for column in STANDARD_COLUMNS)
        if len(known) + line.count(b":") <= source.limits.columns:
            return False
        keys = source.date_partition.keys
        names = {
            column_name(path, source.naming, keys, source.limits.column_name)
            for path in _paths(event)
        }
        return len(known | (names - {None})) > source.limits.columns


def _array(file: int, found: list[tuple[str, int, int, int, int]]) -> np.ndarray:
    ids, received, tables, lines, demands = zip(*found, strict=True)
    hi, lo = id_words(ids)
    return rows_of(
        RAW,
        hi=hi,
        lo=lo,
        received=received,
        table=tables,
        file=file,
        line=lines,
        demand=demands,
    )


def _paths(event: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every value that is neither null nor an object."""
    for key, value in event.items():
        if isinstance(value, dict):
            yield from _paths(value, (*above, key))
        elif value is not None:
            yield (*above, key)

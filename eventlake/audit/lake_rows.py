"""The rows that the lake's tables have, as the catalog leads to them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.audit.scope import Scope, TableNumbers, micros, overlaps
from eventlake.columnar.id_hashes import hash_id
from eventlake.rules.names import MESSAGE_ID, RECEIVED_AT
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
    """Into how many buckets so many rows go, as a power of two."""
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
            told = f"{file.path} cannot be read: {' '.join(str(error).split())}"
            self.problems.setdefault(place, []).append(told)

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

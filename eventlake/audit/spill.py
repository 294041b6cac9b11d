"""Rows on disk, by ranges of their ids' hashes: all of an id lies in one bucket, few at a time."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from eventlake.columnar.id_hashes import hash_id

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

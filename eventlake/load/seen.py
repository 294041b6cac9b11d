"""The report of a staging task about its files, and positions of rows in the raw archive.

It is small: the driver resolves schemas from the reports of all tasks.
"""

from collections.abc import Iterable

import msgspec
import numpy as np

from eventlake.rules.inference import Kind

RawPosition = tuple[int, int, int]
"""File (its number in the run), line, and order within the event. Sorts by order of discovery."""


SKIPPED, SUPPRESSED = "skipped", "suppressed"
"""Further reasons why a row is not loaded, besides rejection and duplicates."""


class SeenColumn(msgspec.Struct, array_like=True):
    """A field of the events of a table: its column, first position, and the kinds of its values."""

    pointer: str
    column: str
    first: RawPosition
    kinds: frozenset[Kind]


class SeenTable(msgspec.Struct):
    """The rows of a table by partition, and its fields."""

    table: str
    original: str
    first: RawPosition
    columns: list[SeenColumn] = []
    rows: dict[str, int] = {}
    bytes: dict[str, int] = {}


class SeenFile(msgspec.Struct):
    """The ledger's facts about a raw file."""

    number: int
    lines: int = 0
    rows: int = 0
    rejected: int = 0  # of them
    hours: set[str] = set()
    broken: str | None = None
    checksum: str | None = None  # of its bytes


class RejectedSample(msgspec.Struct):
    """One rejected row, as an example for messages."""

    file: int
    line: int
    reason: str
    detail: str


class Seen(msgspec.Struct):
    """The counts of a staging task: every row of its files is counted once."""

    tables: list[SeenTable] = []
    files: list[SeenFile] = []
    rejected: dict[str, dict[str, int]] = {}  # table ("" where it has none) → reason → rows
    skipped: int = 0
    suppressed: dict[str, int] = {}  # by table
    before_start: int = 0  # rows
    ahead: int = 0  # received more than a day after the run began
    samples: list[RejectedSample] = []
    not_loaded: dict[str, list[int]] = {}  # reason → positions of rows

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "Seen":
        return msgspec.msgpack.decode(data, type=cls)

    @classmethod
    def merge(cls, parts: Iterable["Seen"]) -> "Seen":
        """The sum of the reports of all tasks."""
        whole = cls()
        for part in parts:
            whole.tables += part.tables
            whole.files += part.files
            whole.samples += part.samples
            whole.skipped += part.skipped
            whole.before_start += part.before_start
            whole.ahead += part.ahead
            for table, reasons in part.rejected.items():
                totals = whole.rejected.setdefault(table, {})
                for reason, rows in reasons.items():
                    totals[reason] = totals.get(reason, 0) + rows
            for table, rows in part.suppressed.items():
                whole.suppressed[table] = whole.suppressed.get(table, 0) + rows
            for reason, positions in part.not_loaded.items():
                whole.not_loaded.setdefault(reason, []).extend(positions)
        return whole

    @property
    def rows_in(self) -> int:
        """The number of lines that are not blank; of a replay, of rows of its range and tables."""
        return sum(file.rows for file in self.files)

    def staged_rows(self) -> dict[str, int]:
        """The number of staged rows by table."""
        totals: dict[str, int] = {}
        for table in self.tables:
            totals[table.table] = totals.get(table.table, 0) + sum(table.rows.values())
        return totals

    def staged_bytes(self) -> dict[tuple[str, str], int]:
        """Bytes of the staged rows in memory, by table and partition."""
        totals: dict[tuple[str, str], int] = {}
        for table in self.tables:
            for partition, size in table.bytes.items():
                key = (table.table, partition)
                totals[key] = totals.get(key, 0) + size
        return totals

    def days(self) -> list[str]:
        """The days on which the rows were received."""
        return sorted({hour[:10] for file in self.files for hour in file.hours})


def position(file: int, line: int) -> int:
    """The position of a row in the raw archive as one number."""
    return file << 32 | line


def positions(files: np.ndarray, lines: np.ndarray) -> np.ndarray:
    return (files.astype(np.uint64) << np.uint64(32)) | lines.astype(np.uint64)


def split_positions(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Files and lines, from positions."""
    return (rows >> np.uint64(32)).astype(np.int64), (rows & np.uint64(2**32 - 1)).astype(np.int64)


def heads(*keys: np.ndarray) -> np.ndarray:
    """The rows with another key than the row before, and the first row.

    Equal keys are mostly adjacent, so this leaves few rows without sorting.
    """
    differ = np.ones(len(keys[0]), np.bool_)
    differ[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.flatnonzero(differ)

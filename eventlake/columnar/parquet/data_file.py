"""What all data files have in common, whichever writer is used."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import UnsupportedOperation
from typing import NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from arro3.io import write_parquet

LONGEST = 8 << 20
"""Of the end of a file that is kept in memory for its footer; a longer one is read back."""

_TAIL = 8  # the footer's length and the magic bytes come last
# A footer has its version, its columns, the number of rows and the row groups, in this order, in
# Thrift's compact protocol. A field begins with how far its number is from the one before, and its
# type: an integer of 64 bits, a list.
_ROWS, _GROUPS = b"\x16", b"\x19"


class Footer(NamedTuple):
    rows: int
    problems: tuple[str, ...]  # with its columns


class Footers:
    """Reads footers of files that mostly have the same columns.

    Up to the number of rows their footers are then the same, byte for byte: the first is taken
    apart by Arrow, the others are compared with it. What is not as expected, Arrow takes apart.
    """

    def __init__(self, problems: Callable[[pa.Schema], tuple[str, ...]]) -> None:
        self._problems = problems
        self._known: dict[bytes, tuple[str, ...]] = {}  # by what comes before the number of rows

    def read(self, end: bytes | memoryview, rows: int) -> Footer | None:
        """The footer of a file with this number of rows; None if `end` is too short for it."""
        footer = _footer(end)
        if footer is None:
            return None
        number = _number(rows)
        for before, problems in self._known.items():
            if footer.startswith(before) and footer.startswith(number, len(before)):
                return Footer(rows, problems)
        metadata = pq.read_metadata(pa.BufferReader(end))
        problems = self._problems(metadata.schema.to_arrow_schema())
        if metadata.num_rows == rows and (at := footer.find(number)) >= 0:
            self._known[footer[:at]] = problems
        return Footer(metadata.num_rows, problems)


def before_rows(end: bytes, rows: int) -> bytes:
    """What a footer says before the number of rows: which columns there are."""
    footer = _footer(end) or b""
    return footer[: footer.index(_number(rows))]


def _number(rows: int) -> bytes:
    return _ROWS + varint(2 * rows) + _GROUPS


def _footer(end: bytes | memoryview) -> bytes | None:
    size = int.from_bytes(end[-_TAIL:-4], "little")
    return bytes(end[-_TAIL - size : -_TAIL]) if size + _TAIL <= len(end) else None


def varint(number: int) -> bytes:
    """Seven bits at a time, the lowest first; all bytes but the last have the highest bit set."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


ROW_GROUP = 128 * 1024
"""Rows that readers can skip as one."""

_SAMPLE = 256  # rows by which a column is judged
# Below this, all that a dictionary or zstd saves is less than what it takes to have one.
_LARGE = 2_000  # bytes of a column in a file


@dataclass(frozen=True, slots=True)
class FileEncoding:
    """Large columns whose values repeat get a dictionary, of which Snappy leaves as much as zstd
    would; other large ones get zstd."""

    repeating: frozenset[str]
    various: frozenset[str]

    @classmethod
    def of(cls, rows: pa.Table, files: int = 1) -> Self:
        """The encoding for these rows in this number of files."""
        columns = zip(rows.column_names, rows.columns, strict=True)
        large = [name for name, column in columns if column.nbytes >= _LARGE * files]
        spread = np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(np.int64)
        sample = rows.select(large).take(pa.array(spread))
        few = frozenset(name for name in large if 2 * len(sample[name].unique()) <= len(sample))
        return cls(few, frozenset(large) - few)


class WrittenFile(NamedTuple):
    """The size of a file, and the last of its bytes, among them its footer unless it is huge."""

    size: int
    end: bytes | memoryview


def write_data_file(
    out: pa.NativeFile, schema: pa.Schema, rows: Iterable[pa.RecordBatch], encoding: FileEncoding
) -> WrittenFile:
    """A file of these rows, the same to every reader: without a schema of Arrow's own in it."""
    ends = _Ends(rows, out)
    write_parquet(
        pa.RecordBatchReader.from_batches(schema, ends.batches()),
        ends,  # type: ignore[arg-type]
        compression="snappy",
        column_compression=dict.fromkeys(encoding.various, "zstd(1)"),
        dictionary_enabled=False,
        column_dictionary_enabled=dict.fromkeys(encoding.repeating, True),
        max_row_group_size=ROW_GROUP,
        skip_arrow_metadata=True,
    )
    if ends.error is not None:
        raise ends.error
    return WrittenFile(ends.size, b"".join(ends.last))


@dataclass(slots=True)
class _Ends:
    """Where rows come from and where their file goes.

    Errors of either stay out of the writer, which would tell them as its own, or panic.
    """

    rows: Iterable[pa.RecordBatch]
    out: pa.NativeFile
    error: Exception | None = None
    size: int = 0
    last: deque[bytes] = field(default_factory=deque)
    kept: int = 0  # bytes of the last

    def batches(self) -> Iterator[pa.RecordBatch]:
        with self._noting():
            for batch in self.rows:
                if self.error is not None:
                    break
                yield batch

    def write(self, data: bytes) -> int:
        with self._noting():
            if self.error is None:
                self.out.write(data)
        self.size += len(data)
        self.last.append(data)
        self.kept += len(data)
        while self.kept - len(self.last[0]) >= LONGEST:
            self.kept -= len(self.last.popleft())
        return len(data)

    def flush(self) -> None: ...

    def seek(self, *_: object) -> int:
        """The writer asks for it, and never uses it."""
        raise UnsupportedOperation("data files are written from beginning to end")

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.error = error


class TableFiles(Protocol):
    def data(self, rows: slice) -> memoryview | None:
        """A file of some of the rows, until the next is asked for; None: it is too large."""

    def write(self, out: pa.NativeFile, rows: slice) -> WrittenFile:
        """Such a file bit by bit, if it is too large to be made in memory."""

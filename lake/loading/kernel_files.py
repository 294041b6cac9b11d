"""Parquet files of one table, written by the kernel."""

from array import array
from functools import cached_property
from io import BytesIO

import numpy as np
import pyarrow as pa

from lake.loading.data_file import ROW_GROUP, WrittenFile
from lake.loading.file_columns import STRING, TYPES, after_groups, before_groups
from lake.loading.kernel.columns import DECIMAL, NUMBER, TEXT, TRUTH, Column
from lake.loading.kernel.dictionary import slots
from lake.loading.kernel.facts import CODEC, DATA, FACTS
from lake.loading.kernel.files import assemble, encode, need_of
from lake.loading.kernel.footer import FOOTER, Same
from lake.loading.kernel.pages import HEADER, ZSTD, Room, Rows
from lake.loading.kernel.snappy import PADDING, TABLE, most_bytes
from lake.loading.large_files import LargeFiles
from lake.loading.typed_columns import SparseColumn, TypedColumns
from lake.staging.kernel.memory import address

_KINDS = (TEXT, NUMBER, NUMBER, DECIMAL, TRUTH)  # in the order of the types
SMALL = 128 << 10
"""Bytes of a file before it is packed: up to that, Snappy suffices for all of its columns."""
_VARIOUS = 2_000  # bytes of a column; below, all that zstd saves is less than what it takes
_NONE = 1 << 62
LARGEST_PAGE = 1 << 20
"""Bytes of a column in a file: with more it would need several pages."""
LARGEST = 16 << 20
"""Bytes of a file: each task has three times as much memory for it."""


_ZSTD = pa.Codec("zstd", 1)


class KernelFiles:
    """Rows of a table in memory, any of which can be written as a file.

    What is too large for the kernel goes to the writer of large files, of which getting ready then
    is the smallest part.
    """

    def __init__(self, columns: TypedColumns, files: int) -> None:
        self._given, self._files = columns, files  # keeps the memory
        types = [TYPES[column.type] for column in columns.columns.values()]
        names = [name.encode() for name in columns.columns]
        before, after = before_groups(columns.columns, types), after_groups(len(names))
        self._bytes = np.frombuffer(b"".join([before, after, *names]), np.uint8)
        at = address(self._bytes)
        self._same = Same(at, len(before), at + len(before), len(after))
        self._rows = _sparse_rows(columns)
        name = at + len(before) + len(after)
        self._columns = _lines(columns, types, names, address(self._rows), name)
        self._footer = len(self._bytes) + FOOTER * len(names)
        self._facts = np.zeros((len(names), FACTS), np.int64)
        self._snappy = np.zeros(TABLE, np.uint16)
        self._memory = _Memory(0, 0, 0, 0)

    def write(self, out: pa.NativeFile, rows: slice) -> WrittenFile:
        """A file of some of the rows."""
        start, end = rows.start, rows.stop
        need = need_of(self._columns, start, end)
        if end - start > ROW_GROUP or need.largest > LARGEST_PAGE or need.total > LARGEST:
            return self._large.write(out, rows)
        room = self._room(end - start, need.total)
        packed = []  # is to stay until the file is assembled
        various = _NONE if need.total <= SMALL else _VARIOUS
        if encode(self._columns, Rows(start, end, various), room, self._snappy, self._facts):
            packed = self._pack()
        size = assemble(self._columns, self._same, end - start, room.out, self._facts)
        data = self._memory.out[:size].tobytes()
        del packed
        out.write(data)
        return WrittenFile(size, data)

    def _pack(self) -> list[pa.Buffer]:
        """Have the pages packed that the kernel has left to us."""
        memory = self._memory
        begin = memory.room.bodies
        packed = []
        for number in np.flatnonzero(self._facts[:, CODEC] == ZSTD).tolist():
            _, at, size = self._facts[number, DATA : DATA + 3].tolist()
            page = _ZSTD.compress(memory.bodies.slice(at - begin, size))
            self._facts[number, DATA + 1 : DATA + 3] = page.address, page.size
            packed.append(page)
        return packed

    def _room(self, rows: int, size: int) -> Room:
        """For a file of so many rows and bytes, and for smaller ones."""
        memory = self._memory
        if rows > memory.rows or size > memory.size:
            # Grows by half at least, so that it does so a few times.
            rows = max(rows, memory.rows * 3 // 2) if rows > memory.rows else memory.rows
            size = max(size, memory.size * 3 // 2) if size > memory.size else memory.size
            pages = most_bytes(size) + 2 * len(self._columns) * most_bytes(0)
            out = pages + 2 * HEADER * len(self._columns) + self._footer
            self._memory = memory = _Memory(rows, size, pages, out)
        return memory.room

    @cached_property
    def _large(self) -> LargeFiles:
        return LargeFiles(self._given, self._files)


class _Memory:
    """Where the kernel works; what it does not use of it is never taken from the system."""

    def __init__(self, rows: int, size: int, pages: int, out: int) -> None:
        self.rows, self.size = rows, size
        self.out = np.empty(out, np.uint8)
        bodies = np.empty(size + PADDING, np.uint8)
        self.bodies = pa.py_buffer(bodies)
        self._pages = np.empty(pages, np.uint8)
        self._table = np.empty(slots(rows), np.int64)
        self._rows = np.empty((3, rows), np.uint32)
        places, entries, numbers = map(address, self._rows)
        self.room = Room(
            self.bodies.address,
            address(self._pages),
            places,
            entries,
            numbers,
            address(self._table),
            address(self.out),
        )


def _lines(
    columns: TypedColumns, types: list[int], names: list[bytes], rows: int, name: int
) -> np.ndarray:
    """The columns as the kernel knows them; rows of the sparse ones, and names, lie in memory one
    after the other from an address on."""
    found = array("q")
    for column, kind, size in zip(columns.columns.values(), types, map(len, names), strict=True):
        is_sparse = isinstance(column, SparseColumn)
        given = column.values if is_sparse else column
        valid, *values = given.buffers()
        count = len(given) if is_sparse else 0
        found.extend(
            (
                _KINDS[kind],
                valid.address if valid is not None and given.null_count else 0,
                values[-1].address if values[-1] is not None else 0,
                values[0].address if kind == STRING else 0,
                given.offset,
                rows if is_sparse else 0,
                count,
                name,
                size,
            )
        )
        rows += 8 * count
        name += size
    return np.frombuffer(found, np.int64).reshape(len(names), len(Column._fields))


def _sparse_rows(columns: TypedColumns) -> np.ndarray:
    """The rows of all sparse columns, and one more: each array would have to be asked where it is."""
    found = [c.rows for c in columns.columns.values() if isinstance(c, SparseColumn)]
    return np.concatenate([*found, np.zeros(1, np.int64)], dtype=np.int64)


def warm_up() -> None:
    """Have the code of the kernel ready: from its cache or, the first time, by compiling it."""
    text = TypedColumns.of(pa.table({"text": ["a"]}))
    KernelFiles(text, 1).write(BytesIO(), slice(0, 1))

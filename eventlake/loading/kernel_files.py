"""Parquet files of one table, written by the kernel."""

from array import array
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventlake.loading.data_file import ROW_GROUP, WrittenFile
from eventlake.loading.file_columns import STRING, TYPES, after_groups, before_groups
from eventlake.loading.kernel.columns import DECIMAL, NUMBER, TEXT, TRUTH, Column
from eventlake.loading.kernel.dictionary import slots
from eventlake.loading.kernel.facts import (
    COLUMN_FACTS,
    IS_PACKED,
    PACKED_AT,
    PACKED_SIZE,
    PAGE_FACTS,
    SIZE,
)
from eventlake.loading.kernel.files import (
    AT_ONCE,
    HEADER,
    Need,
    Progress,
    assemble,
    encode,
    need_of,
)
from eventlake.loading.kernel.footer import FOOTER, Same
from eventlake.loading.kernel.pages import Room, Rows
from eventlake.loading.kernel.snappy import PADDING, TABLE, most_bytes
from eventlake.loading.large_files import LargeFiles
from eventlake.loading.typed_columns import SparseColumn, TypedColumns
from eventlake.staging.kernel.memory import address

_KINDS = (TEXT, NUMBER, NUMBER, DECIMAL, TRUTH)  # in the order of the types
SMALL = 128 << 10
"""Bytes of a file before it is packed: up to that, Snappy suffices for all of its columns."""
_VARIOUS = 2_000  # bytes of a column; below, all that zstd saves is less than what it takes
_NONE = 1 << 62
PAGE = 1 << 20
"""Bytes of a page, about: readers unpack one at a time."""
LARGEST = 64 << 20
"""Bytes of a file before it is packed, for which there is memory three times in the worst case."""
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
        self._facts = np.zeros((len(names), COLUMN_FACTS), np.int64)
        self._snappy = np.zeros(TABLE, np.uint16)
        self._memory = _Memory(0, Need(0, 0, 0), 0)

    def write(self, out: pa.NativeFile, rows: slice) -> WrittenFile:
        return self._large.write(out, rows)

    def data(self, rows: slice) -> memoryview | None:
        """A file of some of the rows."""
        some = Rows(rows.start, rows.stop, _VARIOUS, PAGE)
        need = need_of(self._columns, some)
        if not 0 < some.end - some.start <= ROW_GROUP or need.total > LARGEST:
            return None
        if need.total <= SMALL:
            some = some._replace(various=_NONE)
        return self._file(some, need)

    def _file(self, rows: Rows, need: Need) -> memoryview:
        memory = self._room(rows.end - rows.start, need)
        done = Progress(0, memory.room.pages, 0)
        packed: list[pa.Buffer] = []  # they stay until the file is assembled
        while done.column < len(self._columns):
            line = done.line
            done = encode(
                self._columns, rows, memory.room, done, self._snappy, self._facts, memory.lines
            )
            if rows.various < _NONE:
                packed += memory.pack(line, done.line)
        size = assemble(
            self._columns,
            self._same,
            rows.end - rows.start,
            memory.room.out,
            self._facts,
            memory.lines,
        )
        return memory.out.data[:size]

    def _room(self, rows: int, need: Need) -> "_Memory":
        """For a file of so many rows and bytes, and for smaller ones."""
        memory = self._memory
        if not memory.suffices(rows, need):
            # With a margin: the next files are about as large as this one.
            most = Need(*(5 * max(two) // 4 for two in zip(need, memory.need, strict=True)))
            self._memory = memory = _Memory(5 * max(rows, memory.rows) // 4, most, self._footer)
        return memory

    @cached_property
    def _large(self) -> LargeFiles:
        return LargeFiles(self._given, self._files)


class _Memory:
    """Where the kernel works; what it does not use of it is never taken from the system."""

    def __init__(self, rows: int, need: Need, footer: int) -> None:
        self.rows, self.need = rows, need
        pages = most_bytes(need.total) + need.pages * most_bytes(0)
        self.out = np.empty(pages + need.pages * HEADER + footer, np.uint8)
        self.lines = np.empty((need.pages, PAGE_FACTS), np.int64)
        bodies = min(need.total, AT_ONCE + need.largest) + PADDING
        self._bodies = pa.py_buffer(np.empty(bodies, np.uint8))
        self._pages = np.empty(pages, np.uint8)
        self._table = np.empty(slots(rows), np.int64)
        self._rows = np.empty((3, rows), np.uint32)
        at = address(self._rows)
        self.room = Room(
            self._bodies.address,
            address(self._pages),
            at,
            at + 4 * rows,
            at + 8 * rows,
            address(self._table),
            address(self.out),
        )

    def suffices(self, rows: int, need: Need) -> bool:
        had = self.need
        return (
            rows <= self.rows
            and need.largest <= had.largest
            and need.total <= had.total
            and need.pages <= had.pages
        )

    def pack(self, first: int, last: int) -> list[pa.Buffer]:
        """Have those pages packed, of some, that the kernel has left to us."""
        lines = self.lines[first:last]
        packed = []
        for number in np.flatnonzero(lines[:, IS_PACKED] == 0).tolist():
            begin = int(lines[number, PACKED_AT]) - self._bodies.address
            page = _ZSTD.compress(self._bodies.slice(begin, int(lines[number, SIZE])))
            lines[number, PACKED_AT] = page.address
            lines[number, PACKED_SIZE] = page.size
            packed.append(page)
        return packed


def _lines(
    columns: TypedColumns, types: list[int], names: list[bytes], rows: int, name: int
) -> np.ndarray:
    """The columns as the kernel knows them; rows of the sparse ones, and names, lie in memory one
    after the other from an address on."""
    found = array("q")
    for column, kind, size in zip(columns.columns.values(), types, map(len, names), strict=True):
        sparse = rows if isinstance(column, SparseColumn) else 0
        given: pa.Array = column.values if isinstance(column, SparseColumn) else column
        valid, *values = [0 if buffer is None else buffer.address for buffer in given.buffers()]
        found.extend(
            (
                _KINDS[kind],
                valid if given.null_count else 0,
                values[-1],
                values[0] if kind == STRING else 0,
                given.offset,
                sparse,
                len(given) if sparse else 0,
                name,
                size,
            )
        )
        rows += 8 * len(given) if sparse else 0
        name += size
    return np.frombuffer(found, np.int64).reshape(len(names), len(Column._fields))


def _sparse_rows(columns: TypedColumns) -> np.ndarray:
    """The rows of all sparse columns, so that one address is asked for; and one more row."""
    found = [c.rows for c in columns.columns.values() if isinstance(c, SparseColumn)]
    return np.concatenate([*found, np.zeros(1, np.int64)], dtype=np.int64)


def warm_up() -> None:
    """Have the code of the kernel ready: from its cache or, the first time, by compiling it."""
    text = TypedColumns.of(pa.table({"text": ["a"]}))
    KernelFiles(text, 1).data(slice(0, 1))

"""Writes Parquet files of one table with compiled code."""

from array import array
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.columnar.memory import address
from eventlake.columnar.parquet.assembly import (
    HEADER,
    Need,
    assemble,
    encode,
    need_of,
)
from eventlake.columnar.parquet.columns import (
    COLUMN_FACTS,
    DECIMAL,
    NUMBER,
    PACKED_AT,
    PACKED_SIZE,
    PAGE_CODEC,
    PAGE_FACTS,
    SIZE,
    TEXT,
    TRUTH,
    Column,
)
from eventlake.columnar.parquet.data_file import ROW_GROUP, write_data_file
from eventlake.columnar.parquet.dictionary import slots
from eventlake.columnar.parquet.footer import (
    FOOTER,
    STRING,
    TYPES,
    Same,
    after_groups,
    before_groups,
)
from eventlake.columnar.parquet.pages import SNAPPY, ZSTD, Room, Rows
from eventlake.columnar.text import PADDING
from eventlake.columnar.typed import SparseColumn, TypedColumns

_KINDS = (TEXT, NUMBER, NUMBER, DECIMAL, TRUTH)  # in the order of the types
SMALL = 128 << 10
"""Uncompressed bytes of a file up to which Snappy is used for all columns."""
_VARIOUS = 2_000  # bytes of a column; below, zstd saves less than it costs
_NONE = 1 << 62
PAGE = 1 << 20
"""Approximate bytes of a page: readers decompress one at a time."""
LARGEST = 64 << 20
"""Uncompressed bytes of a file made in memory, which takes three times as much at worst."""
_CODECS = {SNAPPY: pa.Codec("snappy"), ZSTD: pa.Codec("zstd", 1)}
_OF_PAGE = 64  # constant bytes that a codec may add to a page
_TO_PACK = [PAGE_CODEC, PACKED_AT, SIZE]


class TableFiles:
    """Rows of a table in memory, any of which can be written as a file."""

    def __init__(self, columns: TypedColumns) -> None:
        self._given = columns  # keeps the memory
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
        self._memory = _Memory(0, Need(0, 0), 0)

    def write(self, out: pa.NativeFile, rows: slice) -> pq.FileMetaData:
        """Write a file of some of the rows, however large, with Arrow's writer; its footer."""
        groups = (
            self._table[start : min(start + ROW_GROUP, rows.stop)]
            for start in range(rows.start, rows.stop, ROW_GROUP)
        )
        return write_data_file(out, self._table.schema, groups)

    def data(self, rows: slice) -> memoryview | None:
        """A file of some of the rows, until the next is asked for; None: it is too large."""
        some = Rows(rows.start, rows.stop, _VARIOUS, PAGE)
        need = need_of(self._columns, some)
        if not 0 < some.end - some.start <= ROW_GROUP or need.total > LARGEST:
            return None
        if need.total <= SMALL:
            some = some._replace(various=_NONE)
        return self._file(some, need)

    def _file(self, rows: Rows, need: Need) -> memoryview:
        memory = self._room(rows.end - rows.start, need)
        pages = encode(self._columns, rows, memory.room, self._facts, memory.lines)
        memory.pack(pages)
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
        """Memory for files up to this number of rows and bytes."""
        memory = self._memory
        if not memory.suffices(rows, need):
            # With a margin: the next files have about the same size.
            most = Need(*(5 * max(two) // 4 for two in zip(need, memory.need, strict=True)))
            self._memory = memory = _Memory(5 * max(rows, memory.rows) // 4, most, self._footer)
        return memory

    @cached_property
    def _table(self) -> pa.Table:
        return self._given.table()


class _Memory:
    """The working memory of the kernel; the system allocates only what is used."""

    def __init__(self, rows: int, need: Need, footer: int) -> None:
        self.rows, self.need = rows, need
        self._packed: list[pa.Buffer] = []
        packed = need.total + need.total // 6  # the bound of Snappy, larger than that of zstd
        self.out = np.empty(packed + need.pages * (HEADER + _OF_PAGE) + footer, np.uint8)
        self.lines = np.empty((need.pages, PAGE_FACTS), np.int64)
        self._bodies = pa.py_buffer(np.empty(need.total + PADDING, np.uint8))
        self._table = np.empty(slots(rows), np.int64)
        self._rows = np.empty((3, rows), np.uint32)
        at = address(self._rows)
        self.room = Room(
            self._bodies.address,
            at,
            at + 4 * rows,
            at + 8 * rows,
            address(self._table),
            address(self.out),
        )

    def suffices(self, rows: int, need: Need) -> bool:
        had = self.need
        return rows <= self.rows and need.total <= had.total and need.pages <= had.pages

    def pack(self, pages: int) -> None:
        """Compress the pages that have a codec; they are kept until the file is assembled."""
        lines, bodies = self.lines[:pages], self._bodies
        self._packed.clear()
        for number, (codec, begin, size) in enumerate(lines[:, _TO_PACK].tolist()):
            if codec:
                page = _CODECS[codec].compress(bodies.slice(begin - bodies.address, size))
                lines[number, PACKED_AT] = page.address
                lines[number, PACKED_SIZE] = page.size
                self._packed.append(page)


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
    """The rows of all sparse columns in one array, and one more row."""
    found = [c.rows for c in columns.columns.values() if isinstance(c, SparseColumn)]
    return np.concatenate([*found, np.zeros(1, np.int64)], dtype=np.int64)


def warm_up() -> None:
    """Load the compiled code from its cache, or compile it."""
    text = TypedColumns.of(pa.table({"text": ["a"]}))
    TableFiles(text).data(slice(0, 1))

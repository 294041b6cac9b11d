"""Writes Parquet files of one table with compiled code."""

from array import array
from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache
from io import BytesIO

import numpy as np
import pyarrow as pa
from arro3.io import write_parquet

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
from eventlake.columnar.parquet.data_file import (
    ROW_GROUP,
    FileEncoding,
    TableFiles,
    WrittenFile,
    before_rows,
    varint,
    write_data_file,
)
from eventlake.columnar.parquet.dictionary import slots
from eventlake.columnar.parquet.footer import FOOTER, Same
from eventlake.columnar.parquet.pages import SNAPPY, ZSTD, Room, Rows
from eventlake.columnar.text import PADDING
from eventlake.columnar.typed import SparseColumn, TypedColumns


class LargeFiles:
    """Rows of a table in memory, any of which can be written as a file."""

    def __init__(self, columns: TypedColumns, files: int) -> None:
        self._columns, self._files = columns, files

    def data(self, rows: slice) -> memoryview | None:
        return None

    def write(self, out: pa.NativeFile, rows: slice) -> WrittenFile:
        """A file of some of the rows."""
        some = self._rows[rows]
        return write_data_file(out, some.schema, some.to_batches(), self._encoding)

    @cached_property
    def _rows(self) -> pa.Table:
        return self._columns.table()

    @cached_property
    def _encoding(self) -> FileEncoding:
        return FileEncoding.of(self._rows, self._files)


STRING, INTEGER, MOMENT, EXACT, TRUTH_TYPE = range(5)
TYPES = {
    pa.string(): STRING,
    pa.int64(): INTEGER,
    pa.timestamp("us", tz="UTC"): MOMENT,
    pa.decimal128(38, 6): EXACT,
    pa.bool_(): TRUTH_TYPE,
}
"""Types that columns can have; Arrow's own are slow to be looked up again and again."""

_STRUCT = 12  # of Thrift's compact protocol
_FIELDS = 10_000  # that are remembered, of all tables
_NAME = "column"


def before_groups(names: Iterable[str], types: Sequence[int]) -> bytes:
    """How the footer of every file of these columns begins, up to the number of rows.

    As arro3 would write it, which takes 10 µs for each of the columns.
    """
    version, root = _begin()
    elements = b"".join(map(_element, names, types))
    children = varint(2 * len(types)) + b"\0"
    return version + _count(len(types) + 1) + root + children + elements


def after_groups(columns: int) -> bytes:
    """How it ends: who made the file, and that values are ordered as their types say."""
    return b"\x28\x08datalake\x19" + _count(columns) + b"\x1c\0\0" * columns + b"\0"


def _count(structs: int) -> bytes:
    """The header of a list of structs."""
    return bytes([structs << 4 | _STRUCT]) if structs < 15 else b"\xfc" + varint(structs)


@cache
def _begin() -> tuple[bytes, bytes]:
    """What comes before the count of the schema's elements, and what follows it up to the count of
    columns."""
    empty = _before(pa.schema([]))
    return empty[:3], empty[4:-2]


@lru_cache(maxsize=_FIELDS)
def _element(name: str, number: int) -> bytes:
    """How a column is described."""
    before, after = _around_name(number)
    encoded = name.encode()
    return before + varint(len(encoded)) + encoded + after


@cache
def _around_name(number: int) -> tuple[bytes, bytes]:
    """What stands beside its name: taken from what a file with it has more than one without."""
    [kind] = [kind for kind, other in TYPES.items() if other == number]
    element = _before(pa.schema([(_NAME, kind)]))[len(_before(pa.schema([]))) :]
    before, after = element.split(varint(len(_NAME)) + _NAME.encode())
    return before, after


def _before(schema: pa.Schema) -> bytes:
    out = BytesIO()
    write_parquet(schema.empty_table(), out, skip_arrow_metadata=True)
    return before_rows(out.getvalue(), 0)


_KINDS = (TEXT, NUMBER, NUMBER, DECIMAL, TRUTH)  # in the order of the types
SMALL = 128 << 10
"""Bytes of a file before it is packed: up to that, Snappy suffices for all of its columns."""
_VARIOUS = 2_000  # bytes of a column; below, all that zstd saves is less than what it takes
_NONE = 1 << 62
PAGE = 1 << 20
"""Bytes of a page, about: readers unpack one at a time."""
LARGEST = 64 << 20
"""Bytes of a file before it is packed, for which there is memory three times in the worst case."""
_CODECS = {SNAPPY: pa.Codec("snappy"), ZSTD: pa.Codec("zstd", 1)}
_OF_PAGE = 64  # bytes that a codec may add to a page, beside a part of its size
_TO_PACK = [PAGE_CODEC, PACKED_AT, SIZE]


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
        self._memory = _Memory(0, Need(0, 0), 0)

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
        """For a file of this number of rows and bytes, and for smaller ones."""
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
        self._packed: list[pa.Buffer] = []
        packed = need.total + need.total // 6  # Snappy's bound, which is above that of zstd
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
        """Pack the pages that have a codec; they stay until the file is assembled."""
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
    """The rows of all sparse columns, so that one address is asked for; and one more row."""
    found = [c.rows for c in columns.columns.values() if isinstance(c, SparseColumn)]
    return np.concatenate([*found, np.zeros(1, np.int64)], dtype=np.int64)


def warm_up() -> None:
    """Load the compiled code from its cache, or compile it."""
    text = TypedColumns.of(pa.table({"text": ["a"]}))
    KernelFiles(text, 1).data(slice(0, 1))


def table_files(columns: TypedColumns, files: int) -> TableFiles:
    """The writer for these rows, if they go to `files` files."""
    # Compiled code, which only workers need.
    from eventlake.columnar.compiled import cache_folder

    # Where it cannot be kept, compiling it takes longer than it spares.
    if cache_folder() is None:
        return LargeFiles(columns, files)
    return KernelFiles(columns, files)

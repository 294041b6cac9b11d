"""Small Parquet files of one table, written by the kernel: values as they are, packed by Snappy."""

from io import BytesIO

import numpy as np
import pyarrow as pa
from arro3.io import write_parquet

from lake.loading.data_file import WrittenFile
from lake.loading.footer import before_rows, varint
from lake.loading.kernel.files import FOOTER, Same, write_file
from lake.loading.kernel.pages import (
    DECIMAL,
    DECIMAL_BYTES,
    HEADER,
    NUMBER,
    TEXT,
    TRUTH,
    Columns,
)
from lake.loading.kernel.snappy import PADDING, TABLE, most_bytes
from lake.staging.kernel.memory import address

_KINDS = {
    pa.string(): TEXT,
    pa.int64(): NUMBER,
    pa.timestamp("us", tz="UTC"): NUMBER,
    pa.decimal128(38, 6): DECIMAL,
    pa.bool_(): TRUTH,
}
_PHYSICAL = {TEXT: 6, NUMBER: 2, DECIMAL: 7, TRUTH: 0}  # types as Parquet numbers them
_PAGE = 64  # bytes of a page beside its values: levels of a run, lengths
_PER_ROW = DECIMAL_BYTES + 1  # bytes of a value that is no text, and its level


class SmallFiles:
    """Rows of a table in memory, any of which can be written as a file."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows = rows  # keeps the memory
        self._columns = _columns(rows)
        self._bytes = [_Bytes(_head(field)) for field in rows.schema]
        self._before, self._after = _Bytes(_before(rows.schema)), _Bytes(_after(rows.schema))
        self._same = Same(
            self._before.address,
            self._before.size,
            np.array([head.address for head in self._bytes], np.int64),
            np.array([head.size for head in self._bytes], np.int64),
            self._after.address,
            self._after.size,
        )
        self._facts = np.zeros((rows.num_columns, 6), np.int64)
        self._table = np.zeros(TABLE, np.uint16)
        texts = [c for c in rows.columns if c.type == pa.string()]
        self._texts = [_text_bytes(column) for column in texts]
        self._scratch = self._out = np.empty(0, np.uint8)

    def write(self, out: pa.NativeFile, rows: slice) -> WrittenFile:
        """A file of some of the rows."""
        self._make_room(rows.stop - rows.start)
        size = write_file(
            self._columns, self._same, rows.start, rows.stop, address(self._out),
            address(self._scratch), self._table, self._facts,
        )  # fmt: skip
        data = self._out[:size].tobytes()
        out.write(data)
        return WrittenFile(size, data)

    def _make_room(self, rows: int) -> None:
        """For the largest page that there can be, and for a file of all the texts."""
        plain = _PAGE + rows * (_PER_ROW + 4)
        page = plain + max(self._texts, default=0) + PADDING
        if len(self._scratch) >= page:
            return
        self._scratch = np.zeros(page, np.uint8)
        columns = len(self._columns.kind)
        pages = columns * (HEADER + most_bytes(plain)) + most_bytes(sum(self._texts))
        names = sum(head.size for head in self._bytes)
        footer = columns * FOOTER + names + self._before.size + self._after.size
        self._out = np.empty(pages + footer + _PAGE, np.uint8)


class _Bytes:
    """Bytes with their address, as long as this is held."""

    def __init__(self, data: bytes) -> None:
        self._array = np.frombuffer(data, np.uint8)
        self.address, self.size = address(self._array), len(data)


def _columns(rows: pa.RecordBatch) -> Columns:
    found = np.zeros((len(Columns._fields), rows.num_columns), np.int64)
    for number, column in enumerate(rows.columns):
        kind = _KINDS[column.type]
        valid, *values = column.buffers()
        found[:, number] = (
            kind,
            valid.address if valid is not None and column.null_count else 0,
            values[-1].address if values[-1] is not None else 0,
            values[0].address if kind == TEXT else 0,
            column.offset,
        )
    return Columns(*found)


def _text_bytes(column: pa.Array) -> int:
    if not len(column):
        return 0
    offsets = np.frombuffer(column.buffers()[1], np.int32)
    return int(offsets[column.offset + len(column)] - offsets[column.offset])


def _head(field: pa.Field) -> bytes:
    """What the metadata of a column begin with: type, encodings (plain, RLE), name, Snappy."""
    name: bytes = field.name.encode()
    kind = _PHYSICAL[_KINDS[field.type]]
    begin = bytes([0x15, 2 * kind, 0x19, 0x25, 0, 6, 0x19, 0x18])
    return begin + varint(len(name)) + name + b"\x15\x02"


def _before(schema: pa.Schema) -> bytes:
    """How the footer of every file of these columns begins: as that of an empty one."""
    out = BytesIO()
    write_parquet(schema.empty_table(), out, skip_arrow_metadata=True)
    return before_rows(out.getvalue(), 0)


def _after(schema: pa.Schema) -> bytes:
    """Who made the file, and that values are ordered as their types say."""
    columns = len(schema)
    count = bytes([columns << 4 | 12]) if columns < 15 else b"\xfc" + varint(columns)
    return b"\x28\x08datalake\x19" + count + b"\x1c\0\0" * columns + b"\0"


def warm_up() -> None:
    """Have the code of the kernel ready: from its cache or, the first time, by compiling it."""
    SmallFiles(pa.RecordBatch.from_pydict({"text": ["a"]})).write(BytesIO(), slice(0, 1))

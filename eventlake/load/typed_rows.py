"""Casts staged rows to the types of their table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np
import pyarrow as pa

from eventlake.columnar import filling
from eventlake.columnar.batches import NO_COLUMN
from eventlake.columnar.filling import (
    COLUMN,
    Rescue,
    StagedRows,
    count_cells,
    fill_columns,
)
from eventlake.columnar.memory import address
from eventlake.columnar.typed import SparseColumn, TypedColumns
from eventlake.load.staged import PAYLOAD, Field, StagedTable
from eventlake.rules.counts import CastCounts
from eventlake.rules.names import RESCUED_DATA
from eventlake.rules.types import LakeType, TableSchema

_CODES = {
    LakeType.STRING: filling.STRING,
    LakeType.BIGINT: filling.BIGINT,
    LakeType.TIMESTAMP: filling.TIMESTAMP,
    LakeType.DECIMAL: filling.DECIMAL,
    LakeType.BOOLEAN: filling.BOOLEAN,
}
_WIDTHS = np.array([4, 8, 8, 16, 0])  # bytes of a value by type; of texts, of their end offset
FEW = 8
"""A column is sparse if at most one in this many rows has a value."""
ROOM = 1 << 16  # initial bytes of `rescued_data`
_SPARE = 16  # bytes that the kernel may write beyond the end of a buffer
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Rows as columns of the table; with `rescued_data` if the table has it or a row needs it."""

    rows: TypedColumns
    casts: dict[str, CastCounts]
    rescued_cells: int
    payloads: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Casting:
    """Staged rows with the types of their table.

    `event` is the value of that column in all rows, if it is the same for the whole table; `most`
    is the limit in bytes of rows that are cast together.
    """

    rows: StagedRows
    fields: Sequence[Field]
    schema: TableSchema
    event: str | None = None
    most: int = _MOST

    @classmethod
    def of(
        cls, staged: StagedTable, schema: TableSchema, event: str | None = None, most: int = _MOST
    ) -> "Casting":
        return cls(*staged.rows(), schema, event, min(most, _MOST))

    def parts(self, rows: slice) -> Iterator[tuple[slice, TypedRows]]:
        """A range of rows in parts that keep to the limit."""
        typed = self.typed(rows)
        if typed is not None:
            yield rows, typed
            return
        middle = (rows.start + rows.stop) // 2
        yield from self.parts(slice(rows.start, middle))
        yield from self.parts(slice(middle, rows.stop))

    def typed(self, rows: slice) -> TypedRows | None:
        """A range of rows as columns; None if they are more than the limit. One row never is."""
        some = StagedRows(*(part[rows] for part in self.rows))
        return _typed_rows(some, self.fields, self.schema, self.event, self.most)


def _typed_rows(
    rows: StagedRows, fields: Sequence[Field], schema: TableSchema, event: str | None, most: int
) -> TypedRows | None:
    """Cast every cell into its column; values that lose something go to `rescued_data`."""
    length = len(rows.cells)
    types = {name: type for name, type in schema.types().items() if name != RESCUED_DATA}
    if PAYLOAD in fields:
        types[PAYLOAD[1]] = LakeType.STRING
    filled = _filled(rows, fields, types, most)
    if filled is None:
        return None
    columns = filled.columns
    payloads = columns.pop(PAYLOAD[1], None)
    if event is not None:
        columns["event"] = pa.repeat(pa.scalar(event, pa.string()), length)
    if RESCUED_DATA in schema.types():
        columns = {c.name: columns.get(c.name, _nothing(c.type)) for c in schema.columns}
    if filled.rescued is not None:
        columns[RESCUED_DATA] = filled.rescued
    if isinstance(payloads, SparseColumn):
        payloads = payloads.whole(length)
    return TypedRows(TypedColumns(length, columns), filled.casts, filled.cells, payloads)


@cache
def _nothing(type: LakeType) -> SparseColumn:
    """A column without values."""
    return SparseColumn(np.empty(0, np.int64), pa.array([], type.arrow))


@dataclass(frozen=True, slots=True)
class _Filled:
    columns: dict[str, pa.Array | SparseColumn]
    casts: dict[str, CastCounts]
    rescued: pa.Array | None
    cells: int


def _filled(
    rows: StagedRows, fields: Sequence[Field], types: dict[str, LakeType], most: int
) -> _Filled | None:
    number = {name: at for at, name in enumerate(types)}
    column_of = np.array([number[c] if c else NO_COLUMN for _, c in fields], np.int64)
    names = list(types)
    kinds = np.array([_CODES[type] for type in types.values()], np.int64)
    counts = np.zeros((len(names), 2), np.int64)
    count_cells(rows, column_of, counts)
    count, texts = counts[:, 0], np.where(kinds == filling.STRING, counts[:, 1], 0)
    length = len(rows.cells)
    sparse = count * FEW <= length
    sizes = _sizes(kinds, count, texts, length, sparse)
    if np.sum(sizes) > most:  # the smaller form of each column, although it is slower to write
        whole, few = (_sizes(kinds, count, texts, length, np.full_like(sparse, s)) for s in (0, 1))
        sparse = np.sum(few, axis=1) < np.sum(whole, axis=1)
        sizes = np.where(sparse[:, None], few, whole)
        if np.sum(sizes) > most and length > 1:
            return None
    room = np.where(count[:, None] == 0, 0, (sizes + (_SPARE + 63)) & ~63)
    starts = (np.cumsum(room) - room.ravel()).reshape(room.shape)
    memory = pa.allocate_buffer(int(np.sum(room)))
    view = np.frombuffer(memory, np.uint8)
    at = memory.address + starts
    columns = np.zeros((len(names), COLUMN), np.int64)
    columns[:, filling.TYPE] = kinds
    columns[:, filling.VALID], columns[:, filling.VALUES] = at[:, 0], at[:, 1]
    columns[:, filling.TEXTS] = at[:, 2]
    columns[:, filling.ROWS] = np.where(sparse, at[:, 3], 0)
    present = np.flatnonzero(count).tolist()
    of_column = list(
        zip(kinds.tolist(), sparse.tolist(), starts.tolist(), sizes.tolist(), strict=True)
    )
    for column in present:
        kind, is_sparse, start, size = of_column[column]
        if not is_sparse:
            view[start[0] : start[0] + size[0]] = 0
        if kind == filling.BOOLEAN:
            view[start[1] : start[1] + size[1]] = 0
        elif kind == filling.STRING:
            view[start[1] : start[1] + 4] = 0
    rescue = _Rescue(fields, length)
    row = 0
    while row < length:
        row = fill_columns(rows, row, column_of, columns, rescue.memory, rescue.state)
        if row < length:
            if 2 * rescue.size > most and length > 1:
                return None
            rescue.grow(int(6 * rows.bytes[row] + rows.cells[row] * (rescue.longest + 4) + 4))
    found: dict[str, pa.Array | SparseColumn] = {}
    casts: dict[str, CastCounts] = {}
    facts = columns.tolist()
    arrow = list(types.values())
    for name, type in types.items():
        found[name] = _nothing(type)
    for column in present:
        kind, is_sparse, start, size = of_column[column]
        told_of, type = facts[column], arrow[column]
        name = names[column]
        filled = told_of[filling.FILLED]
        lossy, failed = told_of[filling.LOST_SOME], told_of[filling.FAILED_AT_ALL]
        casts[name] = CastCounts(int(count[column]) - lossy - failed, lossy, failed)
        if not filled:
            continue
        valid = None if is_sparse or filled == length else memory.slice(start[0], size[0])
        buffers = [valid, memory.slice(start[1], size[1])]
        if kind == filling.STRING:
            buffers.append(memory.slice(start[2], told_of[filling.USED]))
        array_length = filled if is_sparse else length
        array = pa.Array.from_buffers(type.arrow, array_length, buffers, array_length - filled)
        found[name] = (
            SparseColumn(np.frombuffer(memory, np.int64, filled, start[3]), array)
            if is_sparse
            else array
        )
    return _Filled(found, casts, rescue.array(), int(rescue.state[1]))


def _sizes(
    kinds: np.ndarray, count: np.ndarray, texts: np.ndarray, length: int, sparse: np.ndarray
) -> np.ndarray:
    """The bytes of each column: of validity bits, values, texts, and row numbers."""
    slots = np.where(sparse, count, length)
    fixed = np.where(kinds == filling.BOOLEAN, (slots + 7) // 8, _WIDTHS[kinds] * slots)
    fixed += np.where(kinds == filling.STRING, 4, 0)
    bits, numbers = np.where(sparse, 0, (length + 7) // 8), np.where(sparse, 8 * count, 0)
    return np.column_stack([bits, fixed, texts, numbers]) * (count > 0)[:, None]


class _Rescue:
    """Memory for `rescued_data`, which grows as needed."""

    def __init__(self, fields: Sequence[Field], rows: int) -> None:
        names = [msgspec.json.encode(pointer) + b":" for pointer, _ in fields]
        self._names = np.frombuffer(b"".join(names) or b" ", np.uint8)
        self._ends = np.cumsum([0, *map(len, names)])
        self.longest = max(map(len, names), default=0)
        self._rows = rows
        self._bits = np.zeros((rows + 7) // 8 + 1, np.uint8)
        self._offsets = np.zeros(rows + 1, np.int32)
        self._texts = np.empty(ROOM, np.uint8)
        self.state = np.zeros(3, np.int64)

    @property
    def size(self) -> int:
        return len(self._texts)

    @property
    def memory(self) -> Rescue:
        return Rescue(
            address(self._texts),
            len(self._texts),
            address(self._offsets),
            address(self._bits),
            address(self._names),
            self._ends,
            self.longest,
        )

    def grow(self, more: int) -> None:
        larger = np.empty(2 * len(self._texts) + more, np.uint8)
        used = int(self.state[0])
        larger[:used] = self._texts[:used]
        self._texts = larger

    def array(self) -> pa.Array | None:
        used, cells, rows = self.state.tolist()
        if not cells:
            return None
        if used > _MOST:
            raise OverflowError("rescued_data has more than 2 GB of text in one row.")
        buffers = [pa.py_buffer(self._bits), pa.py_buffer(self._offsets), pa.py_buffer(self._texts)]
        return pa.Array.from_buffers(pa.string(), self._rows, buffers, self._rows - rows)

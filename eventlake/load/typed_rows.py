"""Casts staged rows to the types of their table."""

from collections.abc import Sequence
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


def typed_rows(staged: StagedTable, schema: TableSchema, event: str | None = None) -> TypedRows:
    """Cast every cell into its column; values that lose something go to `rescued_data`.

    `event` is the value of that column in all rows, if it is the same for the whole table.
    """
    rows, fields = staged.rows()
    types = {name: type for name, type in schema.types().items() if name != RESCUED_DATA}
    if PAYLOAD in fields:
        types[PAYLOAD[1]] = LakeType.STRING
    filled = _filled(rows, fields, types)
    columns = filled.columns
    payloads = columns.pop(PAYLOAD[1], None)
    if event is not None:
        columns["event"] = pa.repeat(pa.scalar(event, pa.string()), len(staged))
    if RESCUED_DATA in schema.types():
        columns = {c.name: columns.get(c.name, _nothing(c.type)) for c in schema.columns}
    if filled.rescued is not None:
        columns[RESCUED_DATA] = filled.rescued
    if isinstance(payloads, SparseColumn):
        payloads = payloads.whole(len(staged))
    return TypedRows(TypedColumns(len(staged), columns), filled.casts, filled.cells, payloads)


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


def _filled(rows: StagedRows, fields: Sequence[Field], types: dict[str, LakeType]) -> _Filled:
    number = {name: at for at, name in enumerate(types)}
    column_of = np.array([number[c] if c else NO_COLUMN for _, c in fields], np.int64)
    names = list(types)
    kinds = np.array([_CODES[type] for type in types.values()], np.int64)
    counts = np.zeros((len(names), 2), np.int64)
    count_cells(rows, column_of, counts)
    count, texts = counts[:, 0], np.where(kinds == filling.STRING, counts[:, 1], 0)
    if np.max(texts, initial=0) > _MOST:
        raise OverflowError(
            f"{names[int(np.argmax(texts))]} has more than 2 GB of text in one file. Hours are "
            "divided by raw file: put these events into several of them."
        )
    length = len(rows.cells)
    sparse = count * FEW <= length
    slots = np.where(sparse, count, length)
    bits = (length + 7) // 8
    fixed = np.where(kinds == filling.BOOLEAN, (slots + 7) // 8, _WIDTHS[kinds] * slots)
    fixed += np.where(kinds == filling.STRING, 4, 0)
    sizes = np.column_stack(
        [np.where(sparse, 0, bits), fixed, texts, np.where(sparse, 8 * count, 0)]
    )
    room = (sizes + (_SPARE + 63)) & ~63
    room[count == 0] = 0
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
            raise OverflowError("rescued_data has more than 2 GB of text in one file.")
        buffers = [pa.py_buffer(self._bits), pa.py_buffer(self._offsets), pa.py_buffer(self._texts)]
        return pa.Array.from_buffers(pa.string(), self._rows, buffers, self._rows - rows)

"""Cells as columns in the memory layout of Arrow: of all tables of a block at once.

A block may hold hundreds of tables: what is done for each of them, or each of their columns, has
to be little. Of wide tables most fields are in few of the rows, and these have no columns: all of
their values are in lists, one for each way in which values are written.
"""

from dataclasses import dataclass
from itertools import count, pairwise, repeat
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlake.columnar.events import ID, Cells, Events
from eventlake.columnar.fill import (
    AS_JSON,
    CELLS,
    CODES,
    FACTS,
    FIELD,
    KINDS,
    PLACE,
    ROW,
    VALID,
    WAY,
    count_columns,
    fill_columns,
)
from eventlake.columnar.group_messages import GroupMessages, RowOrigins
from eventlake.columnar.hash_kernels import BLOCK, hash_ids
from eventlake.columnar.id_hashes import ID_BYTES, hash_id
from eventlake.columnar.kinds import ARROW_TYPES, Encoding, Kind
from eventlake.columnar.layout import (
    Layout,
    encoding_of,
    known_kinds,
    laid_out,
    mark_words,
    rare_fields,
)
from eventlake.columnar.line_blocks import LineBlock
from eventlake.columnar.values import ESCAPED, MILLIS
from eventlake.load.parts import Arrays, Origins, PartColumn
from eventlake.load.seen import RawPosition


@dataclass(slots=True)
class Block:
    """The lines of a block; `table` is a number of `PlainEvents.tables`, NONE of odd lines."""

    lines: LineBlock
    starts: np.ndarray
    ends: np.ndarray
    files: np.ndarray
    numbers: np.ndarray
    table: np.ndarray
    events: Events
    cells: Cells

    def line(self, row: int) -> bytes:
        return self.lines.text(int(self.starts[row]), int(self.ends[row]))

    def texts(self, cells: np.ndarray) -> list[str | None]:
        """What stands in some cells, None where it is not plain text."""
        view = self.lines.view()
        kinds = self.cells.kind[cells]
        plain = ((kinds <= MILLIS) & (kinds != ESCAPED)).tolist()
        starts, ends = self.cells.start[cells].tolist(), self.cells.end[cells].tolist()
        return [
            str(view[start:end], "utf-8") if is_text else None
            for is_text, start, end in zip(plain, starts, ends, strict=True)
        ]

    def origins(self, rows: np.ndarray, keep_payloads: bool) -> pa.RecordBatch:
        """Where some rows are from."""
        return Origins(
            self.files[rows],
            self.numbers[rows],
            self.ids(rows),
            self.events.received[rows],
            self.events.payload[rows],
            [self.line(row) for row in rows.tolist()] if keep_payloads else None,
        ).batch()

    def ids(self, rows: np.ndarray) -> pa.Array:
        """The hashed message ids of some rows."""
        cells = self.events.envelope[rows, ID]
        starts, ends = self.cells.start[cells], self.cells.end[cells]
        hashes = np.empty((len(rows), 2), np.uint64)
        hash_ids(self.lines.address, starts, np.minimum(ends, starts + BLOCK), hashes)
        for row in np.flatnonzero(ends - starts > BLOCK).tolist():
            text = self.lines.text(int(starts[row]), int(ends[row])).decode()
            hashes[row] = np.frombuffer(hash_id(text), np.uint64)
        return pa.Array.from_buffers(
            pa.binary(ID_BYTES), len(rows), [None, pa.py_buffer(hashes)], 0
        )


class Columns(NamedTuple):
    """All fields of some rows: columns by the number of the field, and those that are rare, with
    their number, encoding, first place and kinds.

    A list has for each row the numbers and the values of its rare fields. Without lists, the rows
    may be a message.
    """

    columns: dict[int, PartColumn]
    rare: list[tuple[int, Encoding, RawPosition, frozenset[Kind]]]
    lists: dict[Encoding, pa.ListArray]
    message: pa.Buffer | None


def columns_of(
    block: Block,
    rows: np.ndarray,
    ends: np.ndarray,
    column_of: np.ndarray,
    fields: int,
    lists: bool = True,
    origins: RowOrigins | None = None,
) -> list[Columns]:
    """The columns of some groups of events, by the fields that they have.

    `rows` are those of all groups, one after the other, `ends` where each of them ends.
    `column_of` is room to work in, a place for each field, NONE throughout before and after.
    `fields` are so many as there can be. Without lists, rare ones have columns, too. With origins,
    messages are made.
    """
    facts, last = _facts(block, rows, ends, column_of, fields)
    mark_words(facts)
    group_of = np.repeat(np.arange(len(ends)), np.diff(last, prepend=0))
    lengths = np.diff(ends, prepend=0)
    rare = rare_fields(facts, lengths[group_of], group_of, len(ends) if lists else 0)
    messages = GroupMessages(origins, facts, last, lengths, rare)
    layout = laid_out(facts, lengths, group_of, rare, messages.room)
    last_list = np.searchsorted(layout.list_groups, np.arange(len(ends)), side="right")
    # Arrow keeps memory that it has had for the next time; NumPy asks the system again and again.
    buffer = pa.allocate_buffer(layout.bytes + 8)
    memory = np.frombuffer(buffer, np.uint8)
    memory[:] = 0
    fill_columns(
        block.lines.address, rows, ends, block.events.first_cell, block.cells, column_of,
        facts[:, FIELD].copy(), last, last_list, layout.buffers, memory,
    )  # fmt: skip
    written = messages.write(buffer, layout)
    told = _Told(block, facts)
    found: list[Columns] = []
    for group, (start, end) in enumerate(pairwise([0, *last.tolist()])):
        arrays = _Arrays(buffer, layout, facts, told.encodings, start, int(lengths[group]))
        columns = told.columns(slice(start, end), arrays)
        listed = [told.rare(at) for at in (np.flatnonzero(rare[start:end]) + start).tolist()]
        for number, *_ in listed:
            del columns[number]
        found.append(Columns(columns, listed, {}, written.get(group)))
    for group, encoding, *spot in zip(
        layout.list_groups.tolist(),
        layout.list_encodings,
        layout.buffers[len(facts) :].tolist(),
        layout.sizes[len(facts) :].tolist(),
        strict=True,
    ):
        found[group].lists[encoding] = _list(buffer, encoding, int(lengths[group]), *spot)
    return found


class _Told:
    """What there is to tell of columns, beside their values."""

    def __init__(self, block: Block, facts: np.ndarray) -> None:
        rows, kinds = facts[:, ROW], facts[:, KINDS].tolist()
        self.encodings = list(map(encoding_of, kinds))
        self._known = list(map(known_kinds, kinds))
        self._numbers = facts[:, FIELD].tolist()
        self._places = list(
            zip(
                block.files[rows].tolist(),
                block.numbers[rows].tolist(),
                facts[:, PLACE].tolist(),
                strict=True,
            )
        )

    def columns(self, some: slice, arrays: Arrays) -> dict[int, PartColumn]:
        """Some columns by number, with their arrays."""
        # Without a line of Python for each: there are very many.
        parts = zip(
            self.encodings[some],
            repeat(arrays),
            count(),
            self._places[some],
            self._known[some],
            strict=False,
        )
        return dict(zip(self._numbers[some], map(PartColumn._make, parts), strict=True))

    def rare(self, at: int) -> tuple[int, Encoding, RawPosition, frozenset[Kind]]:
        """A field that has no column."""
        known = self._known[at] or frozenset()
        return self._numbers[at], self.encodings[at], self._places[at], known


class _Arrays:
    """The columns of a group as Arrow has them, made when somebody asks for them."""

    def __init__(
        self,
        buffer: pa.Buffer,
        layout: Layout,
        facts: np.ndarray,
        encodings: list[Encoding],
        first: int,
        length: int,
    ) -> None:
        """`first` is the number of the group's first column among those of all groups."""
        self._buffer, self._layout, self._facts = buffer, layout, facts
        self._encodings, self._first, self._length = encodings, first, length

    def __getitem__(self, column: int) -> pa.Array:
        at = self._first + column
        starts, sizes = self._layout.buffers[at].tolist(), self._layout.sizes[at].tolist()
        filled = self._facts.item(at, CELLS)
        return _array(self._buffer, self._encodings[at], self._length, filled, starts, sizes)


def _facts(
    block: Block, rows: np.ndarray, ends: np.ndarray, column_of: np.ndarray, fields: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of each column what `count_columns` finds, and where the columns of each group end."""
    last = np.zeros(len(ends), np.int64)
    first_cell = block.events.first_cell
    in_rows = int(np.sum(first_cell[rows + 1] - first_cell[rows]))
    facts = np.empty((min(in_rows, len(ends) * fields), FACTS), np.int64)
    buf = block.lines.address
    count = count_columns(buf, rows, ends, first_cell, block.cells, column_of, facts, last)
    return facts[:count].copy(), last  # of far more that there could have been


def _array(
    memory: pa.Buffer,
    encoding: Encoding,
    length: int,
    filled: int,
    starts: list[int],
    size: list[int],
) -> pa.Array:
    """A column as Arrow has it."""
    _, valid, values, texts, _ = starts
    mask = memory.slice(valid, size[0]) if filled < length else None
    buffers = [mask, memory.slice(values, size[1])]
    if starts[WAY] <= AS_JSON:
        buffers.append(memory.slice(texts, size[2]))
    return pa.Array.from_buffers(ARROW_TYPES[encoding], length, buffers, length - filled)


def _list(
    memory: pa.Buffer, encoding: Encoding, length: int, starts: list[int], size: list[int]
) -> pa.ListArray:
    """A list as Arrow has it: for each row the numbers of fields, and their values."""
    codes = np.frombuffer(memory, np.uint16, size[3] // 2, starts[CODES])
    values = _array(memory, encoding, len(codes), len(codes), starts, size)
    each = pa.StructArray.from_arrays([pa.array(codes), values], ["field", "value"])
    offsets = np.frombuffer(memory, np.int32, length + 1, starts[VALID])
    return pa.ListArray.from_arrays(pa.array(offsets), each)

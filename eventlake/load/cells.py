"""Blocks of parsed events: the result of both readers, and their conversion to batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from eventlake.columnar.batches import (
    FACTS,
    HEAD,
    PER_CELL,
    PER_ROW,
    ROW,
    Origins,
    find_fields,
    write_batches,
)
from eventlake.columnar.cells import ID, Cells, Events
from eventlake.columnar.fields import MOST_FIELDS, NONE, ROOT
from eventlake.columnar.id_hashes import ID_BYTES
from eventlake.columnar.memory import address
from eventlake.columnar.values import ESCAPED, TEXT
from eventlake.load.blobs import packed
from eventlake.load.table_fields import BatchFields

_CELLS_OF_A_TABLE = 128  # initial number of fields
_LONG = 4  # additional bytes of a long value
_GIVEN_ID = 64  # bytes of an id generated for an event without one


@dataclass(slots=True)
class CellBlock:
    """Events of a block; `table` is a number of the vocabulary, NONE for lines that are not plain.

    Cells and lines (from `starts` to `ends`) are positions in `memory`.
    """

    memory: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    files: np.ndarray
    numbers: np.ndarray
    table: np.ndarray
    events: Events
    cells: Cells

    @property
    def address(self) -> int:
        return address(self.memory)

    def line(self, row: int) -> bytes:
        return self.memory[int(self.starts[row]) : int(self.ends[row])].tobytes()

    def overwrite(self, row: int, line: bytes) -> None:
        """Replace a line by one that is not longer."""
        start, end = int(self.starts[row]), int(self.ends[row])
        self.memory[start:end] = np.frombuffer(line[: end - start].ljust(end - start), np.uint8)

    def texts(self, cells: np.ndarray) -> list[str | None]:
        """The texts of some cells; None for cells that are not plain text."""
        plain = (self.cells.kind[cells] < ESCAPED).tolist()
        starts, ends = self.cells.start[cells].tolist(), self.cells.end[cells].tolist()
        view = self.memory.data
        return [
            str(view[start:end], "utf-8") if is_text else None
            for is_text, start, end in zip(plain, starts, ends, strict=True)
        ]

    def ids(self, rows: np.ndarray) -> np.ndarray:
        """The hashed message ids of some rows."""
        cells = self.events.envelope[rows, ID]
        starts, ends = self.cells.start[cells].tolist(), self.cells.end[cells].tolist()
        view = self.memory.data
        hashes = [
            blake2b(view[start:end], digest_size=ID_BYTES).digest()
            for start, end in zip(starts, ends, strict=True)
        ]
        return np.frombuffer(b"".join(hashes), np.uint64).reshape(-1, 2)

    def with_payloads(self) -> "CellBlock":
        """The same with one more cell for each event: the whole line, as field ROOT."""
        cells, first = self.cells, self.events.first_cell
        at = first[1:]
        more: list[Any] = [ROOT, TEXT, self.starts, self.ends]
        wider = (np.insert(p[: first[-1]], at, m) for p, m in zip(cells, more, strict=True))
        envelope = self.events.envelope
        moved = np.where(envelope == NONE, NONE, envelope + np.arange(len(at))[:, None])
        events = self.events._replace(
            first_cell=first + np.arange(len(first)), envelope=moved.astype(np.int32)
        )
        return replace(self, events=events, cells=Cells(*wider))

    def room(self, rows: np.ndarray) -> np.ndarray:
        """Upper bound of the bytes of each row in a batch."""
        first = self.events.first_cell
        cells = first[rows + 1] - first[rows]
        values = cells * (PER_CELL + _LONG) + self.ends[rows] - self.starts[rows]
        return np.asarray(values + PER_ROW + _GIVEN_ID)


@dataclass(slots=True)
class TableRows:
    """Rows of a block by table; the fields of each table, by number."""

    rows: np.ndarray
    ends: np.ndarray
    fields: list[np.ndarray]

    @classmethod
    def of(cls, block: CellBlock, rows: np.ndarray, scratch: np.ndarray) -> "TableRows":
        """Rows, sorted by table."""
        tables = block.table[rows]
        ends = np.append(np.flatnonzero(np.diff(tables)) + 1, len(rows)) if len(rows) else rows
        ends = ends.astype(np.int64)
        last = np.zeros(len(ends), np.int64)
        room = _CELLS_OF_A_TABLE * (len(ends) + 8)
        while True:
            found = np.empty(room, np.int32)
            first = block.events.first_cell
            count = find_fields(rows, ends, first, block.cells.field, scratch, found, last)
            if count <= room:
                break
            room = 2 * count
        fields = [np.sort(found[a:b]) for a, b in pairwise([0, *last.tolist()])]
        return cls(rows, ends, fields)


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """The compressed batches of a table with their original sizes, and the facts of each field."""

    data: list[tuple[bytes, int]]
    facts: np.ndarray


STROKE = 1 << 12  # rows written at once, or one table


class BatchWriter:
    """Writes the rows of blocks as batches, and reuses its memory."""

    def __init__(self) -> None:
        self._buffer = pa.allocate_buffer(1 << 20)
        self._local_of = np.full(MOST_FIELDS, NONE, np.int32)

    def scratch(self, fields: int) -> np.ndarray:
        """One entry per field, all NONE."""
        if len(self._local_of) < fields:
            self._local_of = np.full(fields, NONE, np.int32)
        return self._local_of

    def write(
        self,
        block: CellBlock,
        tables: TableRows,
        fields: Sequence[BatchFields],
        batches: Sequence[Sequence[int]],
        origins: Origins,
    ) -> Iterator[WrittenTable]:
        """The batches of each table; `ends` are the ends of their rows."""
        first, begin = 0, 0
        for table, end in enumerate(tables.ends.tolist()):
            if end - begin >= STROKE or table == len(tables.ends) - 1:
                of_rows = slice(begin, end)
                some = slice(first, table + 1)
                rows = tables.rows[of_rows]
                yield from self._stroke(
                    block,
                    rows,
                    tables.ends[some] - begin,
                    tables.fields[some],
                    fields[some],
                    [[at - begin for at in ends] for ends in batches[some]],
                    Origins(*(part[of_rows] for part in origins)),
                )
                first, begin = table + 1, end

    def _stroke(
        self,
        block: CellBlock,
        rows: np.ndarray,
        table_ends: np.ndarray,
        numbers: Sequence[np.ndarray],
        fields: Sequence[BatchFields],
        batches: Sequence[Sequence[int]],
        origins: Origins,
    ) -> Iterator[WrittenTable]:
        ends = np.array([end for of_table in batches for end in of_table], np.int64)
        room = np.add.reduceat(block.room(rows), np.append(0, ends[:-1])) + HEAD + 64 & ~63
        begins = np.cumsum(room) - room
        if self._buffer.size < (size := int(np.sum(room))):
            self._buffer = pa.allocate_buffer(size + size // 4)
        last_field = np.cumsum([len(some) for some in numbers])
        facts = np.zeros((int(last_field[-1]), FACTS), np.int64)
        facts[:, ROW] = len(block.table)
        rival = np.concatenate([some.rival for some in fields])
        sizes = np.zeros(len(ends), np.int64)
        write_batches(
            block.address, rows, ends, table_ends, block.events.first_cell, block.cells, origins,
            self._local_of, np.concatenate(numbers), last_field, rival,
            np.concatenate([some.spelled for some in fields]), int(np.max(rival, initial=0)),
            facts, begins, self._buffer.address, sizes,
        )  # fmt: skip
        spots = iter(zip(begins.tolist(), sizes.tolist(), strict=True))
        for of_table, (start, stop) in zip(
            batches, pairwise([0, *last_field.tolist()]), strict=True
        ):
            found = [next(spots) for _ in of_table]
            data = [(packed(self._buffer.slice(*spot)), spot[1]) for spot in found]
            yield WrittenTable(data, facts[start:stop])

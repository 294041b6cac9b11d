"""The two readers. The fast one parses the plain lines of a block with compiled code; the careful
one takes events that were parsed one by one. Both make the same cells.
"""

from array import array
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np

from eventlake.columnar.cells import ID, Cells, Events, new_cells, new_events, payloads_of
from eventlake.columnar.events import read_events
from eventlake.columnar.fields import NONE
from eventlake.columnar.line_blocks import LineBlock
from eventlake.columnar.memory import address
from eventlake.columnar.text import PADDING
from eventlake.columnar.values import (
    ARRAY,
    DATE,
    FALSE,
    HUGE,
    INTEGER,
    NUMBER,
    OVERFLOW,
    TEXT,
    TRUE,
)
from eventlake.load.cells import CellBlock
from eventlake.load.vocabulary import Vocabulary
from eventlake.rules.events import Event, leaves
from eventlake.rules.inference import Kind, Leaf, kind_of
from eventlake.settings.models import Limits

_encode = msgspec.json.Encoder().encode
_KINDS = {
    Kind.INT64: INTEGER,
    Kind.BIGINT_OVERFLOW: OVERFLOW,
    Kind.NUMBER: NUMBER,
    Kind.HUGE: HUGE,
    Kind.DATE: DATE,
    Kind.TEXT: TEXT,
    Kind.ARRAY: ARRAY,
}


class RowOrigin(NamedTuple):
    """The origin of an event and its envelope; table and name as numbers."""

    file: int
    line: int
    received: int
    table: int
    name: int


class CarefulReader:
    """Collects events until they are taken as a block."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._start()

    def _start(self) -> None:
        self._data = bytearray()
        self._cells = [array("i") for _ in Cells._fields]
        self._ids, self._first = array("i"), array("q", [0])
        self._starts, self._ends = array("q"), array("q")
        self._origins = [array("q") for _ in RowOrigin._fields]

    @property
    def size(self) -> int:
        """The bytes held, approximately."""
        return len(self._data) + 64 * len(self._ids)

    def add(self, event: Event, origin: RowOrigin, payload: bytes = b"") -> None:
        """Add an event, with its line if the payload is kept."""
        words, data = self._vocabulary, self._data
        self._starts.append(len(data))
        data += payload
        end = len(data)
        fields, kinds, starts, ends = self._cells
        for path, value in leaves(event):
            if path == _ID:
                self._ids.append(len(fields))
            fields.append(words.field(path))
            kinds.append(_kind(value))
            starts.append(len(data))
            data += value.encode() if type(value) is str else _encode(value)
            ends.append(len(data))
        self._ends.append(end if payload else len(data))
        self._first.append(len(fields))
        for numbers, number in zip(self._origins, origin, strict=True):
            numbers.append(number)

    def taken(self) -> CellBlock:
        """All events; the reader is empty afterwards."""
        data = np.frombuffer(bytes(self._data) + bytes(PADDING), np.uint8)
        field, kind, start, end = (np.array(part, np.int32) for part in self._cells)
        cells = Cells(field, kind.astype(np.uint8), start, end)
        file, line, received, table, name = (np.array(part, np.int64) for part in self._origins)
        events = new_events(len(file))
        events.plain[:] = True
        events.first_cell[:] = self._first
        events.envelope[:, ID] = self._ids
        events.name[:] = name
        events.received[:] = received
        words = self._vocabulary
        payloads_of(address(data), words.fields.path, words.stamps, cells, events)
        of_lines = np.array(self._starts, np.int64), np.array(self._ends, np.int64)
        origins = file.astype(np.int32), line.astype(np.int32), table.astype(np.int32)
        self._start()
        return CellBlock(data, *of_lines, *origins, events, cells)


_ID = ("messageId",)


def _kind(value: Leaf) -> int:
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return _KINDS[_kind_of_text(value) if type(value) is str else kind_of(value)]


_kind_of_text = lru_cache(10_000)(kind_of)


_BYTES_PER_CELL = 24  # initial size: a key and a value


class FastReader:
    """Parses blocks one by one."""

    def __init__(self, limits: Limits, vocabulary: Vocabulary) -> None:
        self._limits, self._vocabulary = limits, vocabulary
        self._serial = 0

    def read(self, lines: LineBlock) -> CellBlock:
        """Parse the plain lines of a block."""
        starts, ends = lines.starts(), lines.ends()
        files, numbers = lines.origins()
        # Positions of cells have 32 bits; only a line of gigabytes exceeds them.
        readable = len(starts) if lines.size < 2**31 else 0
        events, cells = self._events(lines.address, starts, ends, readable)
        names = np.where(events.plain, events.name, 0)
        table = np.where(events.plain, self._vocabulary.tables_of(names), NONE)
        table[ends - starts > self._limits.line_bytes] = NONE
        return CellBlock(lines.memory, starts, ends, files, numbers, table, events, cells)

    def _events(
        self, buf: int, starts: np.ndarray, ends: np.ndarray, readable: int
    ) -> tuple[Events, Cells]:
        size = int(ends[-1] - starts[0]) if len(ends) else 0
        events, cells = new_events(len(starts)), new_cells(size // _BYTES_PER_CELL + 1024)
        words, done = self._vocabulary, 0
        while True:
            done = read_events(
                buf, starts, ends, done, readable, self._limits.depth, words.fields, words.names,
                words.special, words.stamps, cells, events, self._serial,
            )  # fmt: skip
            if done == readable:
                break
            # The line that did not fit is parsed again, so its fields count as unseen.
            self._serial += len(starts)
            cells = Cells(*(np.concatenate([part, np.empty_like(part)]) for part in cells))
        self._serial += len(starts)
        return events, cells

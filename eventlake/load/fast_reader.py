"""The fast reader: parses the plain lines of a block with compiled code, table by table."""

from collections.abc import Iterator, Sequence

import numpy as np

from eventlake.columnar.events import (
    ENVELOPE,
    RECEIVED,
    Cells,
    Events,
    new_cells,
    new_events,
    numbers_of,
    read_events,
)
from eventlake.columnar.fields import MOST_FIELDS, NONE, Fields, new_fields, path_of
from eventlake.columnar.group_messages import RowOrigins
from eventlake.columnar.line_blocks import LineBlock
from eventlake.columnar.timestamps import UNREAD
from eventlake.load.blobs import HASH
from eventlake.load.careful_reader import STAMPS
from eventlake.load.columns import Block, columns_of
from eventlake.load.parts import Part, RareField
from eventlake.rules.dates import parse_timestamp
from eventlake.rules.events import EVENT_TYPES, Path
from eventlake.rules.names import Naming, table_name
from eventlake.settings.models import Limits

_CELLS_PER_LINE = 48  # to begin with
_ROWS_AT_ONCE = 1 << 12  # are made columns of: enough that what is done for each stroke is little
_NEARLY_FULL = MOST_FIELDS // 2


class PlainEvents:
    """Knows the fields and the names of events from one block to the next."""

    def __init__(self, limits: Limits, naming: Naming) -> None:
        self._limits = limits
        self._naming = naming
        self._serial = 0
        self._column_of = np.full(MOST_FIELDS, NONE, np.int32)
        self.tables: list[str] = []
        self._numbers: dict[str, int] = {}
        self._start()

    def _start(self) -> None:
        self._fields, self._names = new_fields(), new_fields()
        self._special = numbers_of(self._fields, ENVELOPE)
        self._stamps = numbers_of(self._fields, STAMPS)
        self._paths: dict[int, Path] = {}
        self._tables: list[int] = []  # by name: the number of the table

    def read(self, lines: LineBlock) -> Block:
        """Take apart what is plain among the lines of a block."""
        if max(_used(self._fields), _used(self._names)) > _NEARLY_FULL:
            self._start()
        starts, ends = lines.starts(), lines.ends()
        files, numbers = lines.origins()
        # Cells know their places as 32-bit numbers; only a line of gigabytes is beyond them.
        readable = len(starts) if lines.size < 2**31 else 0
        events, cells = self._events(lines.address, starts, ends, readable)
        table = self._table_of(events)
        self._read_other_moments(lines, events, cells, table)
        table[ends - starts > self._limits.line_bytes] = NONE
        return Block(lines, starts, ends, files, numbers, table, events, cells)

    def parts(
        self,
        block: Block,
        groups: Sequence[np.ndarray],
        keep_payloads: bool,
        lists: bool = True,
    ) -> Iterator[Part]:
        """Groups of plain rows, each of one table, as parts of their tables; without lists all of
        their fields have columns."""
        for together in _strokes(groups):
            yield from self._parts(block, together, keep_payloads, lists)

    def _parts(
        self, block: Block, groups: Sequence[np.ndarray], keep_payloads: bool, lists: bool
    ) -> Iterator[Part]:
        rows = np.concatenate(groups)
        ends = np.cumsum([len(group) for group in groups], dtype=np.int64)
        origins = block.origins(rows, keep_payloads)
        # Payloads are no values of fixed width.
        before = None if keep_payloads else RowOrigins.of(origins.drop_columns(HASH))
        columns = columns_of(block, rows, ends, self._column_of, _used(self._fields), lists, before)
        for group, found, end in zip(groups, columns, ends.tolist(), strict=True):
            first = int(group.min())
            at = block.files.item(first), block.numbers.item(first), 0
            yield Part(
                origins.slice(end - len(group), len(group)),
                {self._path(number): column for number, column in found.columns.items()},
                (at, self._original(block, first)),
                [RareField(self._path(rare[0]), *rare) for rare in found.rare],
                found.lists,
                found.message,
            )

    def _path(self, field: int) -> Path:
        path = self._paths.get(field)
        if path is None:
            path = self._paths[field] = path_of(self._fields, field)
        return path

    def _original(self, block: Block, row: int) -> str:
        """What the event of a row calls itself."""
        kind, *event = path_of(self._names, int(block.events.name[row]))
        return event[0] if kind == "track" else kind

    def _events(
        self, buf: int, starts: np.ndarray, ends: np.ndarray, readable: int
    ) -> tuple[Events, Cells]:
        events, cells = new_events(len(starts)), new_cells(_CELLS_PER_LINE * len(starts) + 1024)
        done = 0
        while True:
            done = read_events(
                buf, starts, ends, done, readable, self._limits.depth, self._fields, self._names,
                self._special, self._stamps, cells, events, self._serial,
            )  # fmt: skip
            if done == readable:
                break
            # The line that did not fit is read again, and its fields are new to it once more.
            self._serial += len(starts)
            cells = Cells(*(np.concatenate([part, np.empty_like(part)]) for part in cells))
        self._serial += len(starts)
        return events, cells

    def _table_of(self, events: Events) -> np.ndarray:
        for name in range(len(self._tables), _used(self._names)):
            self._tables.append(self._table_named(path_of(self._names, name)))
        known = np.array(self._tables, np.int32)
        return np.where(events.plain, known[np.where(events.plain, events.name, 0)], NONE)

    def _table_named(self, name: tuple[str, ...]) -> int:
        """The table of events of a type and, maybe, a name; NONE if only a careful look tells."""
        kind = name[0] if name else ""
        event = name[1] if len(name) > 1 else ""
        if kind not in EVENT_TYPES or (kind == "track" and (not event or event.isspace())):
            return NONE
        table = table_name(kind, event if kind == "track" else None, self._naming)
        if table not in self._numbers:
            self._numbers[table] = len(self.tables)
            self.tables.append(table)
        return self._numbers[table]

    def _read_other_moments(
        self, lines: LineBlock, events: Events, cells: Cells, table: np.ndarray
    ) -> None:
        """Times of receipt in forms that the kernel does not know."""
        for row in np.flatnonzero((events.received == UNREAD) & (table != NONE)).tolist():
            cell = events.envelope[row, RECEIVED]
            text = lines.text(int(cells.start[cell]), int(cells.end[cell])).decode()
            moment = parse_timestamp(text)
            if moment is None:
                table[row] = NONE
            else:
                events.received[row] = moment[0]


def _strokes(groups: Sequence[np.ndarray]) -> Iterator[Sequence[np.ndarray]]:
    """Neighbours among the groups, as many as have enough rows together."""
    first, rows = 0, 0
    for number, group in enumerate(groups):
        rows += len(group)
        if rows >= _ROWS_AT_ONCE or number == len(groups) - 1:
            yield groups[first : number + 1]
            first, rows = number + 1, 0


def _used(fields: Fields) -> int:
    return int(fields.used[0])


def warm_up() -> None:
    """Have the code of the kernel ready: from its cache or, the first time, by compiling it."""
    block = LineBlock(1024)
    block.begin(0, 0)
    block.add(b'{"type":"page","messageId":"m","receivedAt":"2026-10-01T07:00:00Z"}\n')
    events = PlainEvents(Limits(), Naming.NATIVE)
    read = events.read(block)
    list(events.parts(read, [np.flatnonzero(read.table != NONE)], keep_payloads=False))

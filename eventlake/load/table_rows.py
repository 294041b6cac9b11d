"""The rows of one table in a staging task, until they are sent as Arrow batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlake.columnar.kinds import Encoding, Kind
from eventlake.columnar.messages import body_size
from eventlake.load.blobs import (
    FILE,
    HASH,
    LINE,
    RECEIVED,
    RESCUED_LISTS,
    Blob,
    BlobKind,
    RareName,
    StagedField,
    StagedHead,
    joint_key,
    packed_message,
    rows_key,
)
from eventlake.load.careful_reader import Refused, TableColumns, payload_hash
from eventlake.load.encoding import encode
from eventlake.load.parts import Origins, Part, PartColumn, joined_parts
from eventlake.load.seen import (
    RawPosition,
    SeenColumn,
    SeenTable,
    heads,
    positions,
    split_positions,
)
from eventlake.load.stage_job import StageJob
from eventlake.rules.events import Event, Path, Reject, open_envelope
from eventlake.rules.names import pointer
from eventlake.rules.partitions import HOUR_US, DatePartition, partition_of


@dataclass(slots=True)
class Arrangement:
    """The rows of a table by partition, and within it in order of arrival."""

    first: RawPosition  # of all rows
    order: np.ndarray | None = None  # None: they are in this order already
    partitions: dict[str, slice] = field(default_factory=dict)


def arranged(
    origins: pa.RecordBatch, lengths: Sequence[int], layout: DatePartition
) -> list[Arrangement]:
    """The arrangements of some tables; `origins` are of all their rows, of which each has some."""
    ends = np.cumsum(lengths)
    starts = ends - np.array(lengths)
    table = np.repeat(np.arange(len(lengths)), lengths)
    where = positions(origins[FILE].to_numpy(), origins[LINE].to_numpy())
    names, codes = _partitions(origins[RECEIVED].to_numpy() // HOUR_US, layout)
    files, lines = split_positions(np.minimum.reduceat(where, starts))
    found = [Arrangement((*at, 0)) for at in zip(files.tolist(), lines.tolist(), strict=True)]
    for number in _out_of_order(table, codes, where):
        rows = slice(starts[number], ends[number])
        order = found[number].order = np.lexsort((where[rows], codes[rows]))
        codes[rows] = codes[rows][order]
    begin = heads(table, codes)
    at = zip(table[begin].tolist(), codes[begin].tolist(), strict=True)
    for (number, code), (start, end) in zip(at, pairwise([*begin, len(table)]), strict=True):
        rows = slice(int(start - starts[number]), int(end - starts[number]))
        found[number].partitions[names[code]] = rows
    return found


def _partitions(hours: np.ndarray, layout: DatePartition) -> tuple[list[str], np.ndarray]:
    """The names of all partitions in order, and of each row the number of its own."""
    begin = heads(hours)  # few, as rows of an hour come together
    different, of_head = np.unique(hours[begin], return_inverse=True)
    partitions = [partition_of(layout, hour * HOUR_US) for hour in different.tolist()]
    names = sorted(set(partitions))
    codes = np.array([names.index(partition) for partition in partitions])
    return names, np.repeat(codes[of_head], np.diff(begin, append=len(hours)))


def _out_of_order(table: np.ndarray, codes: np.ndarray, where: np.ndarray) -> list[int]:
    """The tables whose rows are not by partition and in order of arrival."""
    later = (codes[1:] > codes[:-1]) | ((codes[1:] == codes[:-1]) & (where[1:] > where[:-1]))
    within = table[1:] == table[:-1]
    numbers: list[int] = np.unique(table[1:][within & ~later]).tolist()
    return numbers


CHUNK = 512  # events read carefully that are taken apart at once
TOGETHER = 256 << 10  # bytes of rows whose partitions share a blob
_NO_KINDS: frozenset[Kind] = frozenset()


class CarefulRow(NamedTuple):
    """An event that was read one by one, and where it is from."""

    event: Event
    line: bytes
    file: int
    number: int
    received: int
    id: bytes


class RefusedRow(NamedTuple):
    """A row that could not be taken in."""

    file: int
    number: int
    received: int
    why: Reject


@dataclass(frozen=True, slots=True)
class Taken:
    """File and time of receipt of the rows that were taken in, and the rows that were refused."""

    files: np.ndarray
    received: np.ndarray
    refused: list[RefusedRow]


class TableRows:
    """Rows of one table, in parts: of events that were plain, and of those read carefully."""

    def __init__(self, job: StageJob, table: str) -> None:
        self.table = table
        self._columns = TableColumns(
            job.naming, job.date_partition.keys, job.limits, job.known_columns(table)
        )
        self._keep_payloads, self._joint = job.keep_payloads, job.joint
        self._waiting: list[CarefulRow] = []
        self._start()

    def _start(self) -> None:
        self._rows = 0
        self._parts: list[Part] = []
        self._rescued: dict[int, list[str]] = {}

    def __len__(self) -> int:
        """Rows that were taken in; those that wait are not among them."""
        return self._rows

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def add(self, row: CarefulRow) -> bool:
        """Take a row in, if not at once; whether it is time to settle."""
        self._waiting.append(row)
        return len(self._waiting) >= CHUNK

    def settle(self) -> Taken:
        """Take apart all rows that wait; there should be some."""
        part, self._waiting = self._waiting, []
        refused: list[RefusedRow] = []
        taken = self._columns.take_apart([row.event for row in part])
        if isinstance(taken, Refused):
            for at, why in taken.rows.items():
                refused.append(RefusedRow(part[at].file, part[at].number, part[at].received, why))
            part = [row for at, row in enumerate(part) if at not in taken.rows]
            taken = self._columns.take_apart([row.event for row in part])
        if not part or isinstance(taken, Refused):
            return Taken(np.empty(0, np.int32), np.empty(0, np.int64), refused)
        for row, members in taken.rescued.items():
            self._rescued[self._rows + row] = members
        origins = Origins(
            [row.file for row in part],
            [row.number for row in part],
            [row.id for row in part],
            [row.received for row in part],
            [payload_hash(row.event) for row in part],
            [row.line for row in part] if self._keep_payloads else None,
        )
        columns: dict[Path, PartColumn] = {}
        for path, values in taken.values.items():
            encoding, array = encode(values)
            row_of, order = taken.first[path]
            first = part[row_of].file, part[row_of].number, order
            columns[path] = PartColumn(encoding, [array], 0, first)
        envelope = open_envelope(part[0].event)
        called = (part[0].file, part[0].number, 0), envelope.event or envelope.type
        self.take(Part(origins.batch(), columns, called))
        return Taken(np.array(origins.files), np.array(origins.received), refused)

    def may_take(self, part: Part) -> np.ndarray | None:
        """The rows of a part that have to be read carefully; None says all of them."""
        if not self._columns.have_room(part.columns):
            return None
        return self._columns.contested(part.columns, len(part))

    def may_list(self, part: Part) -> bool:
        """Whether the rare fields of a part can do without columns."""
        return self._columns.stand_alone([rare.path for rare in part.rare], part.columns)

    def take(self, part: Part) -> None:
        """Take in rows that are in columns, and settled."""
        self._parts.append(part)
        self._rows += len(part)

    @property
    def origins(self) -> Sequence[pa.RecordBatch]:
        """Where the rows are from."""
        return [part.origins for part in self._parts]

    def flush(self, task: int, arranged: Arrangement) -> Iterator[SeenTable | Blob]:
        """What was gathered: an account of it, and a blob per partition."""
        part = joined_parts(self._parts)
        head, seen = self._told(part)
        account = SeenTable(self.table, part.called[1], arranged.first, seen)
        account.rows = {name: r.stop - r.start for name, r in arranged.partitions.items()}
        message = self._message(part, head, arranged.order)
        several = len(account.rows) > 1
        if not several or (self._joint and message.size <= TOGETHER):
            size = body_size(message)
            account.bytes = {n: size * rows // len(part) for n, rows in account.rows.items()}
            key = (
                joint_key(self.table, account.rows)
                if several
                else rows_key(self.table, *account.rows)
            )
            data = packed_message(head.encode(), message)
            yield Blob(BlobKind.ROWS, key, task, len(part), data)
        else:
            staged, told = pa.ipc.read_record_batch(message, head.schema()), head.encode()
            for name, rows in arranged.partitions.items():
                message = staged.slice(rows.start, account.rows[name]).serialize()
                account.bytes[name] = body_size(message)
                key, data = rows_key(self.table, name), packed_message(told, message)
                yield Blob(BlobKind.ROWS, key, task, account.rows[name], data)
        yield account
        self._start()

    def _message(self, part: Part, head: StagedHead, order: np.ndarray | None) -> pa.Buffer:
        """The rows as they are staged."""
        if part.message is not None and not self._rescued:
            if order is None:
                return part.message
            staged = pa.ipc.read_record_batch(part.message, head.schema())
        else:
            arrays = [part.origins[name] for name in part.origins.schema.names if name != HASH]
            if self._rescued:
                rescued = map(self._rescued.get, range(self._rows))
                arrays.append(pa.array(rescued, RESCUED_LISTS.type))
            arrays += [column.array for column in part.columns.values()]
            arrays += part.lists.values()
            staged = pa.RecordBatch.from_arrays(arrays, schema=head.schema())
        return (staged if order is None else staged.take(pa.array(order))).serialize()

    def _told(self, part: Part) -> tuple[StagedHead, list[SeenColumn]]:
        """The columns of the rows as they are staged, and what there is to tell of their fields."""
        fields: list[StagedField] = []
        seen: dict[str, SeenColumn] = {}
        for path, column in part.columns.items():
            at, name = pointer(path), self._columns.column(path) or ""
            fields.append(StagedField(at, name, column.encoding))
            # Columns that the lake has got have their types.
            kinds = column.kinds() if self._columns.is_new(name) else _NO_KINDS
            seen[at] = SeenColumn(at, name, column.first, kinds)
        names: dict[Encoding, list[RareName]] = {encoding: [] for encoding in part.lists}
        for rare in part.rare:
            at, name = pointer(rare.path), self._columns.column(rare.path) or ""
            names[rare.encoding].append(RareName(rare.number, at, name))
            kinds = rare.kinds if self._columns.is_new(name) else _NO_KINDS
            found = SeenColumn(at, name, rare.first, kinds)
            seen[at] = seen[at].joined(found) if at in seen else found
        head = StagedHead(self._keep_payloads, bool(self._rescued), fields, names)
        return head, list(seen.values())

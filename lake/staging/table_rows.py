"""The rows a task has gathered for one table, until they leave it as Arrow batches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lake.casting.encoding import Encoding, encode, joined, kinds_of
from lake.dedup.payloads import payload_hash
from lake.envelope import open_envelope
from lake.kinds import Kind
from lake.names import pointer
from lake.rejects import Reject
from lake.staging.blob import Blob, BlobKind, to_ipc
from lake.staging.hours import HOUR_US, partition_of
from lake.staging.job import StageJob
from lake.staging.leaves import Event, Path
from lake.staging.places import places, split_places
from lake.staging.rows_blob import FILE, HASH, ID, LINE, PAYLOAD, RECEIVED, RESCUED, rows_key
from lake.staging.seen import Place, SeenColumn, SeenTable
from lake.staging.table_columns import Refused, TableColumns

CHUNK = 512  # events read carefully that are taken apart at once


@dataclass(slots=True)
class Origins:
    """Where rows are from, with their ids, and the hashes of their payloads or all of them."""

    files: Sequence[int] | np.ndarray
    numbers: Sequence[int] | np.ndarray
    ids: Sequence[bytes] | pa.Array
    received: Sequence[int] | np.ndarray
    hashes: Sequence[int] | np.ndarray
    payloads: Sequence[bytes] | None = None

    def table(self) -> pa.Table:
        columns = {
            FILE: pa.array(self.files, pa.int32()),
            LINE: pa.array(self.numbers, pa.int32()),
            ID: pa.array(self.ids, pa.binary(16)),
            RECEIVED: pa.array(self.received, pa.int64()),
            HASH: pa.array(self.hashes, pa.uint32()),
        }
        if self.payloads is not None:
            columns[PAYLOAD] = pa.array(self.payloads, pa.binary()).cast(pa.string())
        return pa.table(columns)


class PartColumn(NamedTuple):
    """A field over all rows of a part: its values, where it is first, and what it has seen."""

    encoding: Encoding
    array: pa.Array
    first: Place
    kinds: Callable[[], set[Kind]]


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a table, and what the first of them calls itself."""

    origins: pa.Table
    columns: Mapping[Path, PartColumn]
    called: tuple[Place, str]


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
        self._layout = job.date_partition
        self._columns = TableColumns(
            job.naming, job.date_partition.keys, job.limits, job.known_columns(table)
        )
        self._keep_payloads = job.keep_payloads
        self._waiting: list[CarefulRow] = []
        self._first: dict[Path, Place] = {}
        self._fields: dict[tuple[Path, Encoding], tuple[pa.Field, str]] = {}
        self._original: tuple[Place, str] | None = None
        self._start()

    def _start(self) -> None:
        self._rows = 0
        self._origins: list[pa.Table] = []  # of each part: where its rows are from
        self._cells: dict[Path, dict[int, tuple[Encoding, pa.Array]]] = {}  # by number of part
        self._kinds: dict[Path, set[Kind]] = {}
        self._rescued: dict[int, list[str]] = {}

    def __len__(self) -> int:
        """Rows that were taken in; those that wait are not among them."""
        return self._rows

    def add(self, row: CarefulRow) -> bool:
        """Take a row in, if not at once; whether it is time to settle."""
        self._waiting.append(row)
        return len(self._waiting) >= CHUNK

    def settle(self) -> Taken:
        """Take apart all rows that wait."""
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
            row_of, place = taken.first[path]
            first = part[row_of].file, part[row_of].number, place
            columns[path] = PartColumn(encoding, array, first, partial(kinds_of, encoding, array))
        envelope = open_envelope(part[0].event)
        called = (part[0].file, part[0].number, 0), envelope.event or envelope.type
        self.take(Part(origins.table(), columns, called))
        return Taken(np.array(origins.files), np.array(origins.received), refused)

    def may_take(self, cells: Mapping[Path, pa.Array]) -> np.ndarray | None:
        """The rows of these columns that have to be read carefully; None says all of them."""
        return self._columns.contested(cells) if self._columns.have_room(cells) else None

    def take(self, part: Part) -> None:
        """Take in rows that are in columns, and settled."""
        self._original = min(self._original or part.called, part.called)
        for path, column in part.columns.items():
            self._first[path] = min(self._first.get(path, column.first), column.first)
            self._cells.setdefault(path, {})[len(self._origins)] = column.encoding, column.array
            if self._columns.is_new(path):  # the others have their types
                self._kinds.setdefault(path, set()).update(column.kinds())
        self._origins.append(part.origins)
        self._rows += len(part.origins)

    def ids(self) -> pa.Table:
        """The message ids of the rows, with all that is needed to compare them."""
        origins = pa.concat_tables(self._origins)
        table = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(self._rows, np.int32)), pa.array([self.table])
        )
        named = {"id": ID, "received": RECEIVED, "file": FILE, "line": LINE, "payload": HASH}
        return pa.table({name: origins[at] for name, at in named.items()} | {"table": table})

    def flush(self, task: int) -> Iterator[SeenTable | Blob]:
        """What was gathered: an account of it, and a blob per partition."""
        origins = pa.concat_tables(self._origins)
        hours, codes = np.unique(origins[RECEIVED].to_numpy() // HOUR_US, return_inverse=True)
        partitions = [partition_of(self._layout, int(hour) * HOUR_US) for hour in hours]
        names, of_hour = np.unique(np.array(partitions, dtype=object), return_inverse=True)
        codes = of_hour[codes]
        where = places(origins[FILE].to_numpy(), origins[LINE].to_numpy())
        order = np.lexsort((where, codes))  # within a partition, in order of arrival
        staged, seen = self._table(origins.drop_columns(HASH))
        if np.any(order[:-1] > order[1:]):
            staged = staged.take(pa.array(order))
        starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
        [file], [line] = split_places(where[[np.argmin(where)]])
        original = self._original[1] if self._original else ""
        account = SeenTable(self.table, original, (int(file), int(line), 0), seen)
        size = staged.nbytes
        for name, start, end in zip(names, starts[:-1], starts[1:], strict=True):
            part = staged.slice(start, end - start)
            data = to_ipc(part)
            account.rows[name] = int(end - start)
            account.bytes[name] = size * int(end - start) // len(staged)
            key = rows_key(self.table, name)
            yield Blob(BlobKind.ROWS, key, task, int(end - start), data)
        yield account
        self._start()

    def _table(self, origins: pa.Table) -> tuple[pa.Table, list[SeenColumn]]:
        arrays: list[pa.Array | pa.ChunkedArray] = [*origins.columns]
        fields: list[pa.Field] = [*origins.schema]
        if self._rescued:
            rescued = [self._rescued.get(row) for row in range(self._rows)]
            arrays.append(pa.array(rescued, pa.list_(pa.string())))
            fields.append(pa.field(RESCUED, arrays[-1].type))
        seen: list[SeenColumn] = []
        for path in sorted(self._cells, key=self._first.__getitem__):
            encoding, array = self._column(path)
            if (path, encoding) not in self._fields:
                self._fields[path, encoding] = self._field(path, encoding, array.type)
            field, column = self._fields[path, encoding]
            arrays.append(array)
            fields.append(field)
            kinds = self._kinds.get(path, set())
            seen.append(SeenColumn(field.name, column, self._first[path], kinds))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), seen

    def _field(self, path: Path, encoding: Encoding, type_: pa.DataType) -> tuple[pa.Field, str]:
        column = self._columns.column(path) or ""
        metadata = {"column": column, "as": encoding}
        return pa.field(pointer(path), type_, metadata=metadata), column

    def _column(self, path: Path) -> tuple[Encoding, pa.Array]:
        """A field over all rows, whichever parts have it."""
        found = self._cells[path]
        encoding, array = joined(list(found.values()))
        if len(found) == len(self._origins):
            return encoding, array
        pieces, at = [], 0
        for number, origins in enumerate(self._origins):
            length = len(origins)
            if number in found:
                pieces.append(array.slice(at, length))
                at += length
            else:
                pieces.append(pa.nulls(length, array.type))
        return encoding, pa.concat_arrays(pieces)

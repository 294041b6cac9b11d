"""The rows a task has gathered for one table, until they leave it as Arrow batches."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lake.casting.encoding import Encoding, encode, joined, kinds_of
from lake.envelope import open_envelope
from lake.kinds import Kind
from lake.names import pointer
from lake.partitions import DatePartition
from lake.rejects import Reject
from lake.staging.blob import Blob, BlobKind, to_ipc
from lake.staging.hours import HOUR_US, partition_of
from lake.staging.leaves import Path
from lake.staging.seen import Place, SeenColumn, SeenTable
from lake.staging.table_columns import Refused, TableColumns

FILE, LINE, ID, RECEIVED = "#file", "#line", "#id", "#received"
RESCUED, PAYLOAD, HASH = "#rescued", "#payload", "#hash"
"""Columns that accompany staged rows; field names of events always begin with a slash."""

CHUNK = 512  # lines taken apart at once: many for Arrow, few enough for the processor's cache


def rows_key(table: str, partition: str) -> str:
    return f"{table}\n{partition}"


def split_key(key: str) -> tuple[str, str]:
    table, partition = key.split("\n")
    return table, partition


@dataclass(slots=True)
class _Lines:
    """Lines that wait to be taken apart, and where each is from."""

    lines: list[bytes] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    ids: list[bytes] = field(default_factory=list)
    given: dict[int, str] = field(default_factory=dict)

    def origins(self, hashes: list[int], keep_payloads: bool) -> pa.Table:
        """Where each row is from, with its id and the hash of its payload, or all of it."""
        columns = {
            FILE: pa.array(self.files, pa.int32()),
            LINE: pa.array(self.numbers, pa.int32()),
            ID: pa.array(self.ids, pa.binary(16)),
            RECEIVED: pa.array(self.received, pa.int64()),
            HASH: pa.array(hashes, pa.uint32()),
        }
        if keep_payloads:
            columns[PAYLOAD] = pa.array(self.lines, pa.binary()).cast(pa.string())
        return pa.table(columns)

    def without(self, rows: set[int]) -> "_Lines":
        kept = [row for row in range(len(self.lines)) if row not in rows]
        return _Lines(
            [self.lines[row] for row in kept],
            [self.files[row] for row in kept],
            [self.numbers[row] for row in kept],
            [self.received[row] for row in kept],
            [self.ids[row] for row in kept],
            {new: self.given[old] for new, old in enumerate(kept) if old in self.given},
        )


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
    """Rows of one table in order of arrival."""

    def __init__(
        self, table: str, columns: TableColumns, layout: DatePartition, keep_payloads: bool
    ) -> None:
        self.table = table
        self._columns = columns
        self._layout = layout
        self._keep_payloads = keep_payloads
        self._waiting = _Lines()
        self._first: dict[Path, Place] = {}
        self._original: str | None = None
        self._start()

    def _start(self) -> None:
        self._rows = 0
        self._origins: list[pa.Table] = []  # of each part: where its rows are from
        self._cells: dict[Path, dict[int, tuple[Encoding, pa.Array]]] = {}  # by number of part
        self._kinds: dict[Path, set[Kind]] = {}
        self._rescued: dict[int, list[str]] = {}

    def __len__(self) -> int:
        """Rows that were taken in; lines that wait are not among them."""
        return self._rows

    def add(
        self, line: bytes, file: int, number: int, received: int, id: bytes, given: str | None
    ) -> bool:
        """Take a line in, if not at once; whether it is time to settle."""
        waiting = self._waiting
        if given is not None:
            waiting.given[len(waiting.lines)] = given
        waiting.lines.append(line)
        waiting.files.append(file)
        waiting.numbers.append(number)
        waiting.received.append(received)
        waiting.ids.append(id)
        return len(waiting.lines) >= CHUNK

    def settle(self) -> Taken:
        """Take apart all lines that wait."""
        part, self._waiting = self._waiting, _Lines()
        refused: list[RefusedRow] = []
        while part.lines:
            taken = self._columns.take_apart(part.lines, part.given)
            if not isinstance(taken, Refused):
                break
            refused += [
                RefusedRow(part.files[row], part.numbers[row], part.received[row], why)
                for row, why in taken.rows.items()
            ]
            part = part.without(set(taken.rows))
        else:
            return Taken(np.empty(0, np.int32), np.empty(0, np.int64), refused)
        if self._original is None:
            envelope = open_envelope(self._columns.event(part.lines[0]))
            self._original = envelope.event or envelope.type
        for path, (row, place) in taken.discovered.items():
            self._first[path] = part.files[row], part.numbers[row], place
        for path, values in taken.values.items():
            encoding, array = encode(values)
            self._cells.setdefault(path, {})[len(self._origins)] = encoding, array
            if self._columns.is_new(path):  # the others have their types
                kinds = kinds_of(values, encoding, array)
                self._kinds.setdefault(path, set()).update(kinds)
        for row, members in taken.rescued.items():
            self._rescued[self._rows + row] = members
        origins = part.origins(taken.payload_hashes, self._keep_payloads)
        self._origins.append(origins)
        self._rows += len(origins)
        return Taken(origins[FILE].to_numpy(), origins[RECEIVED].to_numpy(), refused)

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
        in_order = bool(np.all(codes[:-1] <= codes[1:]))
        order = np.argsort(codes, kind="stable")
        staged, seen = self._table(origins.drop_columns(HASH))
        if not in_order:
            staged = staged.take(pa.array(order))
        starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
        first = origins[FILE][0].as_py(), origins[LINE][0].as_py(), 0
        account = SeenTable(self.table, self._original or "", first, seen)
        for name, start, end in zip(names, starts[:-1], starts[1:], strict=True):
            part = staged.slice(start, end - start)
            data = to_ipc(part)
            account.rows[name] = int(end - start)
            account.bytes[name] = part.nbytes
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
            column, at = self._columns.column(path) or "", pointer(path)
            arrays.append(array)
            metadata = {"column": column, "as": encoding}
            fields.append(pa.field(at, array.type, metadata=metadata))
            seen.append(SeenColumn(at, column, self._first[path], self._kinds.get(path, set())))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), seen

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

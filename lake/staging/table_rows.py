"""The rows a task has gathered for one table, until they leave it as Arrow batches."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lake.casting.encoding import ARROW_TYPES, Encoding, encode, joined
from lake.dedup.payloads import payload_hash
from lake.envelope import open_envelope
from lake.kinds import Kind
from lake.names import pointer
from lake.rejects import Reject
from lake.staging.arrangement import Arrangement
from lake.staging.blob import Blob, BlobKind, batch_packer
from lake.staging.job import StageJob
from lake.staging.leaves import Event, Path
from lake.staging.parts import Origins, Part, PartColumn
from lake.staging.rows_blob import (
    HASH,
    RARE,
    RESCUED,
    RareName,
    StagedField,
    fields_metadata,
    joint_key,
    rare_metadata,
    rows_key,
)
from lake.staging.seen import Place, SeenColumn, SeenTable
from lake.staging.table_columns import Refused, TableColumns

CHUNK = 512  # events read carefully that are taken apart at once
TOGETHER = 256 << 10  # bytes of rows whose partitions share a blob


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
        self._first: dict[Path, Place] = {}
        self._original: tuple[Place, str] | None = None
        self._start()

    def _start(self) -> None:
        self._rows = 0
        self._origins: list[pa.RecordBatch] = []  # of each part: where its rows are from
        self._cells: dict[Path, dict[int, tuple[Encoding, pa.Array]]] = {}  # by number of part
        self._rare: dict[Encoding, dict[int, Path]] = {}  # by number of the field
        self._lists: dict[Encoding, dict[int, pa.Array]] = {}  # by number of part
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
            columns[path] = PartColumn(encoding, array, first)
        envelope = open_envelope(part[0].event)
        called = (part[0].file, part[0].number, 0), envelope.event or envelope.type
        self.take(Part(origins.batch(), columns, called))
        return Taken(np.array(origins.files), np.array(origins.received), refused)

    def may_take(self, part: Part) -> np.ndarray | None:
        """The rows of a part that have to be read carefully; None says all of them."""
        if not self._columns.have_room(part.columns):
            return None
        arrays = {path: found.array for path, found in part.columns.items()}
        return self._columns.contested(arrays, len(part.origins))

    def may_list(self, part: Part) -> bool:
        """Whether the rare fields of a part can do without columns."""
        return self._columns.stand_alone(part.rare, part.columns)

    def take(self, part: Part) -> None:
        """Take in rows that are in columns, and settled."""
        self._original = min(self._original or part.called, part.called)
        number = len(self._origins)
        for path, column in part.columns.items():
            self._first[path] = min(self._first.get(path, column.first), column.first)
            self._cells.setdefault(path, {})[number] = column.encoding, column.array
            if self._columns.is_new(path):  # the others have their types
                self._kinds.setdefault(path, set()).update(column.kinds())
        for path, (rare, encoding, at, kinds) in part.rare.items():
            self._first[path] = min(self._first.get(path, at), at)
            self._rare.setdefault(encoding, {})[rare] = path
            if self._columns.is_new(path):
                self._kinds.setdefault(path, set()).update(kinds)
        for encoding, array in part.lists.items():
            self._lists.setdefault(encoding, {})[number] = array
        self._origins.append(part.origins)
        self._rows += len(part.origins)

    @property
    def origins(self) -> Sequence[pa.RecordBatch]:
        """Where the rows are from."""
        return self._origins

    def flush(self, task: int, arranged: Arrangement) -> Iterator[SeenTable | Blob]:
        """What was gathered: an account of it, and a blob per partition."""
        staged, seen = self._batch()
        if arranged.order is not None:
            staged = staged.take(pa.array(arranged.order))
        original = self._original[1] if self._original else ""
        account = SeenTable(self.table, original, arranged.first, seen)
        account.rows = {name: r.stop - r.start for name, r in arranged.partitions.items()}
        pack = batch_packer(staged.schema)
        several = self._joint and len(account.rows) > 1
        if several and pa.ipc.get_record_batch_size(staged) <= TOGETHER:
            key = joint_key(self.table, account.rows)
            data, size = pack(staged)
            account.bytes = {n: size * rows // len(staged) for n, rows in account.rows.items()}
            yield Blob(BlobKind.ROWS, key, task, len(staged), data)
        else:
            for name, rows in arranged.partitions.items():
                count = account.rows[name]
                data, account.bytes[name] = pack(staged.slice(rows.start, count))
                yield Blob(BlobKind.ROWS, rows_key(self.table, name), task, count, data)
        yield account
        self._start()

    def _batch(self) -> tuple[pa.RecordBatch, list[SeenColumn]]:
        """All rows as they are staged, and what there is to tell of their fields."""
        origins = pa.concat_batches(self._origins) if len(self._origins) > 1 else self._origins[0]
        kept = [field.name for field in origins.schema if field.name != HASH]
        arrays: list[pa.Array] = [origins[name] for name in kept]
        fields: list[pa.Field] = [origins.schema.field(name) for name in kept]
        if self._rescued:
            rescued = [self._rescued.get(row) for row in range(self._rows)]
            arrays.append(pa.array(rescued, pa.list_(pa.string())))
            fields.append(pa.field(RESCUED, arrays[-1].type))
        told: list[StagedField] = []
        for path in sorted(self._cells, key=self._first.__getitem__):
            found = self._cells[path]
            encoding, array = joined(list(found.values()))
            arrays.append(self._over_all(array, found))
            at = pointer(path)
            fields.append(_arrow_field(at, encoding))
            told.append(StagedField(at, self._columns.column(path) or "", encoding))
        for encoding, lists in self._lists.items():
            arrays.append(self._over_all(pa.concat_arrays(lists.values()), lists))
            names = [
                RareName(number, pointer(path), self._columns.column(path) or "")
                for number, path in self._rare[encoding].items()
            ]
            name = f"{RARE}{encoding}"
            fields.append(pa.field(name, arrays[-1].type, metadata=rare_metadata(names)))
        rare = (path for paths in self._rare.values() for path in paths.values())
        seen = [self._seen(path) for path in {**self._cells, **dict.fromkeys(rare)}]
        schema = pa.schema(fields, fields_metadata(told))
        return pa.RecordBatch.from_arrays(arrays, schema=schema), seen

    def _seen(self, path: Path) -> SeenColumn:
        column, kinds = self._columns.column(path) or "", self._kinds.get(path, set())
        return SeenColumn(pointer(path), column, self._first[path], kinds)

    def _over_all(self, array: pa.Array, parts: Container[int]) -> pa.Array:
        """An array of all rows from one of the rows of some parts."""
        if len(array) == self._rows:
            return array
        pieces, at = [], 0
        for number, origins in enumerate(self._origins):
            length = len(origins)
            if number in parts:
                pieces.append(array.slice(at, length))
                at += length
            else:
                pieces.append(pa.nulls(length, array.type))
        return pa.concat_arrays(pieces)


@lru_cache(1 << 16)  # most tables have fields of the same names
def _arrow_field(pointer: str, encoding: Encoding) -> pa.Field:
    return pa.field(pointer, ARROW_TYPES[encoding])

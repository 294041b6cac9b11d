"""The rows a task has gathered for one table, until they leave it as Arrow batches."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from lake.casting.encoding import encode
from lake.dedup.payloads import payload_hash
from lake.envelope import Envelope
from lake.names import pointer
from lake.staging.blob import Blob, BlobKind, to_ipc
from lake.staging.fields import Event, Fields, rescued_members
from lake.staging.seen import SeenColumn, SeenTable

FILE, LINE, ID, RECEIVED = "#file", "#line", "#id", "#received"
RESCUED, PAYLOAD = "#rescued", "#payload"
"""Columns that accompany staged rows; field names of events always begin with a slash."""


def rows_key(table: str, partition: str) -> str:
    return f"{table}\n{partition}"


def split_key(key: str) -> tuple[str, str]:
    table, partition = key.split("\n")
    return table, partition


class TableRows:
    """Rows of one table in order of arrival."""

    def __init__(self, table: str, fields: Fields) -> None:
        self.table = table
        self._fields = fields
        self._start()

    def _start(self) -> None:
        self.files: list[int] = []
        self.lines: list[int] = []
        self.ids: list[bytes] = []
        self.received: list[int] = []
        self.payload_hashes: list[int] = []
        self._partitions: list[str] = []
        self._rescued: dict[int, list[str]] = {}
        self._payloads: list[bytes] = []
        self._original: str | None = None

    def __len__(self) -> int:
        return len(self.files)

    @property
    def width(self) -> int:
        return self._fields.width

    def columns_with(self, event: Event) -> frozenset[str]:
        """The columns of the rows gathered, were this event one of them."""
        return self._fields.columns_with(event)

    def add(
        self,
        event: Event,
        envelope: Envelope,
        file: int,
        line: int,
        partition: str,
        id: bytes,
        payload: bytes | None = None,
    ) -> None:
        """Take in an event as the next row; its payload only if the record log wants all."""
        row = len(self.files)
        if (homeless := self._fields.add(event, row)) is not None:
            self._rescued[row] = rescued_members(homeless)
        self.files.append(file)
        self.lines.append(line)
        self.ids.append(id)
        self.received.append(envelope.received_at)
        self.payload_hashes.append(payload_hash(event))
        self._partitions.append(partition)
        if payload is not None:
            self._payloads.append(payload)
        if self._original is None:
            self._original = envelope.event or envelope.type

    def flush(self, task: int) -> Iterator[SeenTable | Blob]:
        """What was gathered: an account of it, and a blob per partition."""
        names, codes = np.unique(np.array(self._partitions, dtype=object), return_inverse=True)
        order = np.argsort(codes, kind="stable")
        columns, seen = self._columns(order)
        staged = pa.table(columns)
        starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
        account = SeenTable(
            self.table, self._original or "", (self.files[0], self.lines[0], 0), seen
        )
        for name, start, end in zip(names, starts[:-1], starts[1:], strict=True):
            data = to_ipc(staged.slice(start, end - start))
            account.rows[name] = int(end - start)
            account.bytes[name] = len(data)
            key = rows_key(self.table, name)
            yield Blob(BlobKind.ROWS, key, task, int(end - start), data)
        yield account
        self._fields.clear()
        self._start()

    def _columns(self, order: np.ndarray) -> tuple[dict[Any, Any], list[SeenColumn]]:
        arrays: list[pa.Array] = [
            pa.array(np.array(self.files, dtype=np.int32)[order]),
            pa.array(np.array(self.lines, dtype=np.int32)[order]),
            pa.array(self.ids, pa.binary(16)).take(pa.array(order)),
            pa.array(np.array(self.received, dtype=np.int64)[order]),
        ]
        fields = [
            pa.field(name, array.type)
            for name, array in zip((FILE, LINE, ID, RECEIVED), arrays, strict=True)
        ]
        if self._rescued:
            rescued = pa.array(self._rescued.values(), pa.list_(pa.string()))
            arrays.append(_spread(rescued, list(self._rescued), order))
            fields.append(pa.field(RESCUED, rescued.type))
        if self._payloads:
            payloads = pa.array(self._payloads, pa.binary()).cast(pa.string())
            arrays.append(payloads.take(pa.array(order)))
            fields.append(pa.field(PAYLOAD, pa.string()))
        seen: list[SeenColumn] = []
        for field in self._fields.columns():
            encoding, array, kinds = encode(field.cells)
            at = pointer(field.path)
            arrays.append(_spread(array, field.rows, order))
            fields.append(
                pa.field(at, array.type, metadata={"column": field.column, "as": encoding})
            )
            first = (self.files[field.rows[0]], self.lines[field.rows[0]], field.first or 0)
            seen.append(SeenColumn(at, field.column or "", first, kinds))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), seen


def _spread(array: pa.Array, rows: list[int], order: np.ndarray) -> pa.Array:
    """Values that belong to some rows as a column over all rows, in the given order of rows."""
    if len(rows) == len(order):
        return array.take(pa.array(order))
    positions = np.full(len(order), -1, dtype=np.int64)
    positions[rows] = np.arange(len(rows))
    positions = positions[order]
    return array.take(pa.array(positions, mask=positions < 0))

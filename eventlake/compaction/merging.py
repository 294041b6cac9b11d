"""The rows of several files, in the order of time, a bounded number at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.columnar.parquet.data_file import ROW_GROUP

MOST_BYTES = 128 << 20
"""Of row groups that are read from at the same time, as they are without compression; in memory
they take about four times as much."""

_LEAST = 1024
"""Rows that are read of a file at once, however many files there are."""
_UNKNOWN = -(2**63)


@dataclass
class _Rows:
    """A file that is read on and on: its next rows, and when these were received."""

    batches: Iterator[pa.RecordBatch]
    schema: pa.Schema
    received_column: str
    rows: pa.Table = field(init=False)
    received: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.advance()

    def advance(self) -> None:
        """To the next rows; none are left at the end of the file."""
        batch = next((batch for batch in self.batches if len(batch)), None)
        self.rows = self.schema.empty_table() if batch is None else filled(batch, self.schema)
        received = self.rows[self.received_column].cast(pa.int64())
        self.received = received.combine_chunks().to_numpy()

    def take(self, count: int) -> tuple[pa.Table, np.ndarray]:
        """The first of these rows; what is left comes next."""
        taken = self.rows[:count], self.received[:count]
        if count == len(self.rows):
            self.advance()
        else:
            self.rows, self.received = self.rows[count:], self.received[count:]
        return taken


def filled(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """The same rows with all columns of a table; those that came later are null."""
    known = set(batch.schema.names)
    columns = [
        batch[field.name] if field.name in known else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class _Input:
    """A file that is not read yet: the earliest time in it, and what reading it keeps in memory."""

    file: pq.ParquetFile
    first: int
    bytes: int

    @classmethod
    def of(cls, file: pq.ParquetFile, received_column: str) -> "_Input":
        groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
        column = file.schema_arrow.get_field_index(received_column)
        told = [group.column(column).statistics for group in groups]
        known = all(one is not None and one.has_min_max for one in told)
        first = min((one.min_raw for one in told), default=0) if known else _UNKNOWN
        return cls(file, first, max((group.total_byte_size for group in groups), default=0))


def merged(
    files: Sequence[pq.ParquetFile], schema: pa.Schema, received_column: str
) -> Iterator[pa.Table]:
    """All rows of files that are, each of them, in order; rows of one moment as the files begin.

    A file is read from when its time has come. Where so many overlap that they would take too much
    memory, some wait, and their rows come late.
    """
    size = max(_LEAST, ROW_GROUP // max(1, len(files)))
    waiting = [_Input.of(file, received_column) for file in files]
    waiting.sort(key=lambda file: file.first)
    active: list[tuple[_Rows, int]] = []
    while waiting or active:
        while waiting and _has_to_begin(waiting[0], active):
            new = waiting.pop(0)
            rows = _Rows(new.file.iter_batches(size), schema, received_column)
            if len(rows.rows):
                active.append((rows, new.bytes))
        if active:
            yield _earliest([rows for rows, _ in active])
        active = [(rows, size) for rows, size in active if len(rows.rows)]


def _has_to_begin(file: _Input, active: Sequence[tuple[_Rows, int]]) -> bool:
    """Whether it may have rows before the last that are about to be taken, and there is room."""
    if not active:
        return True
    bound = min(rows.received[-1] for rows, _ in active)
    return file.first <= bound and file.bytes + sum(size for _, size in active) <= MOST_BYTES


def _earliest(files: Sequence[_Rows]) -> pa.Table:
    """The rows up to a moment until which no file has anything that is not in memory."""
    first = min(files, key=lambda file: file.received[-1])
    bound = first.received[-1]
    parts = [
        file.take(
            len(file.rows)
            if file is first
            else int(np.searchsorted(file.received, bound, side="right"))
        )
        for file in files
    ]
    order = np.argsort(np.concatenate([received for _, received in parts]), kind="stable")
    return pa.concat_tables([rows for rows, _ in parts]).take(pa.array(order))


def in_groups(tables: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """The same rows in tables of one size, but for the last."""
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += len(table)
        while count >= size:
            rows = pa.concat_tables(waiting)
            yield rows[:size]
            waiting, count = [rows[size:]], count - size
    if count:
        yield pa.concat_tables(waiting)

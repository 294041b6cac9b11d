"""The rows of several files, in the order of time, a bounded number at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lake.loading.data_file import ROW_GROUP

_LEAST = 1024
"""Rows that are read of a file at once, however many files there are."""


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


def merged(
    files: Sequence[pq.ParquetFile], schema: pa.Schema, received_column: str
) -> Iterator[pa.Table]:
    """All rows of files that are, each of them, in order; rows of one moment as the files are."""
    size = max(_LEAST, ROW_GROUP // max(1, len(files)))
    open_files = [_Rows(file.iter_batches(size), schema, received_column) for file in files]
    while open_files := [file for file in open_files if len(file.rows)]:
        # Up to here no file has anything that is not in memory.
        first = min(open_files, key=lambda file: file.received[-1])
        bound = first.received[-1]
        parts = [
            file.take(
                len(file.rows)
                if file is first
                else int(np.searchsorted(file.received, bound, side="right"))
            )
            for file in open_files
        ]
        order = np.argsort(np.concatenate([received for _, received in parts]), kind="stable")
        rows = pa.concat_tables([rows for rows, _ in parts])
        yield rows.take(pa.array(order))


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

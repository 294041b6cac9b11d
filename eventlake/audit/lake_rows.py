"""The rows that the lake's tables have, as the catalog leads to them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.audit.scope import Scope, Span, TableNumbers
from eventlake.audit.spill import ROWS, id_words, rows_of
from eventlake.rules.names import MESSAGE_ID, RECEIVED_AT
from eventlake.storage import Storage

NOWHERE = 2**32 - 1
"""The table of rows that are where they do not belong: no event asks for them."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a partition; `partition` is its path below the table's folder."""

    number: int
    path: str
    table: str
    partition: str
    span: Span  # what the partition may hold


@dataclass
class LakeRows:
    """Reads data files; counts the rows of the range, and notes what cannot be read."""

    storage: Storage
    scope: Scope
    numbers: TableNumbers
    found: Counter[tuple[str, str]] = field(default_factory=Counter)  # by table and partition
    problems: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def read(self, file: DataFile) -> Iterator[np.ndarray]:
        """The rows of a file in arrays of `ROWS`."""
        names = [column.name(self.scope.source.naming) for column in (MESSAGE_ID, RECEIVED_AT)]
        place = (file.table, file.partition)
        first = 0
        try:
            with self.storage.open_input(file.path) as stream:
                for batch in pq.ParquetFile(stream).iter_batches(columns=names):
                    rows = self._rows(file, batch, names, first)
                    first += len(rows)
                    self.found[place] += int(rows["judged"].sum())
                    yield rows
        except (pa.ArrowException, OSError, KeyError) as error:
            told = f"{file.path} cannot be read: {' '.join(str(error).split())}"
            self.problems.setdefault(place, []).append(told)

    def _rows(
        self, file: DataFile, batch: pa.RecordBatch, names: list[str], first: int
    ) -> np.ndarray:
        ids, received = (batch.column(name) for name in names)
        hi, lo = id_words(id or "" for id in ids.to_pylist())
        times = received.cast(pa.int64()).fill_null(0).to_numpy()
        start, end = self.scope.span.micros
        lowest, highest = file.span.micros
        in_range = (times >= start) & (times < end)
        right = (times >= lowest) & (times < highest) & ids.is_valid().to_numpy(False)
        return rows_of(
            ROWS,
            hi=hi,
            lo=lo,
            received=times,
            table=np.where(right, self.numbers.of(file.table), NOWHERE),
            file=file.number,
            row=np.arange(first, first + len(times)),
            judged=np.where(right, in_range, file.span.touches(self.scope.span)),
        )

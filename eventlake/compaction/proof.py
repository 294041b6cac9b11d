"""What files hold, in numbers that are the same for the same rows however they are cut up."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.columnar.id_hashes import checksum, hash_id
from eventlake.columnar.parquet.data_file import ROW_GROUP
from eventlake.rules.errors import CheckFailed
from eventlake.rules.names import MESSAGE_ID, RECEIVED_AT
from eventlake.rules.types import TableSchema
from eventlake.settings.models.models import Source
from eventlake.storage import Storage, StoredFile


@dataclass(frozen=True, slots=True)
class Proof:
    """Rows, a sum over the ids, one over the times, and how many cells of each column are null."""

    rows: int
    ids: int
    received: int
    nulls: dict[str, int]

    def require_same(self, after: "Proof", what: str) -> None:
        """Raises where the files written do not hold what was read."""
        if self == after:
            return
        columns = [name for name, count in self.nulls.items() if after.nulls.get(name) != count]
        raise CheckFailed(
            f"Compaction of {what} wrote something else than it read ({self.rows} rows, then "
            f"{after.rows}; same ids: {self.ids == after.ids}; other columns: "
            f"{', '.join(columns) or 'none'}). Nothing of it was published and the partition is "
            "as it was. Please report this with the run's log."
        )


def prove(
    storage: Storage, source: Source, schema: TableSchema, files: Sequence[StoredFile]
) -> Proof:
    """Read the footers and the two columns that say which rows they are."""
    id_column, received_column = (c.name(source.naming) for c in (MESSAGE_ID, RECEIVED_AT))
    rows = ids = received = 0
    nulls = dict.fromkeys(schema.types(), 0)
    for file in files:
        with storage.open_input(file.path) as stream, pq.ParquetFile(stream) as parquet:
            footer = parquet.metadata
            for batch in parquet.iter_batches(ROW_GROUP, columns=[id_column, received_column]):
                ids = (ids + _checksum(batch[id_column])) % 2**64
                times = batch[received_column].cast(pa.int64()).to_numpy().view(np.uint64)
                received = (received + int(np.sum(times, dtype=np.uint64))) % 2**64
        rows += footer.num_rows
        for name, count in _nulls(footer).items():
            nulls[name] = nulls.get(name, 0) + count
        for name in schema.types().keys() - {*footer.schema.to_arrow_schema().names}:
            nulls[name] += footer.num_rows  # it came later
    return Proof(rows, ids, received, nulls)


def _checksum(ids: pa.Array) -> int:
    return checksum(pa.array([hash_id(text) for text in ids.to_pylist()], pa.binary(16)))


def _nulls(footer: pq.FileMetaData) -> dict[str, int]:
    """By column, as the statistics of a file tell it."""
    found: dict[str, int] = {}
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            column = footer.row_group(group).column(number)
            statistics = column.statistics
            if statistics is not None and statistics.has_null_count:
                name = column.path_in_schema
                found[name] = found.get(name, 0) + statistics.null_count
    return found

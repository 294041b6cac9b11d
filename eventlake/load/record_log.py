"""The format of the record log: Parquet files, whose columns are the same for all batch types."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.catalog.sync_records import COLUMNS
from eventlake.rules.clock import now
from eventlake.rules.names import Naming
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import LakeType
from eventlake.settings.models import Limits
from eventlake.state.suppression import Suppression
from eventlake.storage import Storage

RECORDS_PER_FILE = 100_000
BYTES_PER_FILE = 256 << 20  # in memory: a payload may be as long as the longest line
_MISTAKEN = 0.01
"""The false positive rate of the Bloom filter of a file."""


class BatchType(StrEnum):
    """The outcome of a record; it determines in which files the record is."""

    LOADED = "records_loaded"
    REJECTED = "records_rejected"
    DUPLICATE = "records_duplicate"
    NULL = "records_null"
    SUPPRESSED = "records_suppressed"
    SKIPPED = "records_skipped"

    @property
    def status(self) -> str:
        return _STATUS.get(self, "rejected")


_STATUS = {
    BatchType.LOADED: "succeeded",
    BatchType.DUPLICATE: "DUPLICATE",
    BatchType.NULL: "NULL",
}

SCHEMA = pa.schema([(column.name, LakeType(column.type).arrow) for column in COLUMNS])


class RecordLog:
    """Collects the records of a task and writes them to files of a bounded size.

    Files are named after the first item of a task, so that a repeated task writes the same files.
    """

    def __init__(self, storage: Storage, folder: str, operation: str) -> None:
        self._storage, self._folder, self._operation = storage, folder, operation
        self._pending: dict[BatchType, list[pa.Table]] = {}
        self._bytes: dict[BatchType, int] = {}  # of pending records
        self._written: dict[BatchType, int] = {}
        self._name = ""
        self._began = now()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if error is None:
            for batch_type in self._pending:
                self._write(batch_type, whole_files=False)

    def add(self, batch_type: BatchType, records: pa.Table, origin: str) -> None:
        """Add records; missing columns of the schema are filled in."""
        self._name = self._name or sha256(origin.encode()).hexdigest()[:16]
        pending = self._pending.setdefault(batch_type, [])
        pending.append(records)
        self._bytes[batch_type] = self._bytes.get(batch_type, 0) + records.nbytes
        too_large = self._bytes[batch_type] >= BYTES_PER_FILE
        if too_large or sum(map(len, pending)) >= RECORDS_PER_FILE:
            self._write(batch_type, whole_files=not too_large)

    def _write(self, batch_type: BatchType, whole_files: bool) -> None:
        records = pa.concat_tables(self._pending[batch_type], promote_options="default")
        while len(records) >= (RECORDS_PER_FILE if whole_files else 1):
            number = self._written.get(batch_type, 0)
            path = f"{self._folder}/{batch_type}-{self._name}-{number}.parquet"
            filled = self._filled(batch_type, records[:RECORDS_PER_FILE])
            with self._storage.open_output(path) as out:
                pq.write_table(
                    filled,
                    out,
                    compression="zstd",
                    store_schema=False,
                    # A search for one identifier skips nearly all files that lack it.
                    bloom_filter_options={"identifier": {"ndv": len(filled), "fpp": _MISTAKEN}},
                )
            self._written[batch_type] = number + 1
            records = records[RECORDS_PER_FILE:]
        self._pending[batch_type] = [records]
        self._bytes[batch_type] = records.nbytes

    def _filled(self, batch_type: BatchType, records: pa.Table) -> pa.Table:
        same = {
            "operation": self._operation,
            "status": batch_type.status,
            "batch_started_at": self._began,
            "batch_ended_at": now(),
        }
        columns = []
        for field in SCHEMA:
            if field.name in records.column_names:
                columns.append(records[field.name].cast(field.type))
            else:
                value = pa.scalar(same.get(field.name), field.type)
                columns.append(pa.repeat(value, len(records)))
        return pa.Table.from_arrays(columns, schema=SCHEMA)


DUPLICATE, OTHER_PAYLOAD = "duplicate", "duplicate with another payload"
"""Why valid lines were not loaded; rejected lines have their own reasons."""


@dataclass(frozen=True)
class LogJob:
    """What all tasks that log records share."""

    storage: Storage
    folder: str
    operation: str
    naming: Naming
    table_prefix: str | None
    date_partition: DatePartition
    limits: Limits
    dedup_days: int
    raw_files: tuple[str, ...]  # by number
    reasons: tuple[str, ...]  # why rows were not loaded, by number
    broken: Mapping[int, str]  # why files were not read to their end, by number
    suppression: Suppression | None = None


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """Positions of rows that were not loaded, in order, with the number of the reason of each."""

    positions: np.ndarray
    reasons: np.ndarray

    def where(self, mask: np.ndarray) -> "NotLoaded":
        """Some of the rows."""
        return NotLoaded(self.positions[mask], self.reasons[mask])

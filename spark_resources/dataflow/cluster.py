"""The data flow on Spark: a row is a batch, and the JVM moves batches without looking inside."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from eventlake.columnar.id_hashes import BUCKETS
from eventlake.load.blobs import BLOB_SCHEMA, Blob, BlobKind, Shares, file_number
from eventlake.load.dedup import Deduped, DedupJob, dedup
from eventlake.load.record_log import LogJob, NotLoaded
from eventlake.load.seen import Seen
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.write import LoadedFile, LoadJob, decode_files, encode_files, load

_BLOB_DDL = "kind string, key string, task int, rows bigint, data binary"
_RESULT_DDL = "data binary"
_RESULT_SCHEMA = pa.schema([("data", pa.large_binary())])
_GROUP = "group"
# More partitions than slots, so that hashing keys to them evens out.
_PARTITIONS_PER_SLOT = 4

Batches = Iterable[pa.RecordBatch]
GroupWork = Callable[[str, list[Blob]], bytes]


class SparkDataflow:
    """Stages into a DataFrame kept on the executors' disks; dedup and load read it from there."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._staged: DataFrame | None = None

    @property
    def slots(self) -> int:
        return self._session.sparkContext.defaultParallelism

    def stage(self, job: StageJob, tasks: Sequence[Sequence[RawFile]]) -> list[Seen]:
        shares = [list(files) for files in tasks]

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            from eventlake.load.stage import stage

            for batch in batches:
                for task in batch["id"].to_pylist():
                    for blob in stage(job, task, shares[task]):
                        yield _row(blob)

        staged = self._numbers(shares).mapInArrow(run, _BLOB_DDL)
        self._staged = staged.persist(StorageLevel.DISK_ONLY)
        seen = self._staged.where(F.col("kind") == BlobKind.SEEN).select("data").collect()
        return [Seen.decode(bytes(row.data)) for row in seen]

    def dedup(self, job: DedupJob) -> list[Deduped]:
        group = F.floor(F.col("key").cast("int") * job.groups / BUCKETS).cast("string")

        @contextmanager
        def work() -> Iterator[GroupWork]:
            yield lambda key, blobs: dedup(job, int(key), blobs).encode()

        results = self._grouped(BlobKind.IDS, group, min(job.groups, self._spread), work)
        return [Deduped.decode(data) for data in results]

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        @contextmanager
        def work() -> Iterator[GroupWork]:
            with job.record_log() as log:
                yield lambda share, blobs: encode_files(load(job, file_number(share), blobs, log))

        results = self._grouped(BlobKind.ROWS, share_column(shares), self._spread, work)
        return [file for data in results for file in decode_files(data)]

    def log(self, job: LogJob, tasks: Sequence[Sequence[NotLoaded]]) -> None:
        shares = [list(files) for files in tasks]

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            from eventlake.load.not_loaded import log_not_loaded

            for batch in batches:
                for task in batch["id"].to_pylist():
                    log_not_loaded(job, shares[task])
                yield pa.RecordBatch.from_pylist([], _RESULT_SCHEMA)

        self._numbers(shares).mapInArrow(run, _RESULT_DDL).collect()

    def release(self) -> None:
        if self._staged is not None:
            self._staged.unpersist()
            self._staged = None

    def _numbers(self, shares: Sequence[object]) -> DataFrame:
        """A row for each task, each in a partition of its own."""
        return self._session.range(0, len(shares), 1, len(shares))

    @property
    def _spread(self) -> int:
        return self.slots * _PARTITIONS_PER_SLOT

    def _grouped(
        self,
        kind: BlobKind,
        group: Column,
        partitions: int,
        work: Callable[[], AbstractContextManager[GroupWork]],
    ) -> list[bytes]:
        """Bring the blobs of each group together by Spark's shuffle, and work on one at a time."""
        if self._staged is None:
            raise RuntimeError("stage comes before dedup and load")

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            rows = (row for batch in batches for row in batch.to_pylist())
            with work() as one:
                for key, members in groupby(rows, key=lambda row: row[_GROUP]):
                    blobs = [_blob(row) for row in members]
                    yield pa.RecordBatch.from_pylist([{"data": one(key, blobs)}], _RESULT_SCHEMA)

        shuffled = (
            self._staged.where(F.col("kind") == kind)
            .withColumn(_GROUP, group)
            .repartition(partitions, _GROUP)
            .sortWithinPartitions(_GROUP)
        )
        return [bytes(row.data) for row in shuffled.mapInArrow(run, _RESULT_DDL).collect()]


def _row(blob: Blob) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([blob._asdict()], BLOB_SCHEMA)


def _blob(row: dict[str, Any]) -> Blob:
    return Blob(row["kind"], row["key"], row["task"], row["rows"], row["data"])


def share_column(shares: Shares) -> Column:
    """`Shares.of` as Spark says it."""
    key, task = F.col("key"), F.col("task")
    table = F.split_part(key, F.lit("\n"), F.lit(1))
    group = F.pmod(F.crc32(key.cast("binary")), _looked_up(shares.groups, table))
    small = F.concat_ws("\n", F.lit("0"), table, group.cast("string"))
    if not shares.splits:
        return small
    files = _looked_up(shares.splits, key)
    large = F.concat_ws("\n", F.pmod(task, files).cast("string"), key)
    return F.when(key.isin(list(shares.splits)), large).otherwise(small)


def _looked_up(numbers: Mapping[str, int], name: Column) -> Column:
    """The number of a name; most have just one."""
    if not numbers:
        return F.lit(1)
    literals = [F.lit(part) for item in numbers.items() for part in item]
    return F.coalesce(F.create_map(*literals)[name], F.lit(1))

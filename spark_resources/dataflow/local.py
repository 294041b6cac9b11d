"""The data flow on one machine: batches are in a blob store, and Spark runs the tasks.

The driver assigns blobs to tasks, since it has the position of every blob: nothing is shuffled.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from pyspark import SparkContext

from eventlake.load.blobs import (
    TASKS_PER_SLOT,
    Blob,
    BlobKind,
    Shares,
    divided,
    file_number,
    grouped,
    table_of,
)
from eventlake.load.dedup import Deduped, DedupJob, dedup
from eventlake.load.record_log import LogJob, NotLoaded
from eventlake.load.seen import Seen
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.write import LoadedFile, LoadJob, TaskInput, decode_files, encode_files, load
from eventlake.runs.unit import evenly
from spark_resources.dataflow.blob_store import BlobStore, size

T = TypeVar("T")
R = TypeVar("R")
Groups = list[tuple[str, list[Blob]]]


class LocalDataflow:
    """Keeps the positions of all staged blobs and assigns them to tasks."""

    def __init__(self, context: SparkContext, store: BlobStore) -> None:
        self._context = context
        self._store = store
        self._staged: list[Blob] = []

    @property
    def slots(self) -> int:
        return self._context.defaultParallelism

    def stage(self, job: StageJob, tasks: Sequence[Sequence[RawFile]]) -> list[Seen]:
        store = self._store
        job = replace(job, joint=True)

        def work(part: tuple[int, Sequence[RawFile]]) -> list[Blob]:
            from eventlake.load.stage import stage

            return store.keep(stage(job, *part))

        blobs = [blob for kept in self._each(work, enumerate(tasks)) for blob in kept]
        self._staged = [blob for blob in blobs if blob.kind != BlobKind.SEEN]
        with store.fetching() as fetch:
            return [Seen.decode(fetch(blob).data) for blob in blobs if blob.kind == BlobKind.SEEN]

    def dedup(self, job: DedupJob) -> list[Deduped]:
        store = self._store

        def work(groups: Groups) -> list[bytes]:
            with store.fetching() as fetch:
                return [
                    dedup(job, int(key), [*map(fetch, blobs)]).encode() for key, blobs in groups
                ]

        tasks = self._tasks(BlobKind.IDS, lambda blob: str(job.group_of(blob.key)))
        return [Deduped.decode(data) for results in self._each(work, tasks) for data in results]

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        store = self._store

        def work(part: tuple[TaskInput, Groups]) -> list[bytes]:
            job, groups = shared.for_task(part[0]), part[1]
            with job.record_log() as log, store.fetching() as fetch:
                return [
                    encode_files(load(job, file_number(share), [*map(fetch, blobs)], log))
                    for share, blobs in groups
                ]

        self._divide(shares)
        tasks = self._tasks(BlobKind.ROWS, shares.of)
        tables = [{table_of(blobs[0]) for _, blobs in groups} for groups in tasks]
        shared, told = job.dealt_out(tables)
        parts = zip(told, tasks, strict=True)
        loaded = (data for results in self._each(work, parts) for data in results)
        return [file for data in loaded for file in decode_files(data)]

    def log(self, job: LogJob, tasks: Sequence[Sequence[NotLoaded]]) -> None:
        def work(files: Sequence[NotLoaded]) -> None:
            from eventlake.load.not_loaded import log_not_loaded

            log_not_loaded(job, files)

        self._each(work, tasks)

    def release(self) -> None:
        self._staged = []
        self._store.clear()

    def _divide(self, shares: Shares) -> None:
        """Have a batch for each partition where they go to different tasks; they are small."""
        whole: list[Blob] = []
        with self._store.fetching() as fetch:
            for blob in self._staged:
                parts = [blob]
                if blob.kind == BlobKind.ROWS and shares.divides(blob):
                    parts = self._store.keep(divided(fetch(blob)))
                whole += parts
        self._staged = whole

    def _tasks(self, kind: BlobKind, group: Callable[[Blob], str]) -> list[Groups]:
        """Groups of staged batches, dealt out to tasks, the heaviest of them first."""
        groups = grouped(self._staged, kind, group)
        return evenly(
            groups.items(),
            lambda group: sum(map(size, group[1])),
            self.slots * TASKS_PER_SLOT,
        )

    def _each(self, work: Callable[[T], R], parts: Iterable[T]) -> list[R]:
        """A task of Spark for each part."""
        all_parts = list(parts)
        if not all_parts:
            return []
        return self._context.parallelize(all_parts, len(all_parts)).map(work).collect()

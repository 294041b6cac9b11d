"""The passes over the data: stage, deduplicate, load, log. All engines run them.

Staging tasks keep blobs in a store. The driver has the byte range of every blob, so it assigns
blobs to the tasks of the next pass, which read them from the store: nothing is shuffled.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from eventlake.load.blobs import (
    TASKS_PER_SLOT,
    Blob,
    BlobKind,
    Shares,
    divided,
    file_number,
    parts_of,
    table_of,
)
from eventlake.load.dedup import Deduped, DedupJob, dedup
from eventlake.load.record_log import LogJob, NotLoaded
from eventlake.load.seen import Seen
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.staged_lines import by_chunk
from eventlake.load.write import LoadedFile, LoadJob, TaskInput, decode_files, encode_files, load
from eventlake.runs.unit import evenly
from spark_resources.dataflow.blob_store import BlobStore

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")
R = TypeVar("R")
Groups = list[tuple[str, list[Blob]]]


class Runner(Protocol):
    """Runs the tasks of a pass."""

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        ...

    def each(self, name: str, work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
        """Call `work` for each part, as one task; results keep the order."""
        ...


@dataclass(frozen=True)
class SparkRunner:
    """Runs a pass as a Spark job with one stage, both named after the pass."""

    context: "SparkContext"
    guard: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def slots(self) -> int:
        return self.context.defaultParallelism

    def each(self, name: str, work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
        if not parts:
            return []
        self.context.setJobDescription(f"{name}, {len(parts)} tasks")
        self.context.setLocalProperty("callSite.short", name)  # `collect` would set its own
        with self.guard():
            try:
                tasks = self.context.parallelize(parts, len(parts))
                return self.context.runJob(tasks, lambda part: map(work, part))
            except Exception:
                raise
            except BaseException:  # an interrupt: its tasks would go on
                self.context.cancelAllJobs()
                raise


class StagedDataflow:
    """Runs the passes of one unit of work after the other."""

    def __init__(self, runner: Runner, store: BlobStore) -> None:
        self._runner, self._store = runner, store
        self._staged: list[Blob] = []
        self._task_of: dict[int, int] = {}  # by number of a raw file

    @property
    def slots(self) -> int:
        return self._runner.slots

    def stage(self, job: StageJob, tasks: Sequence[Sequence[RawFile]]) -> list[Seen]:
        store = self._store

        def work(task: tuple[int, Sequence[RawFile]]) -> list[Blob]:
            from eventlake.load.stage import stage

            return store.keep(stage(job, *task))

        self._task_of = {file.number: task for task, some in enumerate(tasks) for file in some}
        results = self._runner.each("stage", work, [*enumerate(tasks)])
        blobs = [blob for kept in results for blob in kept]
        self._staged = [blob for blob in blobs if blob.kind != BlobKind.SEEN]
        with store.fetching() as fetch:
            seen = fetch([blob for blob in blobs if blob.kind == BlobKind.SEEN])
        return [Seen.decode(blob.data) for blob in seen]

    def dedup(self, job: DedupJob) -> list[Deduped]:
        store = self._store

        def work(groups: Groups) -> list[bytes]:
            with store.fetching() as fetch:
                return [dedup(job, int(key), fetch(blobs)).encode() for key, blobs in groups]

        tasks = self._tasks(BlobKind.IDS, lambda blob: {str(job.group_of(blob.key))})
        results = self._runner.each("deduplicate", work, tasks)
        return [Deduped.decode(data) for encoded in results for data in encoded]

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        store = self._store

        def work(task: tuple[TaskInput, Groups]) -> list[bytes]:
            job, groups = shared.for_task(task[0]), task[1]
            with job.record_log() as log, store.fetching() as fetch:
                return [
                    encode_files(load(job, file_number(share), _of(share, fetch(blobs)), log))
                    for share, blobs in groups
                ]

        def _of(share: str, blobs: Sequence[Blob]) -> list[Blob]:
            """The parts of blobs that belong to a share; blobs of several shares are small."""
            parts = (divided(blob) if shares.divides(blob) else [blob] for blob in blobs)
            return [part for some in parts for part in some if shares.of(part) == share]

        tasks = self._tasks(BlobKind.ROWS, lambda blob: _shares_of(blob, shares))
        tables = [{table_of(blobs[0]) for _, blobs in groups} for groups in tasks]
        shared, inputs = job.dealt_out(tables)
        results = self._runner.each("load", work, [*zip(inputs, tasks, strict=True)])
        return [file for encoded in results for data in encoded for file in decode_files(data)]

    def log(self, job: LogJob, rows: NotLoaded) -> None:
        store = self._store

        def work(parts: Sequence[tuple[Sequence[Blob], NotLoaded]]) -> None:
            from eventlake.load.not_loaded import log_not_loaded

            with store.fetching() as fetch:
                log_not_loaded(job, parts, fetch)

        chunks = [blob for blob in self._staged if blob.kind == BlobKind.LINES]
        parts = by_chunk(rows, chunks, self._task_of)
        tasks = evenly(parts, lambda part: sum(map(store.size, part[0])), self.slots)
        self._runner.each("log what was not loaded", work, tasks)

    def release(self) -> None:
        self._staged = []
        self._store.clear()

    def _tasks(self, kind: BlobKind, groups_of: Callable[[Blob], Iterable[str]]) -> list[Groups]:
        """Groups of staged blobs, distributed over tasks, the largest first."""
        groups: dict[str, list[Blob]] = {}
        for blob in self._staged:
            if blob.kind == kind:
                for group in groups_of(blob):
                    groups.setdefault(group, []).append(blob)

        def size(group: tuple[str, list[Blob]]) -> int:
            return sum(map(self._store.size, group[1]))

        return evenly(groups.items(), size, self.slots * TASKS_PER_SLOT)


def _shares_of(blob: Blob, shares: Shares) -> Iterable[str]:
    """All shares that a blob has rows for, in a fixed order."""
    if not shares.divides(blob):
        return (shares.of(blob),)
    return dict.fromkeys(shares.of(blob._replace(key=key)) for key in parts_of(blob))

"""The passes over the data one after the other, in this process."""

from collections.abc import Sequence
from dataclasses import replace

from eventlake.dedup.task import Deduped, DedupJob, dedup
from eventlake.loading.shares import Shares, file_number
from eventlake.loading.task import LoadedFile, LoadJob, load
from eventlake.staging.blob import Blob, BlobKind, grouped
from eventlake.staging.job import RawFile, StageJob
from eventlake.staging.rows_blob import divided
from eventlake.staging.seen import Seen
from eventlake.staging.task import stage
from eventlake.tracking.log_job import LogJob, NotLoaded
from eventlake.tracking.not_loaded import log_not_loaded


class InProcess:
    """The same tasks one after the other, without Spark: for tests of everything around them."""

    slots = 1

    def __init__(self) -> None:
        self._blobs: list[Blob] = []

    def stage(self, job: StageJob, tasks: Sequence[Sequence[RawFile]]) -> list[Seen]:
        job = replace(job, joint=True)
        blobs = [blob for n, files in enumerate(tasks) for blob in stage(job, n, files)]
        self._blobs = [blob for blob in blobs if blob.kind != BlobKind.SEEN]
        return [Seen.decode(blob.data) for blob in blobs if blob.kind == BlobKind.SEEN]

    def dedup(self, job: DedupJob) -> list[Deduped]:
        groups = grouped(self._blobs, BlobKind.IDS, lambda blob: job.group_of(blob.key))
        return [dedup(job, group, blobs) for group, blobs in groups.items()]

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        rows = (blob for blob in self._blobs if blob.kind == BlobKind.ROWS)
        parts = (
            part for blob in rows for part in (divided(blob) if shares.divides(blob) else [blob])
        )
        groups = grouped(parts, BlobKind.ROWS, shares.of)
        with job.record_log() as log:
            return [
                file
                for share, blobs in groups.items()
                for file in load(job, file_number(share), blobs, log)
            ]

    def log(self, job: LogJob, tasks: Sequence[Sequence[NotLoaded]]) -> None:
        for files in tasks:
            log_not_loaded(job, files)

    def release(self) -> None:
        self._blobs = []

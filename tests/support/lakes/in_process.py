"""The passes over the data one after the other, in this process."""

from collections.abc import Sequence
from dataclasses import replace

from eventlake.load.blobs import Blob, BlobKind, Shares, divided, file_number, grouped
from eventlake.load.dedup import Deduped, DedupJob, dedup
from eventlake.load.not_loaded import log_not_loaded
from eventlake.load.record_log import LogJob, NotLoaded
from eventlake.load.seen import Seen
from eventlake.load.stage import stage
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.write import LoadedFile, LoadJob, load


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

"""The passes over the data, wherever they run: Spark in earnest, this process in tests."""

from collections.abc import Sequence
from typing import Protocol

from eventlake.load.blobs import Shares
from eventlake.load.dedup import Deduped, DedupJob
from eventlake.load.record_log import LogJob, NotLoaded
from eventlake.load.seen import Seen
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.write import LoadedFile, LoadJob


class Dataflow(Protocol):
    """One unit of work's data: staged once, then deduplicated and loaded from there."""

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        ...

    def stage(self, job: StageJob, tasks: Sequence[Sequence[RawFile]]) -> list[Seen]: ...

    def dedup(self, job: DedupJob) -> list[Deduped]: ...

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        """Write each key's rows into one file, or into several if the shares say so."""
        ...

    def log(self, job: LogJob, tasks: Sequence[Sequence[NotLoaded]]) -> None:
        """Write the records of what was not loaded."""
        ...

    def release(self) -> None:
        """Let go of what was staged."""
        ...

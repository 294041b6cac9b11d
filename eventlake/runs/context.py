"""The context of a run, and its listener."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from eventlake.catalog.base import Catalog
from eventlake.load.blobs import Shares
from eventlake.load.dedup import Deduped, DedupJob
from eventlake.load.record_log import LogJob, NotLoaded
from eventlake.load.seen import Seen
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.rules.clock import now
from eventlake.rules.counts import UnitReport
from eventlake.runs.verify import CheckResult
from eventlake.settings.models import Settings, Source
from eventlake.state.manifest import Manifest, RunKind
from eventlake.state.partitions import Partitions, Planned
from eventlake.state.report import RunFacts
from eventlake.storage import Storage


class Dataflow(Protocol):
    """The data of one unit of work: staged once, then deduplicated and loaded from staging."""

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        ...

    def stage(self, job: StageJob, tasks: Sequence[Sequence[RawFile]]) -> list[Seen]: ...

    def dedup(self, job: DedupJob) -> list[Deduped]: ...

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        """Write each key's rows into one file, or into several if the shares say so."""
        ...

    def log(self, job: LogJob, rows: NotLoaded) -> None:
        """Write the records of what was not loaded."""
        ...

    def release(self) -> None:
        """Delete the staged data."""
        ...


__all__ = ["Listener", "Published", "RunContext", "Silent", "now"]


@dataclass(frozen=True, slots=True)
class Published:
    """One unit of work that is now in the lake."""

    manifest: Manifest
    report: UnitReport
    checks: tuple[CheckResult, ...]


class Listener(Protocol):
    """Receives the progress of a run."""

    def log(self, message: str) -> None: ...

    def warn(self, message: str) -> None: ...

    def page(self, name: str, url: str) -> None:
        """A page that shows the run."""


SPARK_UI = "spark_ui"
"""The name of the page of the Spark application."""


class Silent:
    """A listener that discards everything."""

    def log(self, message: str) -> None: ...

    def warn(self, message: str) -> None: ...

    def page(self, name: str, url: str) -> None: ...


SILENT = Silent()


@dataclass(frozen=True)
class RunContext:
    """A run of one source; `dataflow` is called only when there is something to read."""

    settings: Settings
    source: Source
    storage: Storage
    catalog: Catalog
    kind: RunKind
    facts: RunFacts
    dataflow: Callable[[], Dataflow]
    listener: Listener
    planned: Planned = field(default_factory=dict)  # of a dry run

    @property
    def partitions(self) -> Partitions:
        return Partitions(self.storage, self.catalog, self.planned)

    @property
    def run_id(self) -> str:
        return self.facts.run_id

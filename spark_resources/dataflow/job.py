"""A sync or replay that can be sent to where Spark runs."""

from collections.abc import Callable, Iterator
from datetime import date, datetime
from functools import cached_property
from typing import Any

import msgspec

from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.runs.context import Dataflow, Listener, Published, RunContext
from eventlake.runs.dry_run import PlannedUnit, dry_replay, dry_sync
from eventlake.runs.failures import failure_reported
from eventlake.runs.replay import replay_units
from eventlake.runs.sync import sync_units
from eventlake.runs.unit import Window
from eventlake.settings.models import Settings, Source
from eventlake.state.manifest import RunKind
from eventlake.state.report import RunFacts


class LakeJob(msgspec.Struct, frozen=True, dict=True):
    """A sync, or with a window a replay of some tables or (None) of all tables."""

    settings_json: dict[str, Any]
    source_id: str
    run_id: str
    start_time: datetime
    dagster_run_id: str = ""
    days: tuple[date, date] | None = None  # of a sync: only these day folders
    window: tuple[datetime, datetime] | None = None
    tables: tuple[str, ...] | None = None
    accept_changes: bool = False  # of a replay: raw files that changed since they were loaded
    dry_run: bool = False  # only report what would change
    emr_cluster_id: str = ""  # the cluster that runs the job, if any

    @cached_property
    def settings(self) -> Settings:
        return Settings.model_validate(self.settings_json)

    @property
    def source(self) -> Source:
        return self.settings.source(self.source_id)

    @property
    def blob_folder(self) -> str:
        """Where tasks keep staged blobs if they do not share a disk; deleted with the staging."""
        return f"{paths.stage(self.source_id, self.run_id)}/blobs"

    @property
    def kind(self) -> RunKind:
        return RunKind.SYNC if self.window is None else RunKind.REPLAY

    def facts(self) -> RunFacts:
        return RunFacts.of(
            self.settings,
            self.source,
            self.run_id,
            self.start_time,
            self.dagster_run_id,
            self.emr_cluster_id,
            self.window,
        )


def run_job(job: LakeJob, dataflow: Callable[[], Dataflow], listener: Listener) -> Iterator[Any]:
    """Run a job in this process.

    Yields a `Published` for each unit as soon as it is in the lake. A dry run changes and reports
    nothing, and yields a `PlannedUnit` for each unit.
    """
    context = _context(job, dataflow, listener)
    if job.dry_run:
        yield from _planned(context, job)
        return
    with failure_reported(context.storage, context.catalog, context.facts):
        yield from _published(context, job)


def _published(context: RunContext, job: LakeJob) -> Iterator[Published]:
    if job.window is None:
        return sync_units(context, job.days)
    return replay_units(context, Window(*job.window), _tables(job), job.accept_changes)


def _planned(context: RunContext, job: LakeJob) -> Iterator[PlannedUnit]:
    if job.window is None:
        return dry_sync(context, job.days)
    return dry_replay(context, Window(*job.window), _tables(job))


def _context(job: LakeJob, dataflow: Callable[[], Dataflow], listener: Listener) -> RunContext:
    lake = Lake.open(job.settings).for_source(job.source)
    return RunContext(
        settings=job.settings,
        source=job.source,
        storage=lake.storage,
        catalog=lake.catalog,
        kind=job.kind,
        facts=job.facts(),
        dataflow=dataflow,
        listener=listener,
    )


def _tables(job: LakeJob) -> frozenset[str] | None:
    return None if job.tables is None else frozenset(job.tables)

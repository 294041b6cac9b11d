"""Run jobs of the lake in ops: logs go to Dagster, errors become failures with a remedy."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import dagster as dg
import msgspec

from datalake_assets.assets.keys import SOURCE_TAG, Names, run_tags
from datalake_assets.instance.dagster_private import keep_connections
from datalake_assets.resources import LakeResource
from eventlake.aws.permissions import granted_by
from eventlake.clouds import as_lake_error
from eventlake.lake import Lake
from eventlake.rules.clock import new_run_id, now
from eventlake.rules.errors import LakeError, UsageError
from eventlake.runs.context import Published
from eventlake.runs.dead_runs import INTERRUPTED
from eventlake.runs.failures import REFUSED
from eventlake.runs.report_history import newest_reports
from eventlake.runs.unit import Window
from eventlake.settings.models import Settings, Source
from eventlake.state.lease import Holder, myself
from spark_resources.dataflow.job import LakeJob


@dataclass(frozen=True)
class DagsterListener:
    """Writes the messages of a run to Dagster's log, and the addresses of its pages to its tags."""

    context: dg.OpExecutionContext | dg.AssetExecutionContext

    def log(self, message: str) -> None:
        self.context.log.info(message)

    def warn(self, message: str) -> None:
        self.context.log.warning(message)

    def page(self, name: str, url: str) -> None:
        self.context.instance.add_run_tags(self.context.run.run_id, {name: url})


Context = dg.OpExecutionContext | dg.AssetExecutionContext | dg.AssetCheckExecutionContext


def lake_of(context: Context, names: Names) -> Lake:
    """The lake of a run: the resource, which a test or a deployment may have replaced."""
    found: Lake | LakeResource = getattr(context.resources, names.of("lake"))
    return found.open() if isinstance(found, LakeResource) else found


def new_job(
    settings: Settings,
    source: Source,
    dagster_run_id: str,
    days: tuple[datetime, datetime] | None = None,
    window: Window | None = None,
    tables: tuple[str, ...] | None = None,
    accept_changes: bool = False,
    dry_run: bool = False,
) -> LakeJob:
    """A job that begins now."""
    return LakeJob(
        settings_json=settings.for_jobs(),
        source_id=source.id,
        run_id=new_run_id(),
        start_time=now(),
        dagster_run_id=dagster_run_id,
        days=None if days is None else (days[0].date(), days[1].date()),
        window=None if window is None else (window.start, window.end),
        tables=tables,
        accept_changes=accept_changes,
        dry_run=dry_run,
    )


def op_job(
    op: dg.OpDefinition, name: str, description: str, lake: Lake, source: Source | None = None
) -> dg.JobDefinition:
    """A job of one op."""
    graph = dg.GraphDefinition(name, node_defs=[op])
    return graph.to_job(
        description=description,
        run_tags=run_tags(lake, source),
        executor_def=dg.in_process_executor,
    )


AssetJob = Any
"""What `dg.define_asset_job` returns; its class is not public."""


@contextmanager
def forwarding_errors(units: Iterator[Published]) -> Iterator[Iterator[Published]]:
    """The units of a run. An error in their consumer reaches the run, which reports it."""
    try:
        yield units
    except BaseException as error:
        if isinstance(units, Generator):
            units.throw(error)  # raised again at once if the run itself ended with it
        raise


@contextmanager
def as_dagster_failure() -> Iterator[None]:
    """Turn errors of the lake into failures without a stack trace and without retries."""
    try:
        yield
    except Exception as error:
        known = as_lake_error(error)
        if known is None:
            raise
        raise dg.Failure(str(known), failure_metadata(known), allow_retries=False) from None


class ReplayRefused(dg.DagsterExecutionInterruptedError):
    """A replay was refused before it changed anything."""


@contextmanager
def refused_as_cancelled(
    context: dg.AssetExecutionContext, has_begun: Callable[[], bool]
) -> Iterator[None]:
    """End the run of a refused replay as cancelled: a failed run would mark tables and checks as
    failed, but a cancelled one leaves them in the state they had."""
    try:
        yield
    except UsageError as refusal:
        if has_begun():
            raise
        context.log.error(str(refusal))
        context.instance.report_run_canceling(context.run, f"{REFUSED}{refusal}")
        raise ReplayRefused(str(refusal)) from None


def failure_metadata(error: LakeError) -> dict[str, Any]:
    """The details of an error, for the UI and the command line."""
    shown: dict[str, Any] = {"error_code": error.error_code, "exit_code": error.exit_code}
    if granted := granted_by(str(error)):
        shown["policy_statement_to_grant"] = dg.MetadataValue.json(granted)
    return shown


@dataclass(frozen=True, slots=True)
class RunError:
    """The error of a failed run, without Dagster's own around it."""

    message: str
    code: str = ""
    exit_code: int = 1


def run_error(events: Iterable[dg.DagsterEvent]) -> RunError:
    """The first error among the events of a run."""
    for event in events:
        if event.is_step_failure and (failure := event.step_failure_data.user_failure_data):
            code, exit_code = (failure.metadata.get(name) for name in ("error_code", "exit_code"))
            return RunError(
                failure.description or "",
                str(code.value) if code else "",
                int(str(exit_code.value)) if exit_code else 1,
            )
        if event.is_step_failure or event.event_type is dg.DagsterEventType.RUN_FAILURE:
            error = getattr(event.event_specific_data, "error", None)
            while error is not None and error.cause is not None:
                error = error.cause
            message = error.message if error else event.message
            if error is not None and error.cls_name == ReplayRefused.__name__:
                said = error.message.partition(": ")[2].strip()
                return RunError(said, UsageError.error_code, UsageError.exit_code)
            return RunError((message or "The run failed; see the run in Dagster.").strip())
    return RunError("The run failed before it began; see the run in Dagster.")


PROCESS_TAG = ".dagster/datalake_process"
_REPORTS = 200  # to search for a run of another machine


def record_process(
    context: dg.OpExecutionContext | dg.AssetExecutionContext, lake: Lake, source: Source
) -> None:
    """Tag a run with its process, so that other processes can see whether it is alive; and with
    its lake and source, which runs have no job for that are started in the graph of assets."""
    keep_connections(context.instance)
    process = {PROCESS_TAG: msgspec.json.encode(myself()).decode()}
    context.instance.add_run_tags(context.run.run_id, process | run_tags(lake, source))


def holder_of(run: dg.DagsterRun) -> Holder | None:
    """The process that executes a run, if it has started."""
    tag = run.tags.get(PROCESS_TAG)
    return None if tag is None else msgspec.json.decode(tag, type=Holder)


def is_dead(lake: Lake, run: dg.DagsterRun) -> bool:
    """Whether the process of a run is gone: on this machine by its id, elsewhere by its report."""
    holder = holder_of(run)
    if holder is None:
        return False
    if holder.is_here:
        return not holder.runs_here
    source = next((s for s in lake.settings.sources if s.slug == run.tags.get(SOURCE_TAG)), None)
    if source is None:
        return False
    reports = islice(newest_reports(lake, {source.id}), _REPORTS)
    return any(
        report.dagster_run_id == run.run_id and report.source.error == INTERRUPTED.error
        for report in reports
    )

"""Run jobs of the lake in ops: logs go to Dagster, errors become failures with a remedy."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import dagster as dg
import msgspec

from datalake_assets.assets.keys import SOURCE_TAG
from eventlake.aws.permissions import granted_by
from eventlake.aws.refusals import as_lake_error
from eventlake.lake import Lake
from eventlake.rules.clock import new_run_id, now
from eventlake.rules.errors import LakeError
from eventlake.runs.context import Published
from eventlake.runs.dead_runs import INTERRUPTED
from eventlake.runs.report_history import newest_reports
from eventlake.runs.unit import Window
from eventlake.settings.models import Settings, Source
from eventlake.state.lease import Holder, myself
from spark_resources.dataflow.job import LakeJob


@dataclass(frozen=True)
class DagsterListener:
    """Writes the messages of a run to Dagster's log."""

    log_manager: dg.DagsterLogManager

    def log(self, message: str) -> None:
        self.log_manager.info(message)

    def warn(self, message: str) -> None:
        self.log_manager.warning(message)


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


@contextmanager
def forwarding_errors(units: Iterator[Published]) -> Iterator[Iterator[Published]]:
    """The units of a run. An error in their consumer reaches the run, which reports it."""
    try:
        yield units
    except BaseException as error:
        if isinstance(units, Generator):
            units.throw(error)  # comes back at once where the run itself has ended by it
        raise


@contextmanager
def as_dagster_failure() -> Iterator[None]:
    """Turn errors of the lake into failures without a stack trace and without retries."""
    try:
        yield
    except Exception as error:
        told = as_lake_error(error)
        if told is None:
            raise
        raise dg.Failure(str(told), failure_metadata(told), allow_retries=False) from None


def failure_metadata(error: LakeError) -> dict[str, dg.MetadataValue]:
    """What the UI and the command line show besides the message."""
    shown: dict[str, dg.MetadataValue] = {
        "error_code": dg.MetadataValue.text(error.error_code),
        "exit_code": dg.MetadataValue.int(error.exit_code),
    }
    if granted := granted_by(str(error)):
        shown["policy_statement_to_grant"] = dg.MetadataValue.json(granted)
    return shown


PROCESS_TAG = "datalake/process"
_REPORTS = 200  # searched for a run of another machine


def record_process(context: dg.OpExecutionContext | dg.AssetExecutionContext) -> None:
    """Tag the run with the process that executes it, so that others can see whether it is alive."""
    tag = msgspec.json.encode(myself()).decode()
    context.instance.add_run_tags(context.run.run_id, {PROCESS_TAG: tag})


def holder_of(run: dg.DagsterRun) -> Holder | None:
    """The process that executes a run, if it has started."""
    tag = run.tags.get(PROCESS_TAG)
    return None if tag is None else msgspec.json.decode(tag, type=Holder)


def is_dead(lake: Lake, run: dg.DagsterRun) -> bool:
    """On this machine by the process itself, elsewhere by the reports of the lake."""
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

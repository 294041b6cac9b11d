"""Which process executes a Dagster run, and whether it is still alive."""

from itertools import islice

import dagster as dg
import msgspec

from datalake_assets.assets.keys import SOURCE_TAG
from eventlake.lake import Lake
from eventlake.runs.dead_runs import INTERRUPTED
from eventlake.runs.report_history import newest_reports
from eventlake.state.lease import Holder, myself

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

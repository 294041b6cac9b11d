"""Runs whose process is gone: a sensor closes them, in the lake and in Dagster."""

from collections.abc import Iterator
from itertools import islice

import dagster as dg
import msgspec

from datalake_assets.assets.keys import SOURCE_TAG
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError
from eventlake.runs.context import now
from eventlake.runs.dead_runs import INTERRUPTED, close_dead_runs
from eventlake.runs.report_history import newest_reports
from eventlake.settings.models import Source
from eventlake.state.lease import Holder, myself

PROCESS_TAG = "datalake/process"
_UNDER_WAY = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
_REPORTS = 200  # that are searched for a run of another machine


def sign(context: dg.OpExecutionContext | dg.AssetExecutionContext) -> None:
    """Note on the run which process carries it out, so that others can see whether it lives."""
    tag = msgspec.json.encode(myself()).decode()
    context.instance.add_run_tags(context.run.run_id, {PROCESS_TAG: tag})


def close_dead(lake: Lake) -> dg.SensorDefinition:
    """Does without delay what the next run of a source would do."""

    @dg.sensor(
        name="dead_runs",
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Closes runs whose process is gone: a failed report in the lake, a failed run.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        told = [line for source in lake.settings.sources for line in _close_in_lake(lake, source)]
        told += _close_in_dagster(lake, context.instance)
        return dg.SkipReason(" ".join(told) or "Every run that has begun is alive or has ended.")

    return sensor


def _close_in_lake(lake: Lake, source: Source) -> Iterator[str]:
    """One source that cannot be read leaves the others their turn."""
    try:
        lake = lake.for_source(source)
        for run_id in close_dead_runs(lake.storage, lake.catalog, source.id, now()):
            yield f"Run {run_id} of {source.slug} had died; it now has a failed report."
    except (LakeError, OSError) as error:
        yield f"Runs of {source.slug} could not be looked at: {error}"


def _close_in_dagster(lake: Lake, instance: dg.DagsterInstance) -> Iterator[str]:
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNDER_WAY)):
        holder = _holder(run)
        if holder is not None and is_dead(lake, run):
            message = (
                f"The process of this run ({holder}) is gone: it was killed, or its machine went "
                "down. What it had published stays; launch it again, and it goes on from there."
            )
            if run.status is dg.DagsterRunStatus.CANCELING:
                instance.report_run_canceled(run, message)
            else:
                instance.report_run_failed(run, message)
            yield f"Dagster run {run.run_id} was left behind by {holder}."


def _holder(run: dg.DagsterRun) -> Holder | None:
    """The process that carries a run out, if it has begun."""
    tag = run.tags.get(PROCESS_TAG)
    return None if tag is None else msgspec.json.decode(tag, type=Holder)


def is_dead(lake: Lake, run: dg.DagsterRun) -> bool:
    """Here the system knows; of a process elsewhere, the lake has found that it is dead."""
    holder = _holder(run)
    if holder is None:
        return False
    if holder.is_here:
        return not holder.runs_here
    source = next((s for s in lake.settings.sources if s.slug == run.tags.get(SOURCE_TAG)), None)
    if source is None:
        return False
    reports = islice(newest_reports(lake, {source.id}), _REPORTS)
    return any(
        report.dagster_run_id == run.run_id and report.source.get("error") == INTERRUPTED.error
        for report in reports
    )

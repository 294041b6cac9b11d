"""The sensor that closes runs whose process is gone, in the lake and in Dagster."""

from collections.abc import Iterator

import dagster as dg

from datalake_assets.assets.keys import NAMES, Names
from datalake_assets.assets.running import holder_of, is_dead
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError
from eventlake.runs.context import now
from eventlake.runs.dead_runs import close_dead_runs
from eventlake.settings.models import Source

_UNDER_WAY = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def close_dead(lake: Lake, names: Names = NAMES) -> dg.SensorDefinition:
    """Does what the next run of a source would do, without the wait."""

    @dg.sensor(
        name=names.of("dead_runs"),
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Closes runs whose process is gone: a failed report in the lake, a failed run.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        lines = [line for source in lake.settings.sources for line in _close_in_lake(lake, source)]
        lines += _close_in_dagster(lake, context.instance)
        return dg.SkipReason(" ".join(lines) or "Every run that has begun is alive or has ended.")

    return sensor


def _close_in_lake(lake: Lake, source: Source) -> Iterator[str]:
    """A source that cannot be read does not stop the others."""
    try:
        lake = lake.for_source(source)
        for run_id in close_dead_runs(lake.storage, lake.catalog, source.id, now()):
            yield f"Run {run_id} of {source.slug} crashed; it now has a failed report."
    except (LakeError, OSError) as error:
        yield f"Runs of {source.slug} could not be read: {error}"


def _close_in_dagster(lake: Lake, instance: dg.DagsterInstance) -> Iterator[str]:
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNDER_WAY)):
        holder = holder_of(run)
        if holder is not None and is_dead(lake, run):
            message = (
                f"The process of this run ({holder}) is gone: it was killed, or its machine went "
                "down. What it published stays; launch it again to continue from there."
            )
            if run.status is dg.DagsterRunStatus.CANCELING:
                instance.report_run_canceled(run, message)
            else:
                instance.report_run_failed(run, message)
            yield f"Dagster run {run.run_id} of {holder} is closed: the process is gone."

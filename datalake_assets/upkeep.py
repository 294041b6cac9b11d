"""The upkeep of a source, and of Dagster's own memory: jobs, once a day."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dagster as dg

from datalake_assets.dead_runs import sign
from datalake_assets.keys import SOURCE_TAG, upkeep_job_name, upkeep_key
from datalake_assets.metadata import upkeep_numbers
from datalake_assets.run_retention import remove_old_runs
from datalake_assets.running import DagsterListener, told_as_failure
from eventlake.lake import Lake
from eventlake.runs.context import now
from eventlake.settings.models import Source
from eventlake.upkeep.upkeep import UpkeepBroken, upkeep, upkeep_context

IN_THE_NIGHT = "30 3 * * *"
"""UTC: yesterday is over, and most of what came late for it is there."""
DAGSTER_JOB = "upkeep_dagster"


def upkeep_asset(source: Source) -> dg.AssetSpec:
    """What each upkeep found and left, as numbers over time."""
    return dg.AssetSpec(
        upkeep_key(source),
        description=f"Upkeep of {source.slug}: files and bytes before and after, by kind.",
        group_name=source.name,
    )


def upkeep_job(lake: Lake, source: Source) -> dg.JobDefinition:
    """Puts small files together and removes what nobody needs any more."""

    @dg.op(
        name=f"keep_{source.name}",
        description="Compaction, retention of logs, index, staging and manifests, orphans.",
        out=dg.Out(dg.Nothing),
    )
    def keep(context: dg.OpExecutionContext) -> Iterator[Any]:
        sign(context)
        with told_as_failure():
            run = upkeep_context(lake, source, DagsterListener(context.log), context.run_id)
            try:
                report = upkeep(run, now())
            except UpkeepBroken as broken:
                yield _materialization(source, broken)
                raise
            yield dg.AssetMaterialization(upkeep_key(source), metadata=upkeep_numbers(report))
            yield dg.Output(None)

    @dg.job(
        name=upkeep_job_name(source),
        description=f"Upkeep of {source.slug}: fewer files, and no more of them than are needed.",
        tags={SOURCE_TAG: source.slug},
        executor_def=dg.in_process_executor,
    )
    def keep_up() -> None:
        keep()

    return keep_up


def _materialization(source: Source, broken: UpkeepBroken) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(upkeep_key(source), metadata=upkeep_numbers(broken.report))


def dagster_upkeep_job(lake: Lake) -> dg.JobDefinition:
    """Keeps Dagster's own tables from growing for ever."""

    @dg.op(
        name="forget_old_runs",
        description="Runs that are long over go, unless a partition was last materialized in one.",
        out=dg.Out(dg.Nothing),
    )
    def forget(context: dg.OpExecutionContext) -> None:
        days = lake.settings.retention.dagster_days
        done = remove_old_runs(context.instance, now() - timedelta(days=days))
        context.log.info(
            f"{done.removed} of {done.old} runs older than {days} days are gone; the others hold "
            "the last materialization of a partition."
        )
        context.add_output_metadata({"removed": done.removed, "kept": done.kept})

    @dg.job(
        name=DAGSTER_JOB,
        description="Upkeep of Dagster's own tables: old runs and their events.",
        executor_def=dg.in_process_executor,
    )
    def forget_old() -> None:
        forget()

    return forget_old


def upkeep_schedule(job: dg.JobDefinition, running: bool = False) -> dg.ScheduleDefinition:
    """Once a day; switched on in the UI, or with `datalake dev --schedules`."""
    status = dg.DefaultScheduleStatus
    return dg.ScheduleDefinition(
        name=f"{job.name}_schedule",
        job=job,
        cron_schedule=IN_THE_NIGHT,
        execution_timezone="UTC",
        default_status=status.RUNNING if running else status.STOPPED,
        description=job.description,
    )

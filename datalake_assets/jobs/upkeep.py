"""The upkeep of a source, and of Dagster's own memory: jobs, once a day."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.storage.dagster_run import FINISHED_STATUSES

from datalake_assets.assets.keys import SOURCE_TAG, upkeep_job_name, upkeep_key
from datalake_assets.assets.metadata import upkeep_numbers
from datalake_assets.assets.running import DagsterListener, as_dagster_failure, record_process
from eventlake.lake import Lake
from eventlake.runs.context import now
from eventlake.settings.models import Source
from eventlake.upkeep.upkeep import UpkeepFailed, upkeep, upkeep_context

PAGE = 100
MOST_RUNS = 2_000
"""Looked at in one go; what is left over waits for the next day."""


@dataclass(frozen=True, slots=True)
class RunsRemoved:
    """How many runs were old enough, how many went, and how many stay for their partitions."""

    old: int = 0
    removed: int = 0

    @property
    def kept(self) -> int:
        return self.old - self.removed


@dataclass
class _Latest:
    """The runs in which partitions of an asset were last materialized: asked once for each asset.

    By run and not by the number of an event: on SQLite a run's own events have other numbers.
    """

    instance: dg.DagsterInstance
    known: dict[dg.AssetKey, frozenset[str]] = field(default_factory=dict)

    def runs(self, key: dg.AssetKey) -> frozenset[str]:
        if key not in self.known:
            self.known[key] = frozenset(self._runs(key))
        return self.known[key]

    def _runs(self, key: dg.AssetKey) -> Iterator[str]:
        found = self.instance.event_log_storage.get_latest_storage_id_by_partition(
            key, dg.DagsterEventType.ASSET_MATERIALIZATION
        )
        ids = sorted(found.values())
        for first in range(0, len(ids), PAGE):
            some = dg.AssetRecordsFilter(key, storage_ids=ids[first : first + PAGE])
            for record in self.instance.fetch_materializations(some, limit=PAGE).records:
                yield record.run_id
        # And the last of all, which has no partition if the asset has none.
        for record in self.instance.fetch_materializations(key, limit=1).records:
            yield record.run_id


def remove_old_runs(
    instance: dg.DagsterInstance, before: datetime, dry: bool = False, most: int = MOST_RUNS
) -> RunsRemoved:
    """Delete finished runs that began before a moment, unless an asset would lose its last word."""
    latest, old, removed = _Latest(instance), 0, 0
    for run_id in _old_runs(instance, before, most):
        old += 1
        if _is_needed(instance, run_id, latest):
            continue
        removed += 1
        if not dry:
            _delete(instance, run_id)
    return RunsRemoved(old, removed)


def _old_runs(instance: dg.DagsterInstance, before: datetime, most: int) -> Iterator[str]:
    """The oldest first; listed before any goes, since a cursor is a run."""
    chosen = dg.RunsFilter(statuses=FINISHED_STATUSES, created_before=before)
    found: list[str] = []
    cursor: str | None = None
    while len(found) < most:
        page = instance.get_run_records(chosen, limit=PAGE, ascending=True, cursor=cursor)
        found += [record.dagster_run.run_id for record in page]
        if len(page) < PAGE:
            break
        cursor = found[-1]
    yield from found[:most]


def _is_needed(instance: dg.DagsterInstance, run_id: str, latest: _Latest) -> bool:
    cursor: str | None = None
    while True:
        page = instance.get_records_for_run(
            run_id, cursor, dg.DagsterEventType.ASSET_MATERIALIZATION, limit=1_000
        )
        for record in page.records:
            event = record.event_log_entry.dagster_event
            if event and event.asset_key and run_id in latest.runs(event.asset_key):
                return True
        if not page.has_more:
            return False
        cursor = page.cursor


def _delete(instance: dg.DagsterInstance, run_id: str) -> None:
    instance.delete_run(run_id)
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    # On SQLite each run has a database of its own, which Dagster empties and leaves there.
    shard = getattr(instance.event_log_storage, "path_for_shard", None)
    if shard is not None:
        for path in Path(shard(run_id)).parent.glob(f"{run_id}.db*"):
            path.unlink(missing_ok=True)


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
        record_process(context)
        with as_dagster_failure():
            run = upkeep_context(lake, source, DagsterListener(context.log), context.run_id)
            try:
                report = upkeep(run, now())
            except UpkeepFailed as broken:
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


def _materialization(source: Source, broken: UpkeepFailed) -> dg.AssetMaterialization:
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

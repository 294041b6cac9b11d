"""What runs change beside replays: the assets sync and upkeep with their jobs; the check job."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import dagster as dg

from datalake_assets.assets.event_tables import freshness_policy
from datalake_assets.assets.events import SYNCED, VERSION, RunEvents, made_from
from datalake_assets.assets.keys import NAMES, SOURCE_TAG, Names, raw_archive, run_tags, sync
from datalake_assets.assets.keys import upkeep as upkeep_of
from datalake_assets.assets.metadata import as_text, upkeep_numbers
from datalake_assets.assets.running import (
    AssetJob,
    DagsterListener,
    as_dagster_failure,
    forwarding_errors,
    lake_of,
    new_job,
    op_job,
    record_process,
)
from datalake_assets.instance.dagster_private import (
    events_together,
    latest_run_storage_ids,
    sqlite_files_of_run,
)
from datalake_assets.instance.schedules import Schedules, stopped_schedules
from datalake_assets.instance.snapshot import refresh_snapshot
from datalake_assets.preflight import Finding, findings
from eventlake.catalog.sync_records import ensure_own_tables
from eventlake.checks.published import Loaded
from eventlake.lake import Lake
from eventlake.rules.clock import now, parse_hour, touched_days
from eventlake.rules.counts import UnitReport
from eventlake.rules.text import plural
from eventlake.runs.failures import failure_reported
from eventlake.runs.verify import ChecksFailed
from eventlake.settings.models import FreshnessOf, Source
from eventlake.upkeep.upkeep import UpkeepFailed, upkeep, upkeep_context
from spark_resources.engines.base import SparkEngine


class SyncConfig(dg.Config):
    """Day folders to load, as hours `YYYY-MM-DDTHH`; without them, everything not loaded yet."""

    from_hour: str | None = None
    to_hour: str | None = None


def sync_asset(source: Source, names: Names) -> dg.AssetsDefinition:
    """Loads the files of the archive that are not in the lake yet."""
    spec = names.spec(
        sync(source),
        source,
        [raw_archive(source)],
        description=f"Sync of {source.slug}: loads every raw file that is not in the lake yet into "
        "the event tables. Materialize it to start one.",
        kinds={"spark"},
        freshness_policy=freshness_policy(source, FreshnessOf.SYNC, FreshnessOf.TABLES),
    )

    @dg.multi_asset(
        name=names.of(f"load_{source.name}"),
        specs=[spec],
        op_tags={SOURCE_TAG: source.slug},
        required_resource_keys={names.of("lake"), names.of("engine")},
    )
    def load(context: dg.AssetExecutionContext, config: SyncConfig) -> Iterator[Any]:
        lake = lake_of(context, names)
        engine: SparkEngine = getattr(context.resources, names.of("engine"))
        events = RunEvents(lake, source, names)
        record_process(context, lake, source)
        with as_dagster_failure():
            days = None
            if config.from_hour and config.to_hour:
                days = touched_days(parse_hour(config.from_hour), parse_hour(config.to_hour))
            job = new_job(lake.settings, source, context.run.run_id, days=days)
            own = lake.for_source(source)
            with failure_reported(own.storage, own.catalog, job.facts()):
                yield (archive := events.of_archive())
            done, loaded = UnitReport(), Loaded()
            try:
                with forwarding_errors(engine.run(job, DagsterListener(context))) as units:
                    for unit in units:
                        with events_together(context.instance):
                            yield from events.of_unit(unit, loaded)
                        done = unit.manifest.report
            except ChecksFailed as failed:
                yield from map(events.evaluation, failed.results)
                raise
            finally:
                refresh_snapshot(lake)
            with events_together(context.instance):
                yield events.of_report(job.facts(), done)
                yield from events.of_published_checks(context, loaded)
            context.log.info(_summary(done))
            shown = events.report_metadata(job.facts(), done)
            version = dg.DataVersion(archive.tags[VERSION])
            yield dg.MaterializeResult(
                asset_key=spec.key,
                metadata=shown,
                data_version=SYNCED,
                tags=made_from(archive.asset_key, version),
            )

    return load


def asset_job(asset: dg.AssetsDefinition, name: str, lake: Lake, source: Source) -> AssetJob:
    """A job that materializes one asset."""
    [spec] = asset.specs
    return dg.define_asset_job(
        name,
        selection=dg.AssetSelection.assets(spec.key).without_checks(),
        description=spec.description,
        run_tags=run_tags(lake, source),
        executor_def=dg.in_process_executor,
    )


def _summary(done: UnitReport) -> str:
    if not done.raw_files:
        return "Nothing new in the archive."
    left_out = f", {done.suppressed:,} suppressed" if done.suppressed else ""
    left_out += f", {done.skipped:,} skipped" if done.skipped else ""
    return (
        f"{plural(done.row_count, 'row')} into {plural(len(done.tables), 'table')} from "
        f"{plural(done.raw_files, 'file')}; {plural(done.duplicates, 'duplicate')}, "
        f"{done.rejected:,} rejected{left_out}."
    )


def upkeep_asset(source: Source, names: Names) -> dg.AssetsDefinition:
    """Compacts small files and removes what is no longer needed; shows its effect over time."""
    spec = names.spec(
        upkeep_of(source),
        source,
        [sync(source)],
        description=f"Upkeep of {source.slug}: compacts small files, removes what is not needed. "
        "Shows files and bytes before and after, by kind.",
    )

    @dg.multi_asset(
        name=names.of(f"keep_{source.name}"),
        specs=[spec],
        op_tags={SOURCE_TAG: source.slug},
        required_resource_keys={names.of("lake")},
    )
    def keep(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        lake = lake_of(context, names)
        record_process(context, lake, source)
        with as_dagster_failure():
            run = upkeep_context(lake, source, DagsterListener(context), context.run.run_id)
            failed: UpkeepFailed | None = None
            try:
                report = upkeep(run, now())
            except UpkeepFailed as error:
                report, failed = error.report, error
            yield dg.MaterializeResult(asset_key=spec.key, metadata=upkeep_numbers(report))
            if failed:
                raise failed

    return keep


DAGSTER_JOB = "upkeep_dagster"
_PAGE = 100
_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
MOST_RUNS = 2_000
"""Runs per upkeep; the rest follows on the next day."""


def dagster_upkeep_job(lake: Lake, names: Names = NAMES) -> dg.JobDefinition:
    """Deletes old runs from Dagster's own tables."""

    @dg.op(
        name=names.of("forget_old_runs"),
        description="Old runs are deleted, unless a partition was last materialized in one.",
        out=dg.Out(dg.Nothing),
        required_resource_keys={names.of("lake")},
    )
    def forget(context: dg.OpExecutionContext) -> None:
        lake = lake_of(context, names)
        days = lake.settings.retention.dagster_days
        done = remove_old_runs(context.instance, lake, now() - timedelta(days=days))
        context.log.info(
            f"{done.removed} of {done.old} runs older than {days} days are deleted; the others "
            "hold the last materialization of a partition."
        )
        context.add_output_metadata({"removed": done.removed, "kept": done.kept})

    description = "Upkeep of Dagster's own tables: old runs and their events."
    return op_job(forget, names.of(DAGSTER_JOB), description, lake)


@dataclass(frozen=True, slots=True)
class RunsRemoved:
    """The number of old runs, and of those that were deleted; the others hold partitions."""

    old: int = 0
    removed: int = 0

    @property
    def kept(self) -> int:
        return self.old - self.removed


def remove_old_runs(
    instance: dg.DagsterInstance, lake: Lake, before: datetime, most: int = MOST_RUNS
) -> RunsRemoved:
    """Delete finished runs of a lake from before a time, except the last materializations of
    assets. Runs without the lake's tag belong to others, who share the instance."""
    latest, old, removed = _Latest(instance), 0, 0
    for run_id in _old_runs(instance, lake, before, most):
        old += 1
        if _is_needed(instance, run_id, latest):
            continue
        removed += 1
        _delete(instance, run_id)
    return RunsRemoved(old, removed)


@dataclass
class _Latest:
    """The runs that last materialized the partitions of each asset.

    By run and not by the number of an event: on SQLite a run's own events have other numbers.
    """

    instance: dg.DagsterInstance
    known: dict[dg.AssetKey, frozenset[str]] = field(default_factory=dict)

    def runs(self, key: dg.AssetKey) -> frozenset[str]:
        if key not in self.known:
            self.known[key] = frozenset(self._runs(key))
        return self.known[key]

    def _runs(self, key: dg.AssetKey) -> Iterator[str]:
        ids = sorted(latest_run_storage_ids(self.instance, key))
        for first in range(0, len(ids), _PAGE):
            some = dg.AssetRecordsFilter(key, storage_ids=ids[first : first + _PAGE])
            for record in self.instance.fetch_materializations(some, limit=_PAGE).records:
                yield record.run_id
        # The last of all has no partition if the asset has none.
        for record in self.instance.fetch_materializations(key, limit=1).records:
            yield record.run_id


def _old_runs(
    instance: dg.DagsterInstance, lake: Lake, before: datetime, most: int
) -> Iterator[str]:
    """The oldest first; listed before any is deleted, because a cursor is a run."""
    chosen = dg.RunsFilter(statuses=_FINISHED, created_before=before, tags=run_tags(lake))
    found: list[str] = []
    cursor: str | None = None
    while len(found) < most:
        page = instance.get_run_records(chosen, limit=_PAGE, ascending=True, cursor=cursor)
        found += [record.dagster_run.run_id for record in page]
        if len(page) < _PAGE:
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
    for path in sqlite_files_of_run(instance, run_id):
        path.unlink(missing_ok=True)


def check_job(lake: Lake, names: Names = NAMES) -> dg.JobDefinition:
    """The findings of `datalake check`, where scheduled syncs run; fails if one is an error."""

    @dg.op(
        name=names.of("find_problems"),
        description="Tests settings, roles, storage, archives, catalog and engine.",
        out=dg.Out(dg.Nothing),
        required_resource_keys={names.of("lake")},
    )
    def find_problems(context: dg.OpExecutionContext) -> None:
        lake = lake_of(context, names)
        schedules = Schedules(lambda: stopped_schedules(context.instance))
        found: list[Finding] = []
        for finding in findings(lake, lake.settings.sources, schedules):
            found.append(finding)
            _log(context, finding)
        wrong = [f"{finding.what}: {finding.message}" for finding in found if finding.error]
        shown = {"findings": dg.MetadataValue.md(as_markdown(found))}
        if wrong:
            raise dg.Failure("\n".join(wrong), shown, allow_retries=False)
        ensure_own_tables(lake.catalog)
        context.add_output_metadata(shown)

    description = "Whether syncs and replays can work, and why data may be missing."
    return op_job(find_problems, names.of("check"), description, lake)


def _log(context: dg.OpExecutionContext, finding: Finding) -> None:
    line = f"{finding.sign} {finding.what}: {finding.message}"
    if finding.error:
        context.log.error(line)
    elif finding.warning:
        context.log.warning(line)
    else:
        context.log.info(line)


def as_markdown(found: Sequence[Finding]) -> str:
    """A table; its cells are text, whatever they contain."""
    rows = [f"| {one.sign} | {one.what} | {as_text(one.message)} |" for one in found]
    return "\n".join(["| | what | finding |", "|---|---|---|", *rows])

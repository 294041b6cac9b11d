"""The sync of a source: a job without partitions."""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from datalake_assets.assets.events import RunEvents, check_evaluation
from datalake_assets.assets.keys import SOURCE_TAG, sync_job_name
from datalake_assets.assets.running import (
    DagsterListener,
    as_dagster_failure,
    forwarding_errors,
    new_job,
    record_process,
)
from datalake_assets.instance.snapshot import refresh_snapshot
from eventlake.checks.freshness import check_freshness
from eventlake.checks.published import PARTIAL_CHECKS, Loaded, TableChecks
from eventlake.lake import Lake
from eventlake.rules.clock import now, parse_hour, touched_days
from eventlake.rules.counts import UnitReport
from eventlake.runs.failures import failure_reported
from eventlake.runs.verify import ChecksFailed
from eventlake.settings.models import Source
from spark_resources.engines.base import SparkEngine

SCHEDULES_VARIABLE = "DATALAKE_SCHEDULES"
"""`on`: schedules run unless they are switched off; `datalake dev --schedules` sets it."""


MOST_TABLES = 40
"""A sync of more tables leaves the checks of published tables to the daily job. SQLite needs about
11 ms to store an evaluation, and a table has four: 60 tables added 2.7 s to a sync of 11 s."""


class SyncConfig(dg.Config):
    """Day folders to take, as hours `YYYY-MM-DDTHH`; without them, all that is not loaded."""

    from_hour: str | None = None
    to_hour: str | None = None


def sync_job(lake: Lake, source: Source) -> dg.JobDefinition:
    """Loads whatever the archive has and the lake has not."""
    events = RunEvents(lake, source)

    @dg.op(
        name=f"load_{source.name}",
        description="Raw files that are not in the lake yet become rows of the event tables.",
        out=dg.Out(dg.Nothing),
    )
    def load(
        context: dg.OpExecutionContext, config: SyncConfig, engine: SparkEngine
    ) -> Iterator[Any]:
        record_process(context)
        with as_dagster_failure():
            days = None
            if config.from_hour and config.to_hour:
                days = touched_days(parse_hour(config.from_hour), parse_hour(config.to_hour))
            job = new_job(lake.settings, source, context.run_id, days=days)
            own = lake.for_source(source)
            with failure_reported(own.storage, own.catalog, job.facts()):
                yield events.of_archive()
            done, loaded = UnitReport(), Loaded()
            try:
                with forwarding_errors(engine.run(job, DagsterListener(context.log))) as units:
                    for unit in units:
                        yield from events.of_unit(unit, loaded)
                        done = unit.manifest.report
            except ChecksFailed as failed:
                yield from map(check_evaluation, failed.results)
                raise
            finally:
                refresh_snapshot(lake)
            yield events.of_report(job.facts(), done)
            yield from _check_loaded(context, lake, source, loaded)
            context.log.info(_summary(done))
            yield dg.Output(None)

    @dg.job(
        name=sync_job_name(source),
        description=f"Sync of {source.slug}: loads new raw files and writes a sync report.",
        tags={SOURCE_TAG: source.slug},
        executor_def=dg.in_process_executor,
    )
    def sync() -> None:
        load()

    return sync


def _check_loaded(
    context: dg.OpExecutionContext, lake: Lake, source: Source, loaded: Loaded
) -> Iterator[dg.AssetCheckEvaluation]:
    """The checks of published tables, as far as they are cheap: the rest is for the daily job.

    The data is published: the sync does not fail if a check cannot be evaluated.
    """
    try:
        results = [check_freshness(lake, source, now())]
        if 0 < len(loaded.days) <= MOST_TABLES:
            results += TableChecks(lake, source, now()).of_loaded(loaded)
        evaluations = [check_evaluation(result) for result in results]
        failed = _failed_before(context.instance, evaluations)
    except Exception as error:
        context.log.warning(f"Published tables are not checked after this sync: {error}")
        return
    for one in evaluations:
        yield failed.get(one.asset_check_key, one) if one.passed else one


def _failed_before(
    instance: dg.DagsterInstance, evaluations: Sequence[dg.AssetCheckEvaluation]
) -> dict[dg.AssetCheckKey, dg.AssetCheckEvaluation]:
    """Failures that only the daily job can clear: it also reads files and older partitions."""
    keys = [one.asset_check_key for one in evaluations if one.check_name in PARTIAL_CHECKS]
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {
        key: evaluation
        for key, record in latest.items()
        if (evaluation := record.evaluation) is not None and not evaluation.passed
    }


def _summary(done: UnitReport) -> str:
    if not done.raw_files:
        return "Nothing new in the archive."
    left_out = f", {done.suppressed:,} suppressed" if done.suppressed else ""
    return (
        f"{done.row_count:,} rows into {len(done.tables)} tables from {done.raw_files} files; "
        f"{done.duplicates:,} duplicates, {done.rejected:,} rejected{left_out}."
    )

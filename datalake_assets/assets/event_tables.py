"""The event tables of a source as assets: materializing tables and days replays them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dagster as dg

from datalake_assets.assets import metadata
from datalake_assets.assets.events import RunEvents, check_result
from datalake_assets.assets.keys import (
    ACCEPT_TAG,
    REPLAY,
    SOURCE_TAG,
    days,
    raw_archive_key,
    reports_key,
    schema_key,
    table_key,
    window_of,
)
from datalake_assets.assets.running import (
    DagsterListener,
    as_dagster_failure,
    forwarding_errors,
    new_job,
    record_process,
    refused_as_cancelled,
)
from datalake_assets.instance.snapshot import SourceSnapshot, refresh_snapshot
from eventlake.checks.published import Loaded, check_published
from eventlake.lake import Lake
from eventlake.rules.clock import parse_hour
from eventlake.rules.counts import UnitReport
from eventlake.rules.types import TableSchema
from eventlake.runs.context import Published
from eventlake.runs.failures import failure_reported
from eventlake.runs.unit import Window
from eventlake.runs.verify import CHECKS, CheckResult, ChecksFailed
from eventlake.settings.models import Source
from eventlake.state.report import RunFacts
from spark_resources.engines.base import SparkEngine

MAX_REPLAY_SECONDS = str(7 * 24 * 3600)


class ReplayConfig(dg.Config):
    """Hours `YYYY-MM-DDTHH` within the first and the last day; without them, whole days.

    `all_tables` also loads tables that are not assets yet; `accept_changes` loads raw files as they
    are now, even if they were changed or removed since they were loaded.
    """

    from_hour: str | None = None
    to_hour: str | None = None
    all_tables: bool = False
    accept_changes: bool = False


def event_tables(lake: Lake, source: Source, known: SourceSnapshot) -> dg.AssetsDefinition:
    """One multi-asset with a table, its schema and its checks for each event type."""
    tables = known.tables_of(source)
    partitions = days(source.start or known.first_day)

    @dg.multi_asset(
        name=f"replay_{source.name}_tables",
        specs=[spec for table in tables for spec in _specs(lake, source, table)]
        + [_report_spec(source)],
        check_specs=[spec for table in tables for spec in _check_specs(table)],
        partitions_def=partitions,
        backfill_policy=REPLAY,
        can_subset=True,
        op_tags={SOURCE_TAG: source.slug, "dagster/max_runtime": MAX_REPLAY_SECONDS},
    )
    def replay(
        context: dg.AssetExecutionContext, config: ReplayConfig, engine: SparkEngine
    ) -> Iterator[Any]:
        record_process(context, lake, source)
        chosen = [t for t in tables if table_key(t) in context.selected_asset_keys]
        window = _window(context, partitions)
        replayed = _Replayed(RunEvents(lake, source), context, tables, window)
        with as_dagster_failure(), refused_as_cancelled(context, lambda: replayed.version > 0):
            if not context.selected_asset_keys:
                yield from _checked(context, lake, source, tables, window)
                return
            if chosen or config.all_tables:
                everything = config.all_tables or len(chosen) == len(tables)
                make_job = partial(new_job, lake.settings, source, context.run.run_id)
                own = lake.for_source(source)
                with failure_reported(own.storage, own.catalog, make_job(window=window).facts()):
                    replayed.window = _narrowed(window, config)
                job = make_job(
                    window=replayed.window,
                    tables=None if everything else tuple(t.table for t in chosen),
                    accept_changes=config.accept_changes or ACCEPT_TAG in _yes(context.run.tags),
                )
                try:
                    with forwarding_errors(engine.run(job, DagsterListener(context.log))) as units:
                        for unit in units:
                            yield from replayed.take(unit)
                except ChecksFailed as failed:
                    yield from map(check_result, failed.results)
                    raise
                finally:
                    refresh_snapshot(lake)
                replayed.run = job.facts()
            yield from replayed.results()

    return replay


def _checked(
    context: dg.AssetExecutionContext,
    lake: Lake,
    source: Source,
    tables: list[TableSchema],
    window: Window,
) -> Iterator[dg.AssetCheckResult]:
    """Checks that are executed alone read what is published; nothing is loaded."""
    selected = context.selected_asset_check_keys
    for table in RunEvents(lake, source).current(tables):
        wanted = {key.name for key in selected if key.asset_key == table_key(table)}
        if wanted:
            for check in check_published(lake, source, table, window):
                if check.check in wanted:
                    yield check_result(check)


@dataclass
class _Replayed:
    """The progress of a replay, and its results for Dagster."""

    events: RunEvents
    context: dg.AssetExecutionContext
    tables: list[TableSchema]
    window: Window
    done: UnitReport = field(default_factory=UnitReport)
    run: RunFacts | None = None
    version: int = 0
    checks: dict[tuple[str, str], CheckResult] = field(default_factory=dict)
    shown: dict[dg.AssetKey, set[str]] = field(default_factory=dict)
    loaded: Loaded = field(default_factory=Loaded)

    def take(self, unit: Published) -> Iterator[dg.AssetMaterialization]:
        """Record a day as soon as it is published; `results` covers all days at the end."""
        self.done, self.version = unit.manifest.report, unit.manifest.number
        first, last = self.window.days
        results_follow = unit.manifest.finish_time is not None
        for touched in self.events.table_days(unit, self.loaded):
            key = table_key(touched.schema)
            # Others: new tables, and days outside the range that are loaded for a new column type.
            expected = key in self.context.selected_asset_keys and first <= touched.day <= last
            if expected:
                self.shown.setdefault(key, set()).add(touched.day)
                self.context.add_asset_metadata(
                    touched.metadata, asset_key=key, partition_key=touched.day
                )
            if not (expected and results_follow):
                # Yielded: an event that is only logged is stored with the next yield.
                yield dg.AssetMaterialization(key, partition=touched.day, metadata=touched.metadata)
        for check in unit.checks:
            # Of several days, the first failure counts, else the last result.
            before = self.checks.get((check.table, check.check))
            if before is None or before.passed:
                self.checks[check.table, check.check] = check

    def _show_other_days(self, table: TableSchema) -> None:
        """Add the rows of days that an earlier run of the same replay has published."""
        key, rows = table_key(table), self.events.rows_by_day(table, self.window)
        for day in rows.keys() - self.shown.get(key, set()):
            shown = {"dagster/partition_row_count": rows[day]}
            self.context.add_asset_metadata(shown, asset_key=key, partition_key=day)

    def results(self) -> Iterator[Any]:
        """A result for each selected asset: without one, its partitions would fail."""
        selected = self.context.selected_asset_keys
        for table in self.events.current(self.tables):
            if table_key(table) in selected:
                self._show_other_days(table)
                yield dg.MaterializeResult(
                    asset_key=table_key(table),
                    check_results=[check_result(self._check(table, name)) for name in CHECKS],
                )
            if schema_key(table) in selected:
                report = self.done.tables.get(table.key)
                shown = metadata.schema_version(table, report, self.version)
                yield dg.MaterializeResult(asset_key=schema_key(table), metadata=shown)
        report_key = reports_key(self.events.source)
        if self.run is not None and report_key not in selected:
            self.context.log_event(self.events.of_report(self.run, self.done))
        if report_key in selected:
            shown = self.events.report_metadata(self.run, self.done) if self.run else {}
            yield dg.MaterializeResult(asset_key=report_key, metadata=shown)
        # After the materializations: an older evaluation would not count for them.
        if self.run is not None:
            yield from self.events.of_published_checks(self.context, self.loaded)

    def _check(self, table: TableSchema, name: str) -> CheckResult:
        nothing = CheckResult(table.key, name, passed=True, evidence={"rows": 0})
        return self.checks.get((table.key, name), nothing)


def _specs(lake: Lake, source: Source, table: TableSchema) -> Iterator[dg.AssetSpec]:
    shared: dict[str, Any] = {"group_name": source.name}
    event = metadata.as_code(table.original)
    yield dg.AssetSpec(
        table_key(table),
        deps=[raw_archive_key(source)],
        description=f"Every {event} event of {source.slug}, one row each.",
        kinds={"spark", "parquet"},
        metadata=metadata.table_definition(source, table, lake.storage),
        **shared,
    )
    yield dg.AssetSpec(
        schema_key(table),
        deps=[table_key(table)],
        description=f"The catalog entry of `{table.key}`: its columns, types and location.",
        kinds={lake.settings.catalog},
        **shared,
    )


def _check_specs(table: TableSchema) -> Iterator[dg.AssetCheckSpec]:
    for name, rule in CHECKS.items():
        yield dg.AssetCheckSpec(name, asset=table_key(table), description=rule, blocking=True)


def _report_spec(source: Source) -> dg.AssetSpec:
    return dg.AssetSpec(
        reports_key(source),
        deps=[raw_archive_key(source)],
        description=f"The results of all syncs and replays of {source.slug}, as a table.",
        group_name=source.name,
        kinds={"json"},
    )


def _window(context: dg.AssetExecutionContext, partitions: dg.DailyPartitionsDefinition) -> Window:
    """The days of the run; checks that are executed alone have no partitions and read all days."""
    if context.has_partition_key or context.has_partition_key_range:
        return window_of(context.partition_key_range, partitions)
    keys = partitions.get_partition_keys()
    return window_of(dg.PartitionKeyRange(keys[0], keys[-1]), partitions)


def _yes(tags: Mapping[str, str]) -> set[str]:
    """Tags that are set to true."""
    return {tag for tag, value in tags.items() if value.lower() in ("true", "yes", "1")}


def _narrowed(window: Window, config: ReplayConfig) -> Window:
    start = parse_hour(config.from_hour) if config.from_hour else window.start
    end = parse_hour(config.to_hour) if config.to_hour else window.end
    return Window(max(start, window.start), min(end, window.end))

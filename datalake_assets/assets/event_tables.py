"""The assets of a source: its archive, and the event tables, whose materialization is a replay."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any

import dagster as dg

from datalake_assets.assets import metadata
from datalake_assets.assets.events import CODE_VERSION, VERSION, RunEvents
from datalake_assets.assets.keys import (
    ACCEPT_TAG,
    REPLAY,
    SOURCE_TAG,
    Names,
    days,
    raw_archive,
    reports,
    sync,
    table,
    table_schema,
    window_of,
)
from datalake_assets.assets.running import (
    DagsterListener,
    as_dagster_failure,
    forwarding_errors,
    lake_of,
    new_job,
    record_process,
    refused_as_cancelled,
)
from datalake_assets.instance.dagster_private import events_together, set_partition_metadata
from datalake_assets.instance.snapshot import SourceSnapshot, refresh_snapshot
from eventlake.checks.published import Loaded, check_published
from eventlake.lake import Lake
from eventlake.rules.clock import parse_hour
from eventlake.rules.counts import UnitReport
from eventlake.rules.schedules import longest_interval
from eventlake.rules.types import TableSchema
from eventlake.runs.archive import archive_storage
from eventlake.runs.context import Published
from eventlake.runs.failures import failure_reported
from eventlake.runs.report_history import newest_reports
from eventlake.runs.unit import Window
from eventlake.runs.verify import CHECKS, CheckResult, ChecksFailed
from eventlake.settings.models import FreshnessOf, Source
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


def archive_asset(lake: Lake, source: Source, names: Names) -> dg.AssetsDefinition:
    """The archive; observing it lists its files, as each sync does."""
    spec = names.spec(
        raw_archive(source),
        source,
        description=f"Raw events of {source.slug}: gzipped JSON by day. An observation lists the "
        "files; its data version changes when files arrive.",
        kinds={storage_kind(lake.settings.storage_uri), "json"},
        metadata={"dagster/uri": archive_storage(lake.storage, source).full(source.raw)},
    )

    @dg.multi_observable_source_asset(  # type: ignore[untyped-decorator]
        name=names.of(f"observe_{source.name}"),
        specs=[spec],
        required_resource_keys={names.of("lake")},
    )
    def observe(context: dg.AssetExecutionContext) -> Iterator[dg.ObserveResult]:
        with as_dagster_failure():
            seen = RunEvents(lake_of(context, names), source, names).of_archive()
        version = dg.DataVersion(seen.tags[VERSION])
        yield dg.ObserveResult(
            asset_key=seen.asset_key, metadata=seen.metadata, data_version=version
        )

    observed: dg.AssetsDefinition = observe
    return observed


def storage_kind(uri: str) -> str:
    """The icon of where files are."""
    return {"s3": "s3", "abfss": "adls"}.get(uri.partition("://")[0], "file")


def schema_assets(
    lake: Lake, source: Source, known: SourceSnapshot, names: Names
) -> list[dg.AssetSpec]:
    """The catalog entries of tables. They change with syncs and replays only, so that they cannot
    be materialized alone."""
    catalog = {"local": "file"}.get(lake.settings.catalog, lake.settings.catalog)
    return [
        names.spec(
            table_schema(one),
            source,
            [table(one)],
            description=f"The catalog entry of `{one.key}`: its columns, types and location. Syncs "
            "and replays update it.",
            kinds={catalog},
            metadata={"dagster/table_name": one.key},
        )
        for one in known.tables_of(source)
    ]


def event_tables(
    lake: Lake, source: Source, known: SourceSnapshot, names: Names, with_checks: bool = True
) -> dg.AssetsDefinition:
    """One multi-asset with a table and its checks for each event type, and the sync reports."""
    tables = known.tables_of(source)
    partitions = days(source.start or known.first_day)
    resources = names.of("lake"), names.of("engine")
    specs = [_spec(lake, source, one, names) for one in tables]
    check_specs = [spec for one in tables for spec in _check_specs(one, names)]

    @dg.multi_asset(
        name=names.of(f"replay_{source.name}_tables"),
        specs=[*specs, _report_spec(source, tables, names)],
        check_specs=check_specs if with_checks else None,
        partitions_def=partitions,
        backfill_policy=REPLAY,
        can_subset=True,
        op_tags={SOURCE_TAG: source.slug, "dagster/max_runtime": MAX_REPLAY_SECONDS},
        required_resource_keys=set(resources),
    )
    def replay(context: dg.AssetExecutionContext, config: ReplayConfig) -> Iterator[Any]:
        lake = lake_of(context, names)
        engine: SparkEngine = getattr(context.resources, names.of("engine"))
        record_process(context, lake, source)
        selected = context.selected_asset_keys
        chosen = [one for one in tables if names.key(table(one)) in selected]
        window = _window(context, partitions)
        events = RunEvents(lake, source, names)
        replayed = _Replayed(events, context, tables, window, with_checks)
        with as_dagster_failure(), refused_as_cancelled(context, lambda: replayed.version > 0):
            if not selected:
                yield from _checked(context, events, tables, window)
                return
            if not chosen and not config.all_tables:
                yield replayed.reports_as_they_are()
                return
            everything = config.all_tables or len(chosen) == len(tables)
            make_job = partial(new_job, lake.settings, source, context.run.run_id)
            own = lake.for_source(source)
            with failure_reported(own.storage, own.catalog, make_job(window=window).facts()):
                replayed.window = _narrowed(window, config)
            job = make_job(
                window=replayed.window,
                tables=None if everything else tuple(one.table for one in chosen),
                accept_changes=config.accept_changes or ACCEPT_TAG in _yes(context.run.tags),
            )
            try:
                with forwarding_errors(engine.run(job, DagsterListener(context))) as units:
                    for unit in units:
                        with events_together(context.instance):
                            yield from replayed.take(unit)
            except ChecksFailed as failed:
                if with_checks:
                    yield from map(events.check_result, failed.results)
                raise
            finally:
                refresh_snapshot(lake)
            with events_together(context.instance):
                yield from replayed.results(job.facts())

    return replay


def _checked(
    context: dg.AssetExecutionContext,
    events: RunEvents,
    tables: list[TableSchema],
    window: Window,
) -> Iterator[dg.AssetCheckResult]:
    """Checks that are executed alone read what is published; nothing is loaded."""
    selected = context.selected_asset_check_keys
    for one in events.current(tables):
        key = events.names.key(table(one))
        wanted = {check.name for check in selected if check.asset_key == key}
        if wanted:
            for check in check_published(events.lake, events.source, one, window):
                if check.check in wanted:
                    yield events.check_result(check)


@dataclass
class _Replayed:
    """The progress of a replay, and its results for Dagster."""

    events: RunEvents
    context: dg.AssetExecutionContext
    tables: list[TableSchema]
    window: Window
    with_checks: bool
    done: UnitReport = field(default_factory=UnitReport)
    version: int = 0
    checks: dict[tuple[str, str], CheckResult] = field(default_factory=dict)
    shown: dict[dg.AssetKey, dict[str, metadata.Metadata]] = field(default_factory=dict)
    loaded: Loaded = field(default_factory=Loaded)

    def __post_init__(self) -> None:
        self.selected = self.context.selected_asset_keys  # Dagster makes the set anew for each use

    def take(self, unit: Published) -> Iterator[dg.AssetMaterialization]:
        """Record a day as soon as it is published; `results` covers all days at the end."""
        self.done, self.version = unit.manifest.report, unit.manifest.number
        first, last = self.window.days
        results_follow = unit.manifest.finish_time is not None
        for touched in self.events.table_days(unit, self.loaded):
            key = self._key(touched.schema)
            # Others: new tables, and days outside the range that are loaded for a new column type.
            expected = key in self.selected and first <= touched.day <= last
            if expected:
                self.shown.setdefault(key, {})[touched.day] = touched.metadata
            if not (expected and results_follow):
                with_columns = touched.is_newest and bool(
                    touched.report.new_columns or not expected
                )
                names, source = self.events.names, self.events.source
                # Yielded: an event that is only logged is stored with the next yield.
                yield touched.materialization(names, source, with_columns)
        for check in unit.checks:
            # Of several days, the first failure counts, else the last result.
            before = self.checks.get((check.table, check.check))
            if before is None or before.passed:
                self.checks[check.table, check.check] = check

    def _key(self, schema: TableSchema) -> dg.AssetKey:
        return self.events.names.key(table(schema))

    def _all_days(self, schema: TableSchema) -> dict[str, metadata.Metadata]:
        """What to show of each day of a table, also of days that an earlier run of the same replay
        has published."""
        rows = self.events.rows_by_day(schema, self.window)
        days = {day: {"dagster/partition_row_count": rows[day]} for day in rows}
        days |= self.shown.get(self._key(schema), {})
        last = self.context.partition_key_range.end
        return {**days, last: metadata.with_columns(days.get(last, {}), schema)}

    def results(self, run: RunFacts) -> Iterator[Any]:
        """A result for each selected asset: without one, its partitions would fail."""
        for schema in self.events.current(self.tables):
            key = self._key(schema)
            if key in self.selected:
                set_partition_metadata(self.context, key, self._all_days(schema))
                checks = CHECKS if self.with_checks else ()
                results = [self.events.check_result(self._check(schema, name)) for name in checks]
                version = dg.DataVersion(f"{self.version}")
                yield dg.MaterializeResult(
                    asset_key=key, check_results=results, data_version=version
                )
                report = self.done.tables.get(schema.key)
                yield self.events.of_schema(schema, report, self.version)
        report_key = self.events.names.key(reports(self.events.source))
        if report_key in self.selected:
            shown = self.events.report_metadata(run, self.done)
            yield dg.MaterializeResult(asset_key=report_key, metadata=shown)
        else:
            self.context.log_event(self.events.of_report(run, self.done))
        # After the materializations: an older evaluation would not count for them.
        if self.with_checks:
            yield from self.events.of_published_checks(self.context, self.loaded)

    def reports_as_they_are(self) -> dg.MaterializeResult[Any]:
        """The reports alone are not a replay: the result is what the lake has in these days."""
        key = self.events.names.key(reports(self.events.source))
        first, last = self.window.days
        newest = newest_reports(self.events.lake, {self.events.source.id})
        since = takewhile(lambda report: f"{report.started:%Y-%m-%d}" >= first, newest)
        found = [report for report in since if f"{report.started:%Y-%m-%d}" <= last]
        rows = sum(report.source.row_count or 0 for report in found)
        shown = {"runs": len(found), "rows_loaded": rows}
        return dg.MaterializeResult(asset_key=key, metadata=shown)

    def _check(self, schema: TableSchema, name: str) -> CheckResult:
        nothing = CheckResult(schema.key, name, passed=True, evidence={"rows": 0})
        return self.checks.get((schema.key, name), nothing)


def _spec(lake: Lake, source: Source, schema: TableSchema, names: Names) -> dg.AssetSpec:
    event = metadata.as_code(schema.original)
    return names.spec(
        table(schema),
        source,
        [sync(source)],
        description=f"Every {event} event of {source.slug}, one row each. Syncs load new events. "
        "Materializing days here is a replay: it loads these days again from the raw archive and "
        "replaces their rows.",
        kinds={"spark", "parquet", storage_kind(lake.settings.storage_uri)},
        metadata=metadata.table_definition(source, schema, lake.storage),
        code_version=CODE_VERSION,
        freshness_policy=freshness_policy(source, FreshnessOf.TABLES),
    )


def freshness_policy(source: Source, *wanted: FreshnessOf) -> dg.FreshnessPolicy | None:
    """Overdue: two intervals of the schedule without a materialization; a warning before."""
    interval = longest_interval(source.due) if source.enabled else None
    if interval is None or source.freshness_policy not in wanted:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=2 * interval, warn_window=1.5 * interval)


def _check_specs(schema: TableSchema, names: Names) -> Iterator[dg.AssetCheckSpec]:
    key = names.key(table(schema))
    for name, rule in CHECKS.items():
        yield dg.AssetCheckSpec(name, asset=key, description=rule, blocking=True)


def _report_spec(source: Source, tables: Iterable[TableSchema], names: Names) -> dg.AssetSpec:
    return names.spec(
        reports(source),
        source,
        [*map(table, tables)] or [sync(source)],
        # The runs of a day load any days.
        dg.AllPartitionMapping(),
        description=f"The results of all syncs and replays of {source.slug}, as a table. "
        "Materialized alone, it loads nothing: it counts the reports of the chosen days.",
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

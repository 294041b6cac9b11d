"""The results of a run as Dagster events: materializations per table and day, checks, report."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import dagster as dg

from datalake_assets.assets import metadata
from datalake_assets.assets.keys import (
    NAMES,
    Names,
    checked,
    raw_archive,
    reports,
    sync,
    table,
    table_schema,
)
from datalake_assets.instance.dagster_private import latest_evaluations
from eventlake.catalog.base import CatalogPartition, Days
from eventlake.checks.freshness import check_freshness
from eventlake.checks.published import PARTIAL_CHECKS, Loaded, TableChecks
from eventlake.checks.view import OPTIONAL_RULES, SOURCE_RULES, TABLE_RULES
from eventlake.lake import Lake
from eventlake.rules.clock import now
from eventlake.rules.counts import TableReport, UnitReport
from eventlake.rules.types import TableSchema
from eventlake.runs.archive import Archive, list_archive
from eventlake.runs.context import Published
from eventlake.runs.unit import Window
from eventlake.runs.verify import CHECKS, CheckResult
from eventlake.settings.models import Source
from eventlake.state.report import RunFacts
from eventlake.state.source_state import read_state

_DAY = timedelta(days=1)
_RULES = CHECKS | TABLE_RULES | OPTIONAL_RULES | SOURCE_RULES

CODE_VERSION = "1"
"""Of the rules of loading; a higher number marks the event tables as outdated in Dagster."""

SYNCED = dg.DataVersion("synced")
"""The data version of every sync: what it has changed are the tables, each with its own."""

VERSION = "dagster/data_version"


@dataclass(frozen=True)
class TableDay:
    """A table on a day that a unit of work changed."""

    schema: TableSchema
    day: str
    report: TableReport
    metadata: metadata.Metadata
    is_newest: bool
    version: dg.DataVersion

    def materialization(
        self, names: Names, source: Source, with_columns: bool
    ) -> dg.AssetMaterialization:
        """Recorded by a run that has no output for the table: with the versions of an output, as
        Dagster would otherwise show the table as older than its sync."""
        shown = self.metadata
        if with_columns:
            shown = metadata.with_columns(shown, self.schema)
        return dg.AssetMaterialization(
            names.key(table(self.schema)),
            partition=self.day,
            metadata=shown,
            tags={
                VERSION: self.version.value,
                "dagster/data_version_is_user_provided": "true",
                "dagster/code_version": CODE_VERSION,
                **made_from(names.key(sync(source)), SYNCED),
            },
        )


@dataclass(frozen=True)
class RunEvents:
    """Creates the events of one source's runs."""

    lake: Lake
    source: Source
    names: Names = NAMES

    def __post_init__(self) -> None:
        object.__setattr__(self, "lake", self.lake.for_source(self.source))

    def current(self, tables: Iterable[TableSchema]) -> list[TableSchema]:
        """The current schemas: columns and types may have changed since the code was loaded."""
        known = read_state(self.lake.storage, self.source.id).tables
        return [known.get(table.key, table) for table in tables]

    def table_days(self, unit: Published, loaded: Loaded) -> Iterator[TableDay]:
        """The tables of a unit with their days in order, which are also added to `loaded`."""
        state = read_state(self.lake.storage, self.source.id)
        for key, report in unit.report.tables.items():
            schema, total = state.tables[key], state.rows.get(key, 0)
            newest = max(report.day_rows, default="")
            for days in _consecutive(report.day_rows):
                partitions = self._partitions(schema, (days[0], days[-1]))
                for day in days:
                    in_day = partitions.get(day, [])
                    rows = sum(partition.rows for partition in in_day)
                    shown = metadata.table_day(schema, report, day, rows, total)
                    loaded.add_day(key, day, in_day)
                    yield TableDay(schema, day, report, shown, day == newest, version_after(unit))

    def rows_by_day(self, schema: TableSchema, window: Window) -> dict[str, int]:
        """The rows of a table by day, in a range."""
        found = self._partitions(schema, window.days)
        return {day: sum(partition.rows for partition in found[day]) for day in found}

    def _partitions(self, schema: TableSchema, days: Days) -> dict[str, list[CatalogPartition]]:
        """The partitions of a table by day, from the first day to the last."""
        layout, by_day = self.source.date_partition, dict[str, list[CatalogPartition]]()
        for found in self.lake.catalog.partitions(schema.database, schema.name, days):
            by_day.setdefault(f"{layout.parse(found.values):%Y-%m-%d}", []).append(found)
        return by_day

    def of_unit(
        self, unit: Published, loaded: Loaded
    ) -> Iterator[dg.AssetMaterialization | dg.AssetCheckEvaluation]:
        """The events of a unit of work: tables, changed schemas, checks."""
        newest: dict[str, TableDay] = {}
        for touched in self.table_days(unit, loaded):
            newest[touched.schema.key] = touched
            yield touched.materialization(self.names, self.source, touched.is_newest)
        changed = [touched for touched in newest.values() if touched.report.new_columns]
        for touched in changed:
            version = unit.manifest.number
            yield self.of_schema(touched.schema, touched.report, version)
        for check in unit.checks:
            yield self.evaluation(check)

    def of_schema(
        self, schema: TableSchema, report: TableReport | None, version: int
    ) -> dg.AssetMaterialization:
        shown = metadata.schema_version(schema, report, version, self.names.key(table(schema)))
        return dg.AssetMaterialization(self.names.key(table_schema(schema)), metadata=shown)

    def of_report(self, run: RunFacts, done: UnitReport) -> dg.AssetMaterialization:
        return dg.AssetMaterialization(
            self.names.key(reports(self.source)),
            partition=run.day,
            metadata=self.report_metadata(run, done),
        )

    def report_metadata(self, run: RunFacts, done: UnitReport) -> metadata.Metadata:
        return metadata.report_totals(self.source, run, done, self.lake.storage)

    def of_published_checks(
        self, context: dg.OpExecutionContext | dg.AssetExecutionContext, loaded: Loaded
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The cheap part of the checks of published tables; the daily job does the rest.

        The data is published: the run does not fail if a check cannot be evaluated.
        """
        try:
            results = [check_freshness(self.lake, self.source, now())]
            if loaded.days:
                results += TableChecks(self.lake, self.source, now()).of_loaded(loaded)
            evaluations = [self.evaluation(result) for result in results]
            failed = _failed_before(context.instance, evaluations)
        except Exception as error:
            context.log.warning(f"Published tables are not checked after this run: {error}")
            return
        for one in evaluations:
            yield failed.get(one.asset_check_key, one) if one.passed else one

    def of_archive(self) -> dg.AssetObservation:
        """What is in the archive now, with a data version that changes with it."""
        found = list_archive(self.lake.storage, self.source)
        ignored = found.ignored(self.source, read_state(self.lake.storage, self.source.id))
        shown = metadata.archive(found, ignored, self.lake.storage, self.source)
        version = {VERSION: archive_version(found)}
        key = self.names.key(raw_archive(self.source))
        return dg.AssetObservation(key, metadata=shown, tags=version)

    def evaluation(self, check: CheckResult) -> dg.AssetCheckEvaluation:
        """The result of a check, for jobs that are not asset jobs."""
        return dg.AssetCheckEvaluation(**self._verdict(check), blocking=check.check in CHECKS)

    def check_result(self, check: CheckResult) -> dg.AssetCheckResult:
        """The result of a check, for the materialization of an asset."""
        return dg.AssetCheckResult(**self._verdict(check))

    def _verdict(self, check: CheckResult) -> dict[str, Any]:
        return {
            "asset_key": self.names.key(checked(check.table)),
            "check_name": check.check,
            "passed": check.passed,
            "metadata": metadata.evidence(check),
            "severity": dg.AssetCheckSeverity[check.severity.name],
            "description": _RULES[check.check],
        }


def _consecutive(days: Iterable[str]) -> Iterator[list[str]]:
    """Days in order, as lists without gaps."""
    run: list[str] = []
    for day in sorted(days):
        if run and date.fromisoformat(day) - date.fromisoformat(run[-1]) > _DAY:
            yield run
            run = []
        run.append(day)
    if run:
        yield run


def made_from(key: dg.AssetKey, version: dg.DataVersion) -> dict[str, str]:
    """The tags of a materialization for an asset that it was made from. Dagster sets them itself,
    but as of the beginning of a run, and only on outputs."""
    name = key.to_user_string()
    return {
        f"dagster/input_data_version/{name}": version.value,
        f"dagster/input_event_pointer/{name}": "NULL",
    }


def version_after(unit: Published) -> dg.DataVersion:
    """The data version of the tables and days that a unit of work changed."""
    return dg.DataVersion(f"{unit.manifest.number}")


def archive_version(found: Archive) -> str:
    """Changes when files are added, removed or changed: their number, bytes and newest time."""
    files = found.files.values()
    newest = max((file.modified_ns for file in files), default=0)
    return f"{len(files)}-{sum(file.size for file in files)}-{newest}"


def _failed_before(
    instance: dg.DagsterInstance, evaluations: Sequence[dg.AssetCheckEvaluation]
) -> dict[dg.AssetCheckKey, dg.AssetCheckEvaluation]:
    """Failures that only the daily job can clear: it also reads files and older partitions."""
    keys = [one.asset_check_key for one in evaluations if one.check_name in PARTIAL_CHECKS]
    latest = latest_evaluations(instance, keys)
    return {key: evaluation for key, evaluation in latest.items() if not evaluation.passed}

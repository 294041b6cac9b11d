"""What a run did, as Dagster's events: a materialization per table and day, checks, the report."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from datalake_assets.assets import metadata
from datalake_assets.assets.keys import (
    checked_key,
    raw_archive_key,
    reports_key,
    schema_key,
    table_key,
)
from eventlake.catalog.base import CatalogPartition
from eventlake.checks.published import Loaded
from eventlake.checks.view import SOURCE_RULES, TABLE_RULES
from eventlake.lake import Lake
from eventlake.rules.counts import TableReport, UnitReport
from eventlake.rules.types import TableSchema
from eventlake.runs.context import Published
from eventlake.runs.plan import list_archive
from eventlake.runs.unit import Window
from eventlake.runs.verify import CHECKS, CheckResult
from eventlake.settings.models import Source
from eventlake.state.report import RunFacts
from eventlake.state.source_state import read_state

_RULES = CHECKS | TABLE_RULES | SOURCE_RULES


@dataclass(frozen=True)
class TableDay:
    """A table on a day that a unit of work touched."""

    schema: TableSchema
    day: str
    report: TableReport
    metadata: metadata.Metadata
    partitions: Sequence[CatalogPartition]


@dataclass(frozen=True)
class RunEvents:
    """Makes the events of one source's runs."""

    lake: Lake
    source: Source

    def __post_init__(self) -> None:
        object.__setattr__(self, "lake", self.lake.for_source(self.source))

    def current(self, tables: Iterable[TableSchema]) -> list[TableSchema]:
        """Tables as they are by now: columns come, and types change, while code stays loaded."""
        known = read_state(self.lake.storage, self.source.id).tables
        return [known.get(table.key, table) for table in tables]

    def table_days(self, unit: Published) -> Iterator[TableDay]:
        state = read_state(self.lake.storage, self.source.id)
        for key, report in unit.report.tables.items():
            schema, total = state.tables[key], state.rows.get(key, 0)
            for day in report.day_rows:
                in_day = self.lake.catalog.partitions(schema.database, schema.name, (day, day))
                rows = sum(partition.rows for partition in in_day)
                shown = metadata.table_day(schema, report, day, rows, total)
                yield TableDay(schema, day, report, shown, in_day)

    def rows_by_day(self, schema: TableSchema, window: Window) -> dict[str, int]:
        """What the days of a range hold of a table."""
        layout, rows = self.source.date_partition, dict[str, int]()
        for found in self.lake.catalog.partitions(schema.database, schema.name, window.days):
            day = f"{layout.parse(found.values):%Y-%m-%d}"
            rows[day] = rows.get(day, 0) + found.rows
        return rows

    def of_unit(
        self, unit: Published, loaded: Loaded
    ) -> Iterator[dg.AssetMaterialization | dg.AssetCheckEvaluation]:
        """The events of a unit of work: tables, schemas that changed, checks."""
        newest: dict[str, TableDay] = {}
        loaded.add_manifest(unit.manifest)
        for touched in self.table_days(unit):
            loaded.add_day(touched.schema.key, touched.day, touched.partitions)
            newest[touched.schema.key] = max(
                touched, newest.get(touched.schema.key, touched), key=lambda t: t.day
            )
            yield dg.AssetMaterialization(
                table_key(touched.schema), partition=touched.day, metadata=touched.metadata
            )
        changed = [touched for touched in newest.values() if touched.report.new_columns]
        for touched in changed:
            version = unit.manifest.number
            shown = metadata.schema_version(touched.schema, touched.report, version)
            key = schema_key(touched.schema)
            yield dg.AssetMaterialization(key, partition=touched.day, metadata=shown)
        for check in unit.checks:
            yield check_evaluation(check)

    def of_report(self, run: RunFacts, done: UnitReport) -> dg.AssetMaterialization:
        return dg.AssetMaterialization(
            reports_key(self.source), partition=run.day, metadata=self.report_metadata(run, done)
        )

    def report_metadata(self, run: RunFacts, done: UnitReport) -> metadata.Metadata:
        totals = {
            "rows_in": done.rows_in,
            "rows_loaded": done.row_count,
            "duplicates": done.duplicates,
            "rejected": done.rejected,
            "suppressed": done.suppressed,
            "skipped": done.skipped,
            "raw_files": done.raw_files,
            "tables": len(done.tables),
        }
        return metadata.report_totals(run, totals, self.lake.storage)

    def of_archive(self) -> dg.AssetObservation:
        folders = list_archive(self.lake.storage, self.source).folders
        files = [file for stored in folders.values() for file in stored]
        shown = metadata.archive(files, self.lake.storage, self.source)
        return dg.AssetObservation(raw_archive_key(self.source), metadata=shown)


def check_evaluation(check: CheckResult) -> dg.AssetCheckEvaluation:
    """The verdict, from a job that is not of assets."""
    return dg.AssetCheckEvaluation(**_verdict(check), blocking=check.check in CHECKS)


def check_result(check: CheckResult) -> dg.AssetCheckResult:
    """The verdict, from the materialization of an asset."""
    return dg.AssetCheckResult(**_verdict(check))


def _verdict(check: CheckResult) -> dict[str, Any]:
    return {
        "asset_key": checked_key(check.table),
        "check_name": check.check,
        "passed": check.passed,
        "metadata": metadata.evidence(check),
        "severity": dg.AssetCheckSeverity[check.severity.name],
        "description": _RULES[check.check],
    }

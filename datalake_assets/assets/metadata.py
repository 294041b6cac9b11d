"""What the UI shows of an event: one function for each kind, with Dagster's reserved keys."""

from collections.abc import Mapping
from datetime import UTC, datetime

import dagster as dg

from eventlake.rules import paths
from eventlake.rules.counts import TableReport
from eventlake.rules.names import snake
from eventlake.rules.types import TableSchema
from eventlake.runs.verify import CheckResult
from eventlake.settings.models import Source
from eventlake.state.report import RunFacts
from eventlake.storage import Storage, StoredFile
from eventlake.upkeep.upkeep import UpkeepReport

Metadata = dict[str, dg.MetadataValue]


def column_schema(schema: TableSchema) -> dg.TableSchema:
    return dg.TableSchema(
        columns=[dg.TableColumn(c.name, c.type.sql, description=c.pointer) for c in schema.columns]
    )


def table_definition(source: Source, schema: TableSchema, storage: Storage) -> Metadata:
    """What is true of a table whatever runs."""
    folder = paths.table_folder(source.id, schema.table)
    return {
        "dagster/table_name": dg.MetadataValue.text(schema.key),
        "dagster/uri": dg.MetadataValue.text(storage.full(folder)),
        "dagster/column_schema": dg.MetadataValue.table_schema(column_schema(schema)),
    }


def table_day(
    schema: TableSchema, report: TableReport, day: str, day_rows: int, table_rows: int
) -> Metadata:
    """What a run did to a table on one day, and what day and table hold since."""
    new = ", ".join(f"{c.name} {c.type}" for c in report.new_columns)
    return {
        "dagster/row_count": dg.MetadataValue.int(table_rows),
        "dagster/partition_row_count": dg.MetadataValue.int(day_rows),
        "rows_loaded": dg.MetadataValue.int(report.day_rows.get(day, 0)),
        "duplicates_in_run": dg.MetadataValue.int(report.duplicates),
        "duplicates_with_other_payload": dg.MetadataValue.int(report.other_payload),
        "rejected_in_run": dg.MetadataValue.int(report.rejected),
        "suppressed_in_run": dg.MetadataValue.int(report.suppressed),
        "rescued_cells_in_run": dg.MetadataValue.int(report.rescued_cells),
        "files_in_run": dg.MetadataValue.int(report.files_written),
        "bytes_in_run": dg.MetadataValue.int(report.bytes_written),
        "new_columns": dg.MetadataValue.text(new or "none"),
        "dagster/column_schema": dg.MetadataValue.table_schema(column_schema(schema)),
    }


def schema_version(schema: TableSchema, report: TableReport | None, version: int) -> Metadata:
    """A table's entry in the catalog."""
    new = report.new_columns if report else ()
    return {
        "columns": dg.MetadataValue.int(len(schema.columns)),
        "new_columns": dg.MetadataValue.int(len(new)),
        "manifest": dg.MetadataValue.int(version),
        "dagster/table_name": dg.MetadataValue.text(schema.key),
        "dagster/column_schema": dg.MetadataValue.table_schema(column_schema(schema)),
    }


def report_totals(run: RunFacts, totals: Mapping[str, int], storage: Storage) -> Metadata:
    """A run's sync report in numbers that the UI plots."""
    path = paths.report(run.source_id, run.day, run.run_id)
    numbers = {name: dg.MetadataValue.int(value) for name, value in totals.items()}
    return {
        **numbers,
        "run_id": dg.MetadataValue.text(run.run_id),
        "report": dg.MetadataValue.path(storage.full(path)),
    }


def archive(files: list[StoredFile], storage: Storage, source: Source) -> Metadata:
    """The raw archive as it lies there."""
    shown: Metadata = {
        "files": dg.MetadataValue.int(len(files)),
        "bytes": dg.MetadataValue.int(sum(file.size for file in files)),
        "dagster/uri": dg.MetadataValue.text(storage.full(source.raw)),
    }
    if files:
        newest = max(file.modified_ns for file in files)
        shown["newest"] = dg.MetadataValue.timestamp(datetime.fromtimestamp(newest / 1e9, UTC))
    return shown


def upkeep_numbers(report: UpkeepReport) -> Metadata:
    """What an upkeep found and left, in numbers that the UI plots."""
    compacted = report.compacted
    shown: dict[str, int] = {
        "partitions_compacted": compacted.partitions,
        "files_compacted": compacted.files_before,
        "files_after_compaction": compacted.files_after,
        "bytes_compacted": compacted.bytes_before,
        "bytes_after_compaction": compacted.bytes_after,
        "index_days_dropped": len(report.index_days),
        "orphans_waiting": report.orphans.files,
    }
    for area, before in report.before.items():
        name, after = snake(area), report.after[area]
        shown |= {f"{name}_files_before": before.files, f"{name}_files_after": after.files}
        shown |= {f"{name}_bytes_before": before.bytes, f"{name}_bytes_after": after.bytes}
    for reason, gone in report.removed.items():
        shown |= {f"removed_{snake(reason)}_files": gone.files}
        shown |= {f"removed_{snake(reason)}_bytes": gone.bytes}
    told = {"warnings": dg.MetadataValue.md("\n".join(f"- {w}" for w in report.warnings))}
    return {
        **{name: dg.MetadataValue.int(value) for name, value in shown.items()},
        **(told if report.warnings else {}),
        "run_id": dg.MetadataValue.text(report.run_id),
    }


def evidence(check: CheckResult) -> Metadata:
    """The numbers a check's verdict rests on."""
    shown = {name: _shown(value) for name, value in check.evidence.items()}
    if run_id := check.evidence.get("dagster_run"):
        shown["dagster_run"] = dg.MetadataValue.dagster_run(run_id)
    return shown


def _shown(value: bool | int | float | str | tuple[str, ...]) -> dg.MetadataValue:
    match value:
        case bool():
            return dg.MetadataValue.bool(value)
        case int():
            return dg.MetadataValue.int(value)
        case float():
            return dg.MetadataValue.float(value)
        case str():
            return dg.MetadataValue.text(value)
        case _:
            return dg.MetadataValue.md("\n".join(f"- {one}" for one in value))

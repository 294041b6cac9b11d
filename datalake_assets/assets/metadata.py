"""Metadata of assets and events, with the keys that the Dagster UI knows."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import dagster as dg

from datalake_assets.instance.links import console_url
from eventlake.rules import paths
from eventlake.rules.counts import TableReport, UnitReport
from eventlake.rules.names import snake
from eventlake.rules.types import TableSchema
from eventlake.runs.archive import Archive, Ignored, archive_storage
from eventlake.runs.verify import CheckResult
from eventlake.settings.models import Source
from eventlake.state.report import RunFacts
from eventlake.storage import Storage
from eventlake.upkeep.upkeep import UpkeepReport

Metadata = dict[str, Any]

# What Markdown would make a link, an image, HTML, code or a cell of.
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`[]<>|"})


def as_text(text: str) -> str:
    """Text from elsewhere as one line of Markdown that shows it as it is."""
    return " ".join(text.split()).translate(_MARKDOWN)


def as_code(text: str) -> str:
    """Text from elsewhere as code in Markdown; the fence is longer than any within it."""
    line = " ".join(text.split())
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}" if longest else f"`{line}`"


def column_schema(schema: TableSchema) -> dg.TableSchema:
    return dg.TableSchema(columns=[_column(c.name, c.type.sql, c.pointer) for c in schema.columns])


@lru_cache(20_000)
def _column(name: str, type: str, pointer: str) -> dg.TableColumn:
    """Shared: most columns are in many tables, and the definitions have them all."""
    return dg.TableColumn(name, type, description=pointer)


def table_definition(source: Source, schema: TableSchema, storage: Storage) -> Metadata:
    """The metadata of a table that no run changes."""
    folder = paths.table_folder(source.id, schema.table)
    return {
        "dagster/table_name": schema.key,
        "dagster/uri": storage.full(folder),
        "dagster/column_schema": column_schema(schema),
        **_console(source, f"tables/{schema.database}/{schema.name}"),
    }


def _console(source: Source, page: str) -> Metadata:
    url = console_url(source)
    return {"console": dg.MetadataValue.url(f"{url}/{page}")} if url else {}


def table_day(
    schema: TableSchema, report: TableReport, day: str, day_rows: int, table_rows: int
) -> Metadata:
    """The effect of a run on a table on one day, and the rows of day and table after it. Not its
    columns, which are most of an event: Dagster shows those of the last event, else of the code."""
    new = ", ".join(f"{c.name} {c.type}" for c in report.new_columns)
    return {
        "dagster/row_count": table_rows,
        "dagster/partition_row_count": day_rows,
        "rows_loaded": report.day_rows.get(day, 0),
        "duplicates_in_run": report.duplicates,
        "duplicates_with_other_payload": report.other_payload,
        "rejected_in_run": report.rejected,
        "suppressed_in_run": report.suppressed,
        "rescued_cells_in_run": report.rescued_cells,
        "files_in_run": report.files_written,
        "bytes_in_run": report.bytes_written,
        "new_columns": new or "none",
    }


def with_columns(shown: Metadata, schema: TableSchema) -> Metadata:
    """The same with the columns of the table."""
    return {**shown, "dagster/column_schema": column_schema(schema)}


def schema_version(
    schema: TableSchema, report: TableReport | None, version: int, table: dg.AssetKey
) -> Metadata:
    """A table's entry in the catalog."""
    new = report.new_columns if report else ()
    lineage = {
        column.name: [dg.TableColumnDep(asset_key=table, column_name=column.name)]
        for column in schema.columns
    }
    return {
        "columns": len(schema.columns),
        "new_columns": len(new),
        "manifest": version,
        "dagster/table_name": schema.key,
        "dagster/column_schema": column_schema(schema),
        "dagster/column_lineage": dg.TableColumnLineage(lineage),
    }


def report_totals(source: Source, run: RunFacts, done: UnitReport, storage: Storage) -> Metadata:
    """The totals of a sync report, as numbers that the UI plots."""
    path = paths.report(run.source_id, run.day, run.run_id)
    return {
        "rows_in": done.rows_in,
        "rows_loaded": done.row_count,
        "duplicates": done.duplicates,
        "rejected": done.rejected,
        "suppressed": done.suppressed,
        "skipped": done.skipped,
        "raw_files": done.raw_files,
        "tables": len(done.tables),
        "run_id": run.run_id,
        "report": dg.MetadataValue.path(storage.full(path)),
        **_console(source, f"history/{run.run_id}"),
    }


def archive(
    found: Archive, ignored: Sequence[Ignored], storage: Storage, source: Source
) -> Metadata:
    """The current content of a raw archive, with the files that syncs ignore."""
    files = list(found.files.values())
    shown: Metadata = {
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "dagster/uri": archive_storage(storage, source).full(source.raw),
        "files_ignored": sum(one.files for one in ignored),
    }
    if ignored:
        shown["ignored"] = _listed(map(str, ignored))
    if files:
        newest = max(file.modified_ns for file in files)
        shown["newest"] = dg.MetadataValue.timestamp(datetime.fromtimestamp(newest / 1e9, UTC))
    return shown


def upkeep_numbers(report: UpkeepReport) -> Metadata:
    """The state before and after an upkeep, as numbers that the UI plots."""
    compacted = report.compacted
    shown: dict[str, int] = {
        "partitions_compacted": compacted.partitions,
        "files_compacted": compacted.files_before,
        "files_after_compaction": compacted.files_after,
        "bytes_compacted": compacted.bytes_before,
        "bytes_after_compaction": compacted.bytes_after,
        "files_moved_home": report.came_home.files,
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
    warnings = {"warnings": _listed(report.warnings)} if report.warnings else {}
    return {**shown, **warnings, "run_id": report.run_id}


def evidence(check: CheckResult) -> Metadata:
    """The evidence of a check result."""
    shown: Metadata = {
        name: _listed(value) if isinstance(value, tuple) else value
        for name, value in check.evidence.items()
    }
    if run_id := check.evidence.get("dagster_run"):
        shown["dagster_run"] = dg.MetadataValue.dagster_run(str(run_id))
    return shown


def _listed(lines: Iterable[str]) -> dg.MetadataValue:
    return dg.MetadataValue.md("\n".join(f"- {as_text(line)}" for line in lines))

"""Sync reports: the lines that `report.json` holds of a run."""

from datetime import datetime
from typing import Any

import msgspec

from eventlake.rules.counts import TableReport, UnitReport


class RunFacts(msgspec.Struct, frozen=True):
    """What every line of a run's report says alike."""

    workspace_id: str
    source_id: str
    database: str
    run_id: str
    start_time: datetime
    s3_bucket: str
    emr_cluster_id: str = ""
    dagster_run_id: str = ""
    replay: bool = False
    replay_from: datetime | None = None
    replay_to: datetime | None = None

    @property
    def day(self) -> str:
        return f"{self.start_time:%Y-%m-%d}"


class Failure(msgspec.Struct, frozen=True):
    error_code: str
    error: str


def report_lines(
    run: RunFacts, done: UnitReport, finish: datetime, failure: Failure | None = None
) -> list[dict[str, Any]]:
    """One line for the source and, unless the run failed, one for each table."""
    common = {
        "workspace_id": run.workspace_id,
        "source_id": run.source_id,
        "run_id": run.run_id,
        "start_time": _time(run.start_time),
        "finish_time": _time(finish),
        "duration_mins": int((finish - run.start_time).total_seconds() // 60),
        "status": "failed" if failure else "finished",
        "error": failure.error if failure else None,
        "error_code": failure.error_code if failure else None,
        "database": run.database,
        "replay": run.replay,
        "replay_from": _time(run.replay_from),
        "replay_to": _time(run.replay_to),
        "emr_cluster_id": run.emr_cluster_id,
        "s3_bucket": run.s3_bucket,
        "day": run.day,
        "dagster_run_id": run.dagster_run_id,
    }
    lines = [_source_line(common, done, _partitions(done) if failure and run.replay else None)]
    if failure is None:
        lines += [_table_line(common, table) for table in done.tables.values()]
    return [{key: value for key, value in line.items() if value is not None} for line in lines]


def _partitions(done: UnitReport) -> list[dict[str, str]]:
    """All partitions of all tables, each once: what a failed replay had published."""
    found = {tuple(p.items()): p for t in done.tables.values() for p in t.partitions}
    return [found[key] for key in sorted(found)]


def _source_line(
    common: dict[str, Any], done: UnitReport, partitions: list[dict[str, str]] | None
) -> dict[str, Any]:
    tables = done.tables.values()
    return {
        "type": "source",
        **common,
        "table_name": "",
        "partitions": partitions,
        "row_count": done.row_count,
        "is_new": False,
        "rows_in": done.rows_in,
        "duplicates": done.duplicates,
        "rejected": done.rejected,
        "suppressed": done.suppressed,
        "skipped": done.skipped,
        "rescued_cells": sum(table.rescued_cells for table in tables),
        "files_written": sum(table.files_written for table in tables),
        "bytes_written": sum(table.bytes_written for table in tables),
        "raw_files": done.raw_files,
    }


def _table_line(common: dict[str, Any], table: TableReport) -> dict[str, Any]:
    return {
        "type": "event",
        **common,
        "table_name": table.name,
        "partitions": list(table.partitions),
        "new_columns": [msgspec.structs.asdict(c) for c in table.new_columns] or None,
        "row_count": table.row_count,
        "is_new": table.is_new,
        "rows_in": table.rows_in,
        "duplicates": table.duplicates,
        "rejected": table.rejected,
        "suppressed": table.suppressed,
        "skipped": 0,
        "rescued_cells": table.rescued_cells,
        "files_written": table.files_written,
        "bytes_written": table.bytes_written,
    }


def report_json(lines: list[dict[str, Any]]) -> bytes:
    """One JSON object a line: what Hive's JSON serde reads."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}"

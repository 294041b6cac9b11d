"""The table of all sync reports: the results of all syncs and replays, for SQL."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from eventlake.catalog.base import CatalogColumn, CatalogTable
from eventlake.rules import paths
from eventlake.rules.counts import NewColumn

DATABASE = "__segment_datalake"
NAME = "sync_reports"

Time = Annotated[str, "timestamp"]


class ReportLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a report, with its keys in the order they are written; unset keys are left out.

    Keys with a default may be missing in reports of earlier versions.
    """

    type: str
    workspace_id: str = ""
    source_id: str = ""
    run_id: str = ""
    start_time: Time
    finish_time: Time
    duration_mins: int = 0
    status: str = ""
    error: str | UnsetType = UNSET
    error_code: str | UnsetType = UNSET
    database: str = ""
    replay: bool = False
    replay_from: Time | UnsetType = UNSET
    replay_to: Time | UnsetType = UNSET
    emr_cluster_id: str = ""
    s3_bucket: str = ""
    day: str = ""
    dagster_run_id: str = ""
    table_name: str = ""
    partitions: tuple[dict[str, str], ...] | UnsetType = UNSET
    new_columns: tuple[NewColumn, ...] | UnsetType = UNSET
    row_count: int = 0
    is_new: bool = False
    rows_in: int = 0
    duplicates: int = 0
    rejected: int = 0
    suppressed: int = 0
    skipped: int = 0
    rescued_cells: int = 0
    files_written: int = 0
    bytes_written: int = 0
    raw_files: int | UnsetType = UNSET
    ignored_files: int | UnsetType = UNSET
    ignored: tuple[str, ...] | UnsetType = UNSET
    rows_taken_along: int | UnsetType = UNSET
    to_replay: tuple[str, ...] | UnsetType = UNSET


_SQL_TYPES: dict[Any, str] = {
    str: "string",
    int: "bigint",
    bool: "boolean",
    Time: "timestamp",
    tuple[str, ...]: "array<string>",
    tuple[dict[str, str], ...]: "array<map<string,string>>",
    tuple[NewColumn, ...]: "array<struct<name:string,type:string>>",
}


def _columns(*names: str) -> tuple[CatalogColumn, ...]:
    sql = _SQL_TYPES | {type | UnsetType: name for type, name in _SQL_TYPES.items()}
    types = {field.name: sql[field.type] for field in msgspec.structs.fields(ReportLine)}
    return tuple(CatalogColumn(name, types[name]) for name in names)


# The first twenty are the original product's, in its order; ours follow. Never reorder: tables
# made by earlier versions keep their columns, new ones go to the end.
COLUMNS = _columns(
    *("type", "workspace_id", "run_id", "start_time", "finish_time", "duration_mins", "status"),
    *("error", "error_code", "table_name", "database", "partitions", "new_columns", "row_count"),
    *("is_new", "replay", "replay_from", "replay_to", "emr_cluster_id", "s3_bucket"),
    *("rows_in", "duplicates", "rejected", "suppressed", "skipped", "rescued_cells"),
    *("files_written", "bytes_written", "raw_files", "dagster_run_id"),
    *("ignored_files", "ignored", "rows_taken_along", "to_replay"),
)

SYNC_REPORTS = CatalogTable(
    database=DATABASE,
    name=NAME,
    columns=COLUMNS,
    partition_keys=("source_id", "day"),
    location=paths.reports_root(),
    format="json",
    comment="One line per sync or replay, and one per table it touched",
)

"""The table of all sync reports: what every sync and replay did, for SQL."""

from eventlake.catalog.base import Catalog, CatalogColumn, CatalogTable
from eventlake.rules import paths

DATABASE = "__segment_datalake"
NAME = "sync_reports"

# The first twenty are the original product's, in its order; ours follow. Never reorder: tables
# made by earlier versions keep their columns, new ones go to the end.
COLUMNS = (
    CatalogColumn("type", "string"),
    CatalogColumn("workspace_id", "string"),
    CatalogColumn("run_id", "string"),
    CatalogColumn("start_time", "timestamp"),
    CatalogColumn("finish_time", "timestamp"),
    CatalogColumn("duration_mins", "bigint"),
    CatalogColumn("status", "string"),
    CatalogColumn("error", "string"),
    CatalogColumn("error_code", "string"),
    CatalogColumn("table_name", "string"),
    CatalogColumn("database", "string"),
    CatalogColumn("partitions", "array<map<string,string>>"),
    CatalogColumn("new_columns", "array<struct<name:string,type:string>>"),
    CatalogColumn("row_count", "bigint"),
    CatalogColumn("is_new", "boolean"),
    CatalogColumn("replay", "boolean"),
    CatalogColumn("replay_from", "timestamp"),
    CatalogColumn("replay_to", "timestamp"),
    CatalogColumn("emr_cluster_id", "string"),
    CatalogColumn("s3_bucket", "string"),
    CatalogColumn("rows_in", "bigint"),
    CatalogColumn("duplicates", "bigint"),
    CatalogColumn("rejected", "bigint"),
    CatalogColumn("suppressed", "bigint"),
    CatalogColumn("skipped", "bigint"),
    CatalogColumn("rescued_cells", "bigint"),
    CatalogColumn("files_written", "bigint"),
    CatalogColumn("bytes_written", "bigint"),
    CatalogColumn("raw_files", "bigint"),
    CatalogColumn("dagster_run_id", "string"),
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


def ensure_reports_table(catalog: Catalog) -> None:
    """Make the table before the first report, so that asking for reports is never an error."""
    catalog.ensure_database(DATABASE)
    if not catalog.create_table(SYNC_REPORTS):
        catalog.append_columns(DATABASE, NAME, COLUMNS)

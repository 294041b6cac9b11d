"""The table of the record log: every record of every run, for SQL, as long as logs are kept.

The folder of a run also has its `metadata.json`, and query engines read all files of a folder. So a
partition is a list of the Parquet files of a run, in a folder of its own.
"""

from eventlake.catalog.base import Catalog, CatalogColumn, CatalogTable
from eventlake.catalog.sync_reports import DATABASE, SYNC_REPORTS
from eventlake.rules import paths

NAME = "sync_records"
LIST = "files.txt"
"""The file of a partition, which has the URI of a Parquet file in each line."""

COLUMNS = tuple(
    CatalogColumn(name, type)
    for name, type in (
        ("identifier", "string"),
        ("record_payload", "string"),
        ("operation", "string"),
        ("status", "string"),
        ("status_message", "string"),
        ("batch_started_at", "timestamp"),
        ("batch_ended_at", "timestamp"),
        ("raw_file", "string"),
        ("raw_line", "bigint"),
        ("table_name", "string"),
        ("partition", "string"),
        ("data_file", "string"),
    )
)

SYNC_RECORDS = CatalogTable(
    database=DATABASE,
    name=NAME,
    columns=COLUMNS,
    partition_keys=("source_id", "day", "run_id"),
    location=paths.listed_records(),
    format="symlink",
    comment="What happened to every record of every run",
)


def ensure_own_tables(catalog: Catalog) -> None:
    """Create the tables of reports and records before the first run, so that queries never fail."""
    tables = (SYNC_REPORTS, SYNC_RECORDS)
    catalog.ensure_database(DATABASE)
    for table, is_new in zip(tables, catalog.create_tables(tables), strict=True):
        if not is_new:
            catalog.append_columns(DATABASE, table.name, table.columns)

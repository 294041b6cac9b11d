"""Tables written by hand, and queries on sync reports as users write them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.catalog.base import CatalogColumn, CatalogPartition, CatalogTable
from eventlake.catalog.local import LocalCatalog
from eventlake.catalog.sync_reports import DATABASE, NAME
from eventlake.rules import paths
from eventlake.sql import LakeSql
from eventlake.storage import LocalStorage

COLUMNS = (
    CatalogColumn("message_id", "string"),
    CatalogColumn("received_at", "timestamp"),
    CatalogColumn("price", "decimal(38,6)"),
    CatalogColumn("n", "bigint"),
    CatalogColumn("paid", "boolean"),
)


class SmallLake:
    """A lake in a folder, its catalog, and SQL over it."""

    def __init__(self, root: Path) -> None:
        self.storage = LocalStorage(str(root))
        self.catalog = LocalCatalog(self.storage)
        self.sql = LakeSql(self.catalog, self.storage)

    def table(self, database: str, name: str, keys: tuple[str, ...] = ("day", "hr")) -> None:
        self.catalog.ensure_database(database)
        location = paths.table_folder("S1", name)
        self.catalog.create_table(CatalogTable(database, name, COLUMNS, keys, location))

    def hour(self, table: str, day: str, hr: str, rows: pa.Table, run: str | None = None) -> str:
        """Write a partition into its folder, or into that of a run, and register it."""
        partition = f"day={day}/hr={hr}"
        location = (
            paths.version_folder("S1", run, table, partition)
            if run
            else paths.partition_folder("S1", table, partition)
        )
        with self.storage.open_output(f"{location}/part-{run or 0}.parquet") as out:
            pq.write_table(rows, out)
        version = int(run) if run else 1
        entry = CatalogPartition((day, hr), location, version, rows=rows.num_rows, files=1)
        self.catalog.put_partitions("shop", table, [entry])
        return location

    def report(self, source_id: str, day: str, run_id: str, lines: list[dict[str, Any]]) -> None:
        """Write a sync report, one object a line, and register it."""
        text = "".join(json.dumps(line) + "\n" for line in lines)
        self.storage.write(paths.report(source_id, day, run_id), text.encode())
        location = paths.reports_folder(source_id, day)
        entry = CatalogPartition((source_id, day), location, 1)
        self.catalog.put_partitions(DATABASE, NAME, [entry])

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        answer = self.sql.query(sql)
        return list(zip(*(column.to_pylist() for column in answer.columns), strict=True))


ROWS_PER_DAY = """SELECT day,sum(row_count)
FROM "__segment_datalake"."sync_reports"
WHERE source_id='9IP56Shn6' and table_name='checkout_started'
GROUP BY day
ORDER BY day
"""


ROWS_PER_DAY_AND_TABLE = """SELECT day, table_name,sum(row_count)
FROM "__segment_datalake"."sync_reports"
WHERE source_id='9IP56Shn6' AND type='event'
GROUP BY day, table_name
ORDER BY day
"""


LAST_SUCCESS = """SELECT max(finish_time)
FROM "__segment_datalake"."sync_reports"
WHERE source_id='9IP56Shn6' AND status='finished' AND date(day) = CURRENT_DATE
LIMIT 1
"""


FAILURES = """SELECT run_id, status, error, error_code
FROM "__segment_datalake"."sync_reports"
WHERE source_id='9IP56Shn6' AND status='failed' AND date(day) >= (CURRENT_DATE - interval '2' day)
"""

"""One table in our catalog and in Hive's, read by Spark, by DuckDB and file by file by pyarrow."""

import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.catalog.base import CatalogColumn, CatalogPartition, CatalogTable
from eventlake.catalog.local import LocalCatalog
from eventlake.rules import paths
from eventlake.sql import LakeSql
from eventlake.storage import Storage
from tests.support.servers.hive import (
    Hive,
    add_columns,
    add_partition,
    create_table,
    move_partition,
)

DAY = "2026-10-01"


class SharedTable:
    """A table `shop.<name>` by day and hour; whatever happens to it is told to both catalogs."""

    def __init__(self, hive: Hive, storage: Storage, name: str, schema: pa.Schema) -> None:
        self.hive, self.storage, self.name = hive, storage, name
        self.catalog = LocalCatalog(storage)
        self.lake = LakeSql(self.catalog, storage)
        columns = tuple(CatalogColumn(f.name, HIVE_TYPES[f.type]) for f in schema)
        location = paths.table_folder("S1", name)
        self.table = CatalogTable("shop", name, columns, ("day", "hr"), location)
        self.catalog.create_table(self.table)
        hive.sql("CREATE DATABASE IF NOT EXISTS shop")
        hive.sql(create_table(self.table, storage))

    def put(self, hr: str, rows: pa.Table, run: str | None = None, file: str = "a") -> None:
        """Write a file into the partition's folder, or the partition into the folder of a run."""
        partition = f"day={DAY}/hr={hr}"
        location = (
            paths.version_folder("S1", run, self.name, partition)
            if run
            else paths.partition_folder("S1", self.name, partition)
        )
        with self.storage.open_output(f"{location}/{file}.parquet") as out:
            pq.write_table(rows, out, compression="zstd", store_schema=False)
        known = {p.values for p in self.catalog.partitions("shop", self.name)}
        entry = CatalogPartition((DAY, hr), location, version=int(run or 0))
        change = move_partition if entry.values in known else add_partition
        self.hive.sql(change(self.table, entry, self.storage))
        self.catalog.put_partitions("shop", self.name, [entry])

    def grow(self, name: str, kind: pa.DataType) -> None:
        column = CatalogColumn(name, HIVE_TYPES[kind])
        self.hive.sql(add_columns(self.table, [column]))
        self.catalog.append_columns("shop", self.name, [column])

    def by_spark(self) -> pa.Table:
        return self.hive.sql(f"SELECT * FROM shop.{self.name} ORDER BY message_id")

    def by_duckdb(self) -> pa.Table:
        return self.lake.query(f"SELECT * FROM shop.{self.name} ORDER BY message_id")

    def by_pyarrow(self) -> pa.Table:
        pieces = []
        for partition in self.catalog.partitions("shop", self.name):
            for file in self.storage.files(partition.location):
                piece = pq.read_table(self.storage.full(file.path), partitioning=None)
                for key, value in zip(("day", "hr"), partition.values, strict=True):
                    piece = piece.append_column(key, pa.array([value] * len(piece), pa.string()))
                pieces.append(piece)
        whole = pa.concat_tables(pieces, promote_options="default")
        names = [column.name for table in self.catalog.tables("shop") for column in table.columns]
        return whole.select([*names, "day", "hr"]).sort_by("message_id")


HIVE_TYPES = {
    pa.string(): "string",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.decimal128(38, 6): "decimal(38,6)",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
}

"""Spark through Hive, DuckDB and pyarrow agree on tables whose partitions lie anywhere.

That is what lets a replay write a partition to a new place and then move its location there.
All tests of Hive are in this module, so that it is started once.
"""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.catalog.base import CatalogColumn, CatalogPartition, CatalogTable
from eventlake.catalog.local import LocalCatalog
from eventlake.rules import paths
from eventlake.sql import LakeSql
from eventlake.storage import LocalStorage, Storage
from tests.support.query_page import BUCKET, examples, lake_on_aws
from tests.support.servers.aws import AwsServer
from tests.support.servers.hive import (
    Hive,
    add_columns,
    add_partition,
    as_glue_has_it,
    create_table,
    move_partition,
)

pytestmark = pytest.mark.spark

DAY = "2026-10-01"
HIVE_TYPES = {
    pa.string(): "string",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.decimal128(38, 6): "decimal(38,6)",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
}

SCHEMA = pa.schema(
    {
        "message_id": pa.string(),
        "received_at": pa.timestamp("us", tz="UTC"),
        "price": pa.decimal128(38, 6),
        "n": pa.int64(),
        "2fa_enabled": pa.bool_(),
        "name": pa.string(),
        "never_filled": pa.string(),
    }
)
KEYS = [pa.field("day", pa.string()), pa.field("hr", pa.string())]
BIG = Decimal("99999999999999999999999999999999.999999")
SMALL = Decimal("-99999999999999999999999999999999.999999")  # a minus sign alone would round
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
GAP = datetime(1582, 10, 10, 1, 2, 3, tzinfo=UTC)  # a day that Spark's old calendar did not have
EDGES = [
    ("m1", FIRST, BIG, 2**63 - 1, True, "a\0b", None),
    ("m2", GAP, SMALL, -(2**63), False, "", None),
    ("m3", LAST, Decimal("0.000001"), 0, None, "注册 😀", None),
    ("m4", None, None, None, None, None, None),
]


class SharedTable:
    """A table `shop.<name>` by day and hour; every change goes to both catalogs."""

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


def rows(schema: pa.Schema, *values: tuple[object, ...]) -> pa.Table:
    named = [dict(zip(schema.names, row, strict=False)) for row in values]
    return pa.Table.from_pylist(named, schema)


def content(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def test_values_at_their_limits_are_the_same_to_all(hive: Hive, tmp_path: Path) -> None:
    table = SharedTable(hive, LocalStorage(str(tmp_path)), "limits", SCHEMA)
    table.put("12", rows(SCHEMA, *EDGES), run="17")
    expected = pa.schema([*SCHEMA, *KEYS])
    for read in (table.by_spark, table.by_duckdb, table.by_pyarrow):
        answer = read()
        assert answer.schema.equals(expected), f"{read.__name__}: {answer.schema}"
        assert content(answer) == [(*row, DAY, "12") for row in EDGES], read.__name__


def test_a_moved_partition_is_read_from_its_new_location(hive: Hive, tmp_path: Path) -> None:
    few = pa.schema([SCHEMA.field("message_id"), SCHEMA.field("n")])
    table = SharedTable(hive, LocalStorage(str(tmp_path)), "moved", few)
    table.put("12", rows(few, ("old1", 1), ("old2", 2)))
    table.put("13", rows(few, ("kept", 3)))
    before = [("kept", 3, DAY, "13"), ("old1", 1, DAY, "12"), ("old2", 2, DAY, "12")]
    assert content(table.by_spark()) == before
    assert content(table.by_duckdb()) == before
    assert content(table.by_pyarrow()) == before

    table.put("12", rows(few, ("new1", 1)), run="17")  # the old file stays where it was
    table.put("14", rows(few, ("apart", 4)), run="17")  # a partition that never had a folder
    table.put("15", rows(few), run="17")  # and one without a row
    after = [("apart", 4, DAY, "14"), ("kept", 3, DAY, "13"), ("new1", 1, DAY, "12")]
    assert content(table.by_spark()) == after
    assert content(table.by_duckdb()) == after
    assert content(table.by_pyarrow()) == after


def test_a_new_column_is_null_in_older_files_and_there_in_newer_ones(
    hive: Hive, tmp_path: Path
) -> None:
    few = pa.schema([SCHEMA.field("message_id")])
    grown = few.append(pa.field("coupon", pa.string())).append(pa.field("at", SCHEMA.types[1]))
    table = SharedTable(hive, LocalStorage(str(tmp_path)), "grown", few)
    table.put("12", rows(few, ("old",)))
    table.put("13", rows(few, ("rewritten",)))
    table.grow("coupon", pa.string())
    table.grow("at", grown.types[2])
    table.put("12", rows(grown, ("late", "SAVE", LAST)), file="b")  # beside the old file
    table.put("13", rows(grown, ("rewritten", "NOW", None)), run="17")
    expected = [
        ("late", "SAVE", LAST, DAY, "12"),
        ("old", None, None, DAY, "12"),
        ("rewritten", "NOW", None, DAY, "13"),
    ]
    for read in (table.by_spark, table.by_duckdb, table.by_pyarrow):
        answer = read()
        assert answer.schema.equals(pa.schema([*grown, *KEYS])), read.__name__
        assert content(answer) == expected, read.__name__


def test_conditions_on_keys_and_columns_find_the_same_rows(hive: Hive, tmp_path: Path) -> None:
    table = SharedTable(hive, LocalStorage(str(tmp_path)), "filtered", SCHEMA)
    table.put("12", rows(SCHEMA, *EDGES[:2]), run="17")
    table.put("13", rows(SCHEMA, *EDGES[2:]))
    for condition, found in [
        ("hr = '12'", ["m1", "m2"]),
        (f"day = '{DAY}' AND hr > '12'", ["m3", "m4"]),
        ("price = 0.000001", ["m3"]),
        (f"price = {BIG}", ["m1"]),
        ("received_at < TIMESTAMP '1582-10-11 00:00:00'", ["m1", "m2"]),
        ("name = ''", ["m2"]),
        ("n IS NULL", ["m4"]),
    ]:
        sql = f"SELECT message_id FROM shop.filtered WHERE {condition} ORDER BY message_id"
        by_duckdb = table.lake.query(sql)
        assert by_duckdb["message_id"].to_pylist() == found, condition
        assert hive.sql(sql)["message_id"].to_pylist() == found, condition


def test_hives_own_serde_reads_all_types_but_timestamps(hive: Hive, tmp_path: Path) -> None:
    """The known limit of 64-bit timestamps: Hive 2 wants INT96, which everything else gave up."""
    table = SharedTable(hive, LocalStorage(str(tmp_path)), "serde", SCHEMA)
    table.put("12", rows(SCHEMA, *EDGES), run="17")
    hive.sql("SET spark.sql.hive.convertMetastoreParquet=false")
    try:
        names = "message_id, price, n, `2fa_enabled`, name, never_filled, day, hr"
        answer = hive.sql(f"SELECT {names} FROM shop.serde ORDER BY message_id")
        assert content(answer) == [(row[0], *row[2:], DAY, "12") for row in EDGES]
        with pytest.raises(RuntimeError, match="TimestampWritable"):
            hive.sql("SELECT received_at FROM shop.serde")
    finally:
        hive.sql("SET spark.sql.hive.convertMetastoreParquet=true")


def test_what_the_query_page_asks_of_tables_in_glue_has_the_answers_of_datalake_sql(
    tmp_path: Path, aws: AwsServer, hive: Hive
) -> None:
    lake = lake_on_aws(tmp_path, aws)
    copy = tmp_path / "copy of the bucket"
    for file in lake.storage.files("segment-data"):
        target = copy / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(lake.storage.read(file.path) or b"")
    here = (f"s3://{BUCKET}", str(copy))

    hive.sql("CREATE DATABASE ios_prod")
    for name in ("identify", "track_application_opened", "track_order_completed"):
        for statement in as_glue_has_it(aws, name):
            hive.sql(statement.replace(*here))
    sql = LakeSql(lake.catalog, lake.storage)
    asked = 0
    for example in examples("spark"):
        answer = hive.sql(example.text.replace(*here))
        if example.text.startswith("SELECT"):
            assert len(answer) > 0, example
        if "duckdb" in example.runs:
            assert answer.to_pylist() == sql.query(example.text).to_pylist(), example
            asked += 1
    assert asked == 4

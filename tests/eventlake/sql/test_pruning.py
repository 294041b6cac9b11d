"""A condition on partition keys keeps the other partitions untouched, and never changes rows."""

from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pytest

from eventlake.catalog.base import CatalogPartition, CatalogTable
from eventlake.sql.statement import needed_partitions, parse
from tests.support.lakes.small_lake import COLUMNS, SmallLake

TODAY = f"{datetime.now(UTC):%Y-%m-%d}"
YESTERDAY = f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d}"
ORDERS = CatalogTable("shop", "orders", COLUMNS, ("day", "hr"), "orders")
HOURS = [
    CatalogPartition((day, hr), f"{day}/{hr}", 1)
    for day in ("2026-10-01", "2026-10-02", YESTERDAY, TODAY)
    for hr in ("00", "12")
]


def needed(sql: str) -> list[str]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = needed_partitions(connection, parse(connection, sql), ORDERS, HOURS)
    return [partition.location for partition in found]


ALL = [partition.location for partition in HOURS]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("day = '2026-10-01'", ["2026-10-01/00", "2026-10-01/12"]),
        ("o.day = '2026-10-01' AND hr > '05'", ["2026-10-01/12"]),
        ("day = '2026-10-01' AND n > 5 AND hr = '00'", ["2026-10-01/00"]),
        ("day IN ('2026-10-01', '2026-10-09') AND hr LIKE '1%'", ["2026-10-01/12"]),
        ("day BETWEEN '2026-10-02' AND '2026-10-31' AND hr <> '00'", ["2026-10-02/12"]),
        ("(day = '2026-10-01' OR hr = '12') AND day < '2026-10-03'", None),
        ("date(day) = CURRENT_DATE AND hr = '12'", [f"{TODAY}/12"]),
        ("date(day) >= (CURRENT_DATE - interval '1' day) AND hr = '00'", None),
        ("day || 'T' || hr = '2026-10-02T12'", ["2026-10-02/12"]),
        ("day = '1999-01-01'", []),
    ],
)
def test_conditions_on_keys_leave_out_partitions(
    condition: str, expected: list[str] | None
) -> None:
    if expected is None:
        expected = (
            [f"{YESTERDAY}/00", f"{TODAY}/00"]
            if "CURRENT" in condition
            else ["2026-10-01/00", "2026-10-01/12", "2026-10-02/12"]
        )
    assert needed(f"SELECT * FROM shop.orders o WHERE {condition}") == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM shop.orders",
        "SELECT * FROM shop.orders WHERE n = 1",
        "SELECT * FROM shop.orders WHERE day = '2026-10-01' OR n = 1",
        "SELECT * FROM shop.orders WHERE day = message_id",
        "SELECT * FROM shop.orders WHERE day = (SELECT max(day) FROM shop.orders)",
        "SELECT * FROM shop.orders WHERE day = '2026-10-01' UNION ALL SELECT * FROM shop.orders",
        "SELECT * FROM shop.orders a JOIN shop.orders b USING (n) WHERE a.day = '2026-10-01'",
        "SELECT * FROM shop.orders TABLESAMPLE 5 ROWS WHERE day = '2026-10-01'",
        "SELECT * FROM shop.orders o(day) WHERE day = '2026-10-01'",
        "SELECT (SELECT count(*) FROM shop.orders i WHERE i.day <> o.day) FROM range(3) o(day)",
        "SELECT * FROM shop.orders WHERE CAST(day AS INTEGER) = 1",
        "DESCRIBE shop.orders",
    ],
)
def test_in_doubt_every_partition_is_needed(sql: str) -> None:
    assert needed(sql) == ALL


def test_each_place_that_reads_a_table_adds_what_it_needs() -> None:
    assert needed(
        "WITH a AS (SELECT * FROM shop.orders WHERE day = '2026-10-01' AND hr = '00') "
        "SELECT * FROM a UNION ALL SELECT * FROM orders WHERE day = '2026-10-02' AND hr = '12'"
    ) == ["2026-10-01/00", "2026-10-02/12"]


def test_only_the_partitions_asked_for_are_opened(lake: SmallLake) -> None:
    lake.table("shop", "orders")
    for day in ("2026-10-01", "2026-10-02"):
        lake.hour("orders", day, "00", pa.table({"message_id": [day]}))
    broken = lake.hour("orders", "2026-10-03", "00", pa.table({"message_id": ["x"]}))
    lake.storage.write(f"{broken}/part-0.parquet", b"would fail if it were opened")
    assert lake.ask("SELECT message_id FROM shop.orders WHERE date(day) < '2026-10-02'") == [
        ("2026-10-01",)
    ]
    # In a join DuckDB hands the condition to Arrow, which knows the keys of every file.
    assert lake.ask(
        "SELECT a.message_id FROM shop.orders a JOIN range(1) ON true WHERE a.day = '2026-10-02'"
    ) == [("2026-10-02",)]

"""SQL over event tables, also while a column is being retyped; only needed files are read."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa
import pytest

import eventlake.sql.scan
from eventlake.catalog.base import CatalogColumn, CatalogPartition, CatalogTable
from eventlake.catalog.local import LocalCatalog
from eventlake.rules.errors import StateError
from eventlake.sql import LakeSql
from eventlake.sql.statement import needed_partitions, parse
from tests.support.lakes.small_lake import COLUMNS, SmallLake

NOON = datetime(2026, 10, 1, 12, 30, tzinfo=UTC)


def rows(*ids: str, **columns: pa.Array) -> pa.Table:
    return pa.table({"message_id": pa.array(ids, pa.string()), **columns})


def test_a_table_without_partitions_has_columns_but_no_rows(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    answer = lake.sql.query("SELECT * FROM shop.track_order")
    assert answer.num_rows == 0
    assert answer.schema == pa.schema(
        {
            "message_id": pa.string(),
            "received_at": pa.timestamp("us", tz="UTC"),
            "price": pa.decimal128(38, 6),
            "n": pa.int64(),
            "paid": pa.bool_(),
            "day": pa.string(),
            "hr": pa.string(),
        }
    )


def test_values_come_back_exactly_and_missing_columns_are_null(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    largest = Decimal("99999999999999999999999999999999.999999")
    full = rows(
        "a",
        price=pa.array([largest], pa.decimal128(38, 6)),
        received_at=pa.array([NOON], pa.timestamp("us", tz="UTC")),
        n=pa.array([2**63 - 1]),
        paid=pa.array([True]),
    )
    lake.hour("track_order", "2026-10-01", "12", full)
    lake.hour("track_order", "2026-10-01", "13", rows("b"))
    assert lake.ask("SELECT * FROM shop.track_order ORDER BY message_id") == [
        ("a", NOON, largest, 2**63 - 1, True, "2026-10-01", "12"),
        ("b", None, None, None, None, "2026-10-01", "13"),
    ]
    assert lake.ask(f"SELECT hr FROM shop.track_order WHERE price = {largest}") == [("12",)]
    assert lake.ask("SELECT hr FROM shop.track_order WHERE price IS NULL") == [("13",)]
    assert lake.ask("SELECT hr FROM shop.track_order WHERE paid IS DISTINCT FROM true") == [("13",)]


def test_the_catalog_decides_which_columns_there_are(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    lake.hour("track_order", "2026-10-01", "12", rows("a", secret=pa.array(["x"])))
    lake.catalog.append_columns("shop", "track_order", [CatalogColumn("coupon", "string")])
    assert lake.ask("SELECT message_id, coupon FROM shop.track_order") == [("a", None)]
    assert "secret" not in lake.sql.query("SELECT * FROM shop.track_order").column_names


def test_a_moved_partition_is_read_at_its_new_place_alone(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    lake.hour("track_order", "2026-10-01", "12", rows("a", "b"))
    lake.hour("track_order", "2026-10-01", "13", rows("c"))
    lake.hour("track_order", "2026-10-01", "12", rows("a2"), run="1790000000000000000")
    found = lake.ask("SELECT message_id, day, hr FROM shop.track_order ORDER BY ALL")
    assert found == [("a2", "2026-10-01", "12"), ("c", "2026-10-01", "13")]


def test_every_file_of_a_location_counts_and_nothing_else_does(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    location = lake.hour("track_order", "2026-10-01", "12", rows("a"))
    data = lake.storage.read(f"{location}/part-0.parquet")
    assert data is not None
    for name in ("part-1.parquet", "_part-2.parquet", ".part-3.parquet", "sub/part-4.parquet"):
        lake.storage.write(f"{location}/{name}", data)
    lake.storage.write(f"{location}/_SUCCESS", b"")
    assert lake.ask("SELECT count(*) FROM shop.track_order") == [(2,)]


@pytest.mark.parametrize("damaged", [False, True])
def test_a_damaged_or_missing_file_is_named(lake: SmallLake, damaged: bool) -> None:
    lake.table("shop", "track_order")
    location = lake.hour("track_order", "2026-10-01", "12", rows("a"))
    lake.hour("track_order", "2026-10-02", "12", rows("b"))
    if damaged:
        lake.storage.write(f"{location}/part-0.parquet", b"not Parquet")
        reason = r"day=2026-10-01/hr=12/part-0\.parquet"
    else:
        lake.storage.delete_folder(location)
        reason = rf"day=2026-10-01/hr=12 of shop\.track_order.*{location}"
    with pytest.raises(StateError, match=reason):
        lake.ask("SELECT * FROM shop.track_order")
    assert lake.ask("SELECT message_id FROM shop.track_order WHERE day > '2026-10-01'") == [("b",)]


def test_many_partitions_are_each_read_once(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    for day in ("2026-10-01", "2026-10-02", "2026-10-03"):
        for hour in range(24):
            run = "2" if hour == 7 else None
            lake.hour("track_order", day, f"{hour:02}", rows(f"{day}T{hour:02}"), run)
    counts = lake.ask("SELECT count(*), count(DISTINCT message_id) FROM shop.track_order")
    assert counts == [(72, 72)]
    assert lake.ask(
        "SELECT hr, min(message_id), count(*) FROM shop.track_order WHERE hr = '07' GROUP BY hr"
    ) == [("07", "2026-10-01T07", 3)]


def test_keys_in_other_layouts_are_columns_too(lake: SmallLake) -> None:
    lake.table("shop", "page", keys=("year", "month", "day"))
    assert lake.sql.query("FROM shop.page").column_names[-3:] == ["year", "month", "day"]


def test_times_are_of_utc(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    lake.table("shop", "track_order")
    late = datetime(2026, 10, 1, 23, 59, tzinfo=UTC)
    received = pa.array([late], pa.timestamp("us", tz="UTC"))
    lake.hour("track_order", "2026-10-01", "23", rows("a", received_at=received))
    assert lake.ask(
        "SELECT CAST(date(received_at) AS VARCHAR), date_part('hour', received_at) "
        "FROM shop.track_order WHERE received_at >= '2026-10-01 23:59:00'"
    ) == [("2026-10-01", 23)]


@dataclass(frozen=True)
class Switching(LocalCatalog):
    """Like Glue, it changes types and partitions one after the other, and marks the table."""

    looks: list[int] = field(default_factory=list)
    over_after: int = 3

    def table(self, database: str, name: str) -> CatalogTable | None:
        found = super().table(database, name)
        self.looks.append(len(self.looks))
        if found is None or len(self.looks) > self.over_after:
            return found
        return msgspec.structs.replace(found, retyped=-7)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    monkeypatch.setattr(eventlake.sql.scan, "_WAITS", (0, 0, 0, 0, 0))
    small = SmallLake(tmp_path)
    small.table("shop", "orders")
    return small


def test_a_query_waits_for_the_end_of_a_type_change(small: SmallLake) -> None:
    catalog = Switching(small.storage)
    assert len(LakeSql(catalog, small.storage).query("SELECT * FROM shop.orders")) == 0
    assert len(catalog.looks) > catalog.over_after
    endless = LakeSql(Switching(small.storage, over_after=99), small.storage)
    with pytest.raises(StateError, match=r"shop\.orders are changing their types.*recover"):
        endless.query("SELECT * FROM shop.orders")


TODAY = f"{datetime.now(UTC):%Y-%m-%d}"
YESTERDAY = f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d}"
ORDERS = CatalogTable("shop", "orders", COLUMNS, ("day", "hr"), "orders")
DATES = ("2026-10-01", "2026-10-02", YESTERDAY, TODAY)
HOURS = [CatalogPartition((d, hr), f"{d}/{hr}", 1) for d in DATES for hr in ("00", "12")]


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
        (
            "(day = '2026-10-01' OR hr = '12') AND day < '2026-10-03'",
            ["2026-10-01/00", "2026-10-01/12", "2026-10-02/12"],
        ),
        ("date(day) = CURRENT_DATE AND hr = '12'", [f"{TODAY}/12"]),
        (
            "date(day) >= (CURRENT_DATE - interval '1' day) AND hr = '00'",
            [f"{YESTERDAY}/00", f"{TODAY}/00"],
        ),
        ("day || 'T' || hr = '2026-10-02T12'", ["2026-10-02/12"]),
        ("day = '1999-01-01'", []),
    ],
)
def test_conditions_on_keys_select_partitions(condition: str, expected: list[str]) -> None:
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


def test_only_the_selected_partitions_are_opened(lake: SmallLake) -> None:
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

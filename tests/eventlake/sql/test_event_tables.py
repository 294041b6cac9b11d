"""Event tables are read as the catalog describes them, from where it says they lie."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from eventlake.catalog.base import CatalogColumn
from eventlake.rules.errors import StateError
from tests.support.lakes.small_lake import SmallLake

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


def test_a_column_that_only_the_catalog_has_is_null(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    lake.hour("track_order", "2026-10-01", "12", rows("a"))
    lake.catalog.append_columns("shop", "track_order", [CatalogColumn("coupon", "string")])
    assert lake.ask("SELECT message_id, coupon FROM shop.track_order") == [("a", None)]


def test_a_column_that_only_the_files_have_is_not_shown(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    lake.hour("track_order", "2026-10-01", "12", rows("a", secret=pa.array(["x"])))
    assert "secret" not in lake.sql.query("SELECT * FROM shop.track_order").column_names


def test_a_moved_partition_is_read_at_its_new_place_alone(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    lake.hour("track_order", "2026-10-01", "12", rows("a", "b"))
    lake.hour("track_order", "2026-10-01", "13", rows("c"))
    lake.hour("track_order", "2026-10-01", "12", rows("a2"), run="1790000000000000000")
    assert lake.ask("SELECT message_id, day, hr FROM shop.track_order ORDER BY ALL") == [
        ("a2", "2026-10-01", "12"),
        ("c", "2026-10-01", "13"),
    ]


def test_every_file_of_a_location_counts_and_nothing_else_does(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    location = lake.hour("track_order", "2026-10-01", "12", rows("a"))
    data = lake.storage.read(f"{location}/part-0.parquet")
    assert data is not None
    for name in ("part-1.parquet", "_part-2.parquet", ".part-3.parquet", "sub/part-4.parquet"):
        lake.storage.write(f"{location}/{name}", data)
    lake.storage.write(f"{location}/_SUCCESS", b"")
    assert lake.ask("SELECT count(*) FROM shop.track_order") == [(2,)]


def test_a_location_without_files_is_named(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    location = lake.hour("track_order", "2026-10-01", "12", rows("a"))
    lake.hour("track_order", "2026-10-02", "12", rows("b"))
    lake.storage.delete_folder(location)
    with pytest.raises(StateError, match=rf"day=2026-10-01/hr=12 of shop\.track_order.*{location}"):
        lake.ask("SELECT * FROM shop.track_order")
    assert lake.ask("SELECT message_id FROM shop.track_order WHERE day > '2026-10-01'") == [("b",)]


def test_a_damaged_file_is_named(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    location = lake.hour("track_order", "2026-10-01", "12", rows("a"))
    lake.storage.write(f"{location}/part-0.parquet", b"not Parquet")
    with pytest.raises(StateError, match=r"day=2026-10-01/hr=12/part-0\.parquet"):
        lake.ask("SELECT * FROM shop.track_order")


def test_many_partitions_are_each_read_once(lake: SmallLake) -> None:
    lake.table("shop", "track_order")
    for day in ("2026-10-01", "2026-10-02", "2026-10-03"):
        for hour in range(24):
            run = "2" if hour == 7 else None
            lake.hour("track_order", day, f"{hour:02}", rows(f"{day}T{hour:02}"), run)
    assert lake.ask("SELECT count(*), count(DISTINCT message_id) FROM shop.track_order") == [
        (72, 72)
    ]
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

"""The embedded catalog keeps what it was told, in whatever order and however often."""

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from lake import paths
from lake.catalog.base import CatalogColumn, CatalogPartition, CatalogTable
from lake.catalog.local import LocalCatalog
from lake.errors import StateError
from lake.storage import Storage

ORDERS = CatalogTable(
    database="shop",
    name="track_order",
    columns=(CatalogColumn("message_id", "string", "/messageId"),),
    partition_keys=("day", "hr"),
    location="segment-data/data/S1/segment_type=track_order",
    comment="Order",
    parameters={"source_id": "S1"},
)
HOUR = ("2026-10-01", "07")


@pytest.fixture
def catalog(tmp_path: Path) -> LocalCatalog:
    catalog = LocalCatalog(Storage(str(tmp_path)))
    catalog.ensure_database("shop")
    catalog.create_table(ORDERS)
    return catalog


def at(location: str, version: int, values: tuple[str, ...] = HOUR) -> CatalogPartition:
    return CatalogPartition(values, location, version, rows=3, bytes=100, files=1)


def locations(catalog: LocalCatalog) -> list[str]:
    return [partition.location for partition in catalog.partitions("shop", "track_order")]


def test_an_empty_lake_has_an_empty_catalog(tmp_path: Path) -> None:
    catalog = LocalCatalog(Storage(str(tmp_path)))
    assert catalog.databases() == []
    assert catalog.tables("shop") == []
    assert catalog.table("shop", "track_order") is None
    assert list(tmp_path.iterdir()) == []


def test_a_table_comes_back_as_it_was_made(catalog: LocalCatalog) -> None:
    assert catalog.databases() == ["shop"]
    assert catalog.tables("shop") == [ORDERS]
    assert catalog.table("shop", "track_order") == ORDERS
    assert catalog.partitions("shop", "track_order") == []


def test_making_a_table_again_leaves_it_alone(catalog: LocalCatalog) -> None:
    other = CatalogTable("shop", "track_order", (), ("day",), "elsewhere")
    assert catalog.create_table(other) is False
    catalog.ensure_database("shop")
    assert catalog.table("shop", "track_order") == ORDERS


def test_new_columns_go_to_the_end_and_known_ones_keep_place_and_type(
    catalog: LocalCatalog,
) -> None:
    new = [
        CatalogColumn("price", "decimal(38,6)", "/properties/price"),
        CatalogColumn("message_id", "bigint"),
        CatalogColumn("at", "timestamp"),
    ]
    catalog.append_columns("shop", "track_order", new)
    catalog.append_columns("shop", "track_order", reversed(new))
    table = catalog.table("shop", "track_order")
    assert table is not None
    assert [(c.name, c.type) for c in table.columns] == [
        ("message_id", "string"),
        ("price", "decimal(38,6)"),
        ("at", "timestamp"),
    ]


def test_a_partition_moves_when_a_later_manifest_says_so(catalog: LocalCatalog) -> None:
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    catalog.put_partitions("shop", "track_order", [at("moved", 2)])
    assert catalog.partitions("shop", "track_order") == [at("moved", 2)]


def test_a_late_applier_does_not_move_a_partition_back(catalog: LocalCatalog) -> None:
    catalog.put_partitions("shop", "track_order", [at("moved", 2)])
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    assert locations(catalog) == ["moved"]


def test_the_same_manifest_may_be_applied_again(catalog: LocalCatalog) -> None:
    for location in ("first", "corrected"):
        catalog.put_partitions("shop", "track_order", [at(location, 1)])
    assert locations(catalog) == ["corrected"]


def test_a_dropped_partition_comes_back_only_by_a_later_manifest(catalog: LocalCatalog) -> None:
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    catalog.drop_partitions("shop", "track_order", [HOUR], version=3)
    catalog.put_partitions("shop", "track_order", [at("late", 2)])
    assert locations(catalog) == []
    catalog.put_partitions("shop", "track_order", [at("again", 4)])
    assert locations(catalog) == ["again"]


def test_a_partition_is_dropped_before_its_late_creation(catalog: LocalCatalog) -> None:
    catalog.drop_partitions("shop", "track_order", [list(HOUR)], version=2)
    catalog.put_partitions("shop", "track_order", [at("late", 1)])
    assert locations(catalog) == []


def test_an_old_drop_leaves_a_newer_partition(catalog: LocalCatalog) -> None:
    catalog.put_partitions("shop", "track_order", [at("newer", 2)])
    catalog.drop_partitions("shop", "track_order", [HOUR], version=1)
    assert locations(catalog) == ["newer"]


@pytest.mark.parametrize(
    ("keys", "values", "day"),
    [
        (("day", "hr"), ("2026-10-31", "23"), "2026-10-31"),
        (("year", "month", "day", "hr"), ("2026", "10", "31", "23"), "2026-10-31"),
        (("year", "month", "day"), ("2026", "10", "31"), "2026-10-31"),
        (("day",), ("2026-10-31",), "2026-10-31"),
        (("source_id", "day"), ("S1", "2026-10-31"), "2026-10-31"),
    ],
)
def test_partitions_are_found_by_day_in_every_layout(
    tmp_path: Path, keys: tuple[str, ...], values: tuple[str, ...], day: str
) -> None:
    catalog = LocalCatalog(Storage(str(tmp_path)))
    catalog.create_table(CatalogTable("shop", "t", (), keys, "t"))
    catalog.put_partitions("shop", "t", [at("here", 1, values)])
    assert len(catalog.partitions("shop", "t", (day, day))) == 1
    assert catalog.partitions("shop", "t", ("2026-10-01", "2026-10-30")) == []
    assert catalog.partitions("shop", "t", ("2026-11-01", "2026-11-30")) == []
    assert len(catalog.partitions("shop", "t", ("2026-09-15", "2026-11-15"))) == 1


def test_partitions_come_in_the_order_of_their_values(catalog: LocalCatalog) -> None:
    days = ["2026-11-01", "2026-09-30", "2026-10-02"]
    catalog.put_partitions("shop", "track_order", [at(d, 1, (d, "00")) for d in days])
    assert locations(catalog) == sorted(days)


def test_changing_a_table_that_does_not_exist_is_refused(catalog: LocalCatalog) -> None:
    with pytest.raises(StateError, match=r"shop\.nope is not in the catalog"):
        catalog.put_partitions("shop", "nope", [at("x", 1)])
    with pytest.raises(StateError, match=r"shop\.nope is not in the catalog"):
        catalog.append_columns("shop", "nope", [])
    assert [table.name for table in catalog.tables("shop")] == ["track_order"]


@pytest.mark.parametrize(
    "path",
    [
        paths.catalog_table_file("shop", "track_order"),
        paths.catalog_month_file("shop", "track_order", "2026-10"),
    ],
)
def test_a_file_of_a_newer_format_is_refused_and_left_as_it_is(
    catalog: LocalCatalog, path: str
) -> None:
    newer = json.dumps({"format_version": 2, "table": "in some other shape"}).encode()
    catalog.storage.write(path, newer)
    with pytest.raises(StateError, match="has format version 2; this release knows up to 1"):
        catalog.put_partitions("shop", "track_order", [at("x", 1)])
    with pytest.raises(StateError, match="format version 2"):
        catalog.partitions("shop", "track_order")
    assert catalog.storage.read(path) == newer


def test_a_damaged_file_is_named(catalog: LocalCatalog) -> None:
    catalog.storage.write(paths.catalog_table_file("shop", "track_order"), b'{"format_version": 1')
    with pytest.raises(StateError, match=r"shop/track_order/table\.json cannot be read"):
        catalog.tables("shop")


def test_applying_again_writes_nothing(catalog: LocalCatalog) -> None:
    def stamp() -> str:
        [file] = catalog.storage.files(paths.catalog_months("shop", "track_order"))
        return file.stamp

    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    before = stamp()
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    assert stamp() == before


def put_hours(root: str, day: str) -> None:
    catalog = LocalCatalog(Storage(root))
    for hour in range(24):
        values = (day, f"{hour:02}")
        catalog.put_partitions("shop", "track_order", [at("/".join(values), 1, values)])
        catalog.append_columns("shop", "track_order", [CatalogColumn(f"c_{day}_{hour}", "string")])


def test_processes_that_change_one_month_lose_nothing(catalog: LocalCatalog) -> None:
    days = ["2026-10-01", "2026-10-02", "2026-10-03"]
    with ProcessPoolExecutor(3) as pool:
        list(pool.map(put_hours, [catalog.storage.uri] * 3, days))
    table = catalog.table("shop", "track_order")
    assert table is not None
    assert len(table.columns) == 1 + 72
    assert len(locations(catalog)) == 72

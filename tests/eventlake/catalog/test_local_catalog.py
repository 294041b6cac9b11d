"""The embedded catalog: its files, and what becomes of them."""

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from eventlake.catalog.base import CatalogColumn
from eventlake.catalog.local import LocalCatalog
from eventlake.rules import paths
from eventlake.rules.errors import StateError
from eventlake.storage import LocalStorage
from tests.support.catalogs.by_hand import ORDERS, at, locations


@pytest.fixture
def catalog(tmp_path: Path) -> LocalCatalog:
    catalog = LocalCatalog(LocalStorage(str(tmp_path)))
    assert (catalog.tables("shop"), catalog.databases()) == ([], [])
    assert list(tmp_path.iterdir()) == []  # reading an empty lake writes nothing
    catalog.ensure_database("shop")
    catalog.create_table(ORDERS)
    return catalog


@pytest.mark.parametrize(
    "path",
    [
        paths.catalog_table_file("shop", "track_order"),
        paths.catalog_months("shop", "track_order") + "/2026-10.json",
    ],
)
def test_a_newer_format_is_refused_and_left_as_it_is(catalog: LocalCatalog, path: str) -> None:
    newer = json.dumps({"format_version": 99, "table": "in some other shape"}).encode()
    catalog.storage.write(path, newer)
    with pytest.raises(StateError, match="has format version 99; this release knows up to"):
        catalog.put_partitions("shop", "track_order", [at("x", 1)])
    with pytest.raises(StateError, match="format version 99"):
        catalog.partitions("shop", "track_order")
    assert catalog.storage.read(path) == newer


def test_a_damaged_file_is_named(catalog: LocalCatalog) -> None:
    catalog.storage.write(paths.catalog_table_file("shop", "track_order"), b'{"format_version": 1')
    with pytest.raises(StateError, match=r"shop/track_order/table\.json cannot be read"):
        catalog.tables("shop")


def test_a_table_that_is_just_being_created_is_not_listed(catalog: LocalCatalog) -> None:
    file = paths.catalog_table_file("shop", "track_new")
    Path(catalog.storage.full(file)).parent.mkdir()
    assert catalog.tables("shop") == [ORDERS]


def test_applying_again_writes_nothing(catalog: LocalCatalog) -> None:
    def stamp() -> str:
        [file] = catalog.storage.files(paths.catalog_months("shop", "track_order"))
        return file.stamp

    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    before = stamp()
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    assert stamp() == before


def put_hours(root: str, day: str) -> None:
    catalog = LocalCatalog(LocalStorage(root))
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

"""Columns get other types together with all partitions, once, and in whatever order it is told."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from eventlake.catalog.base import Catalog, CatalogColumn, CatalogPartition
from eventlake.catalog.glue import GlueCatalog
from eventlake.catalog.local import LocalCatalog
from eventlake.rules.errors import InsufficientPermissions
from eventlake.storage import LocalStorage
from tests.support.catalogs.by_hand import HOUR, ORDERS, at
from tests.support.faults.failing_storage import Broken, FailingStorage, Fault, Faults
from tests.support.servers.glue import StrictGlue, momentary

NEXT_MONTH = ("2026-11-01", "07")
Seen = tuple[dict[str, str], dict[tuple[str, ...], str]]


def opened(root: Path, faults: Faults | None = None) -> LocalCatalog:
    storage = FailingStorage(str(root), faults) if faults else LocalStorage(str(root))
    return LocalCatalog(storage)


@pytest.fixture
def catalog(empty_catalog: Catalog) -> Catalog:
    fill(empty_catalog)
    return empty_catalog


def fill(catalog: Catalog) -> None:
    catalog.ensure_database("shop")
    catalog.create_table(ORDERS)
    catalog.append_columns("shop", "track_order", [CatalogColumn("n", "bigint", "/n")])
    catalog.put_partitions("shop", "track_order", [at("old", 1), at("old", 2, NEXT_MONTH)])


def retype(catalog: Catalog, version: int, type: str, *partitions: CatalogPartition) -> None:
    catalog.retype("shop", "track_order", {"n": type}, partitions, version)


def seen(catalog: Catalog) -> Seen:
    table = catalog.table("shop", "track_order")
    assert table is not None
    found = catalog.partitions("shop", "track_order")
    return {c.name: c.type for c in table.columns}, {p.values: p.location for p in found}


OLD: Seen = ({"message_id": "string", "n": "bigint"}, {HOUR: "old", NEXT_MONTH: "old"})
NEW: Seen = ({"message_id": "string", "n": "string"}, {HOUR: "new", NEXT_MONTH: "new"})


def switch(catalog: Catalog) -> None:
    retype(catalog, 5, "string", at("new", 5), at("new", 5, NEXT_MONTH))


def test_types_and_partitions_change_together_and_the_rest_stays(catalog: Catalog) -> None:
    assert seen(catalog) == OLD
    switch(catalog)
    assert seen(catalog) == NEW
    table = catalog.table("shop", "track_order")
    assert table is not None
    comments = [(column.name, column.comment) for column in table.columns]
    assert comments == [("message_id", "/messageId"), ("n", "/n")]
    assert (table.location, table.comment, table.retyped) == (ORDERS.location, "Order", 5)


def test_late_repeats_do_no_harm(catalog: Catalog) -> None:
    switch(catalog)
    retype(catalog, 9, "timestamp", at("newest", 9), at("newest", 9, NEXT_MONTH))
    catalog.put_partitions("shop", "track_order", [at("newer", 10)])
    switch(catalog)
    catalog.put_partitions("shop", "track_order", [at("old", 1)])
    columns, partitions = seen(catalog)
    assert columns["n"] == "timestamp"
    assert partitions == {HOUR: "newer", NEXT_MONTH: "newest"}


def test_what_was_dropped_before_stays_dropped(catalog: Catalog) -> None:
    catalog.drop_partitions("shop", "track_order", [NEXT_MONTH], 4)
    retype(catalog, 5, "string", at("new", 5))
    catalog.put_partitions("shop", "track_order", [at("old", 2, NEXT_MONTH)])
    assert seen(catalog)[1] == {HOUR: "new"}


def test_an_interrupted_change_leaves_the_embedded_table(tmp_path: Path) -> None:
    """Every write but the last leaves the old types and files, the last brings both."""
    fill(opened(tmp_path))
    faults = Faults()
    for stop in (0, 1, 2, -1):
        root = shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name} {stop}"))
        faults = Faults(Fault.DEATH, at=stop)
        with pytest.raises(Broken) if stop >= 0 else nullcontext():
            switch(opened(root, faults))
        assert seen(opened(root)) == (OLD if stop >= 0 else NEW)
        switch(opened(root))
        assert seen(opened(root)) == NEW
    assert faults.changes == 3


def test_in_glue_a_change_is_repeated(glue: StrictGlue, glue_catalog: GlueCatalog) -> None:
    """Partitions say the types of their own files at every moment, the table does so at last."""
    fill(glue_catalog)
    for operation in ("batch_get_partition", "batch_update_partition", "update_table"):
        glue.before(operation, momentary("AccessDeniedException"))
        with pytest.raises(InsufficientPermissions):
            switch(glue_catalog)
        table = glue_catalog.table("shop", "track_order")
        assert table is not None
        assert (table.columns[1].type, table.retyped) == ("bigint", -5)
    listed = glue.client.get_partitions(DatabaseName="shop", TableName="track_order")
    columns = [partition["StorageDescriptor"]["Columns"] for partition in listed["Partitions"]]
    assert [types[1]["Type"] for types in columns] == ["string", "string"]
    switch(glue_catalog)
    assert seen(glue_catalog) == NEW
    table = glue_catalog.table("shop", "track_order")
    assert table is not None
    assert table.retyped == 5

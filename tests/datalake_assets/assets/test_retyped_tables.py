"""Materializing all days of a table gives it the types that were wished of it."""

from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from datalake_assets.instance.snapshot import read_snapshot, refresh_snapshot
from eventlake.retype.request import find_column, record_wish
from eventlake.rules import paths
from eventlake.rules.types import LakeType
from eventlake.sample import WEB_SHOP
from tests.support.lakes.archive import Archive, track
from tests.support.lakes.platform import Platform

DATABASE, NAME, COLUMN = "web_shop", "track_order_completed", "properties_total"
ORDERS, SCHEMA = dg.AssetKey([DATABASE, NAME]), dg.AssetKey([DATABASE, f"{NAME}_schema"])
ONE, TWO = date(2026, 10, 1), date(2026, 10, 2)
EVENING_BEFORE = "2026-09-30"


@pytest.fixture
def wished(platform: Platform) -> Platform:
    """Decimals that are to be strings; one of them lies before the days that can be chosen."""
    raw = Archive(Path(platform.lake.storage.full(paths.raw_root(WEB_SHOP.id))))
    early = track("Order Completed", "early", f"{EVENING_BEFORE}T23:00", total=1.5)
    raw.day(f"{ONE}").file("early", early)
    assert platform.sync("web_shop").success
    target = find_column(platform.lake, f"{DATABASE}.{NAME}.{COLUMN}")
    record_wish(platform.lake, target, LakeType.STRING, print)
    return platform


def type_of(platform: Platform) -> str:
    table = platform.lake.catalog.table(DATABASE, NAME)
    assert table is not None
    return {column.name: column.type for column in table.columns}[COLUMN]


def shown_type(platform: Platform, key: dg.AssetKey) -> str:
    """The column's type as the newest event of an asset has it."""
    event = platform.instance.get_latest_materialization_event(key)
    assert event is not None and event.asset_materialization is not None
    schema: Any = event.asset_materialization.metadata["dagster/column_schema"].value
    return {column.name: column.type for column in schema.columns}[COLUMN]


def test_all_days_of_a_table_switch_it_and_the_events_say_so(wished: Platform) -> None:
    rows = wished.rows(f"{DATABASE}.{NAME}")
    assert wished.materialize([ORDERS, SCHEMA], ONE, TWO).success
    assert type_of(wished) == "string"
    assert shown_type(wished, SCHEMA) == "string"
    assert wished.rows(f"{DATABASE}.{NAME}") == rows
    assert wished.instance.get_materialized_partitions(ORDERS) == set(rows)
    assert EVENING_BEFORE in rows


def test_one_day_does_not(wished: Platform) -> None:
    assert wished.materialize([ORDERS, SCHEMA], TWO, TWO).success
    assert type_of(wished) == "decimal(38,6)"


def test_checks_know_the_new_type_before_the_code_is_loaded_again(wished: Platform) -> None:
    loaded_before = wished.definitions().resolve_implicit_global_asset_job_def()
    wished.materialize([ORDERS], ONE, TWO)
    alone = loaded_before.get_subset(
        asset_selection=set(), asset_check_selection={dg.AssetCheckKey(ORDERS, "types")}
    )
    [check] = alone.execute_in_process(instance=wished.instance).get_asset_check_evaluations()
    assert check.passed, check.metadata


def test_the_snapshot_takes_the_new_type(wished: Platform) -> None:
    wished.materialize([ORDERS], ONE, TWO)
    refresh_snapshot(wished.lake)
    schema = read_snapshot(wished.lake).of(WEB_SHOP.id).tables[f"{DATABASE}.{NAME}"]
    assert schema.types()[COLUMN] is LakeType.STRING
    [spec] = [s for s in wished.definitions().resolve_all_asset_specs() if s.key == ORDERS]
    columns = spec.metadata["dagster/column_schema"].value.columns
    assert {column.name: column.type for column in columns}[COLUMN] == "string"

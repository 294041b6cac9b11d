"""Event tables as assets: materializing, replaying, retyping, and cancelled replays."""

import asyncio
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import dagster as dg
import msgspec
import pytest
from dagster._core.definitions.asset_health.asset_check_health import AssetCheckHealthState
from dagster._core.loader import LoadingContextForTest

from datalake_assets.assets.keys import run_tags
from datalake_assets.assets.running import run_error
from datalake_assets.instance.snapshot import read_snapshot, refresh_snapshot
from eventlake.alerts.history import current_troubles
from eventlake.retype import find_column, record_request
from eventlake.rules import paths
from eventlake.rules.types import LakeType
from eventlake.runs.context import now
from eventlake.runs.failures import REFUSED
from eventlake.runs.report_history import newest_reports
from eventlake.sample import WEB_SHOP
from spark_resources.engines.base import SparkEngine
from tests.support.faults.flows import Raises, flow
from tests.support.lakes.archive import Archive, track
from tests.support.lakes.platform import MakePlatform, Platform, engine_with

PAGE = dg.AssetKey(["web_shop", "page"])
REPORTS = dg.AssetKey(["__segment_datalake", "web_shop_sync_reports"])
IDENTIFY = dg.AssetKey(["web_shop", "identify"])
ONE, TWO = date(2026, 10, 1), date(2026, 10, 2)


def _locations(platform: Platform, table: str) -> dict[tuple[str, ...], str]:
    found = platform.lake.catalog.partitions("web_shop", table)
    return {partition.values: partition.location for partition in found}


def _tables(platform: Platform) -> list[str]:
    return [table.name for table in platform.lake.catalog.tables("web_shop")]


def test_a_replay_moves_one_table_and_day_and_reports_alone_nothing(platform: Platform) -> None:
    platform.sync("web_shop")
    before = {table: _locations(platform, table) for table in _tables(platform)}
    rows = platform.rows("web_shop.page")
    today = datetime.now(UTC).date()
    [shown] = [
        event.materialization.metadata
        for event in platform.materialize([REPORTS], today, today).all_events
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION
    ]
    assert shown["runs"].value == 1 and shown["rows_loaded"].value == sum(
        sum(platform.rows(f"web_shop.{table}").values()) for table in _tables(platform)
    )
    assert _locations(platform, "page") == before["page"]

    assert platform.materialize([PAGE], ONE, ONE).success

    after = {table: _locations(platform, table) for table in _tables(platform)}
    moved = {
        (table, values)
        for table, places in after.items()
        for values, place in places.items()
        if place != before[table].get(values)
    }
    tags = run_tags(platform.lake, platform.lake.settings.source("web_shop"))
    assert all(tags.items() <= run.tags.items() for run in platform.instance.get_runs())
    assert moved == {("page", values) for values in before["page"] if values[0] == f"{ONE}"}
    assert all("/versions/" in after[table][values] for table, values in moved)
    assert platform.rows("web_shop.page") == rows


def test_a_range_of_all_tables_gives_the_same_rows_in_one_run(platform: Platform) -> None:
    platform.sync("web_shop")
    before = {table: platform.rows(f"web_shop.{table}") for table in _tables(platform)}
    result = platform.materialize(platform.replayable("web_shop"), ONE, TWO)

    assert result.success
    after = {table: platform.rows(f"web_shop.{table}") for table in _tables(platform)}
    assert after == before
    days = platform.instance.get_materialized_partitions(PAGE)
    assert days == {f"{ONE}", f"{TWO}"}


def test_a_replay_is_reported_as_one(platform: Platform) -> None:
    from eventlake.sql import LakeSql

    platform.sync("web_shop")
    platform.materialize([PAGE, IDENTIFY], ONE, ONE)
    sql = LakeSql(platform.lake.catalog, platform.lake.storage)
    found = sql.query(
        "select table_name, replay, cast(replay_from as varchar), cast(replay_to as varchar)"
        f" from __segment_datalake.sync_reports where replay and source_id = '{WEB_SHOP.id}'"
        " order by table_name"
    )
    day = ("2026-10-01 00:00:00+00", "2026-10-02 00:00:00+00")
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("", True, *day),
        ("identify", True, *day),
        ("page", True, *day),
    ]


def test_checks_run_by_themselves_on_published_data(platform: Platform) -> None:
    platform.sync("web_shop")
    names = ("dedup", "types", "conservation")
    job = platform.definitions().resolve_implicit_global_asset_job_def()
    alone = job.get_subset(
        asset_selection=set(), asset_check_selection={dg.AssetCheckKey(PAGE, n) for n in names}
    )

    found = alone.execute_in_process(instance=platform.instance).get_asset_check_evaluations()
    assert {check.check_name: check.passed for check in found} == dict.fromkeys(names, True)

    partition = platform.lake.catalog.partitions("web_shop", "page")[0]
    file = platform.lake.storage.files(partition.location)[0]
    platform.lake.storage.copy(file.path, f"{partition.location}/doubled.parquet")
    again = alone.execute_in_process(instance=platform.instance, raise_on_error=False)
    found = again.get_asset_check_evaluations()
    assert {check.check_name: check.passed for check in found} == {
        "dedup": False,
        "types": True,
        "conservation": False,
    }


DATABASE, NAME, COLUMN = "web_shop", "track_order_completed", "properties_total"
ORDERS, SCHEMA = dg.AssetKey([DATABASE, NAME]), dg.AssetKey([DATABASE, f"{NAME}_schema"])
EVENING_BEFORE = "2026-09-30"


@pytest.fixture
def requested(platform: Platform) -> Platform:
    """Decimals that are to be strings; one of them lies before the days that can be chosen."""
    early = track("Order Completed", "early", f"{EVENING_BEFORE}T23:00", total=1.5)
    raw(platform).day(f"{ONE}").file("early", early)
    assert platform.sync("web_shop").success
    target = find_column(platform.lake, f"{DATABASE}.{NAME}.{COLUMN}")
    record_request(platform.lake, target, LakeType.STRING, print)
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


def test_a_replay_of_all_days_changes_the_type_and_its_events_have_it(requested: Platform) -> None:
    rows = requested.rows(f"{DATABASE}.{NAME}")
    assert requested.materialize([ORDERS], ONE, TWO).success
    assert type_of(requested) == "string"
    assert shown_type(requested, SCHEMA) == "string"
    assert requested.rows(f"{DATABASE}.{NAME}") == rows
    assert requested.instance.get_materialized_partitions(ORDERS) == set(rows)
    assert EVENING_BEFORE in rows


def test_the_type_changes_with_all_days_and_checks_use_it_immediately(requested: Platform) -> None:
    assert requested.materialize([ORDERS], TWO, TWO).success
    assert type_of(requested) == "decimal(38,6)"
    loaded_before = requested.definitions().resolve_implicit_global_asset_job_def()
    requested.materialize([ORDERS], ONE, TWO)
    alone = loaded_before.get_subset(
        asset_selection=set(), asset_check_selection={dg.AssetCheckKey(ORDERS, "types")}
    )
    [check] = alone.execute_in_process(instance=requested.instance).get_asset_check_evaluations()
    assert check.passed, check.metadata
    refresh_snapshot(requested.lake)
    schema = read_snapshot(requested.lake).of(WEB_SHOP.id).tables[f"{DATABASE}.{NAME}"]
    assert schema.types()[COLUMN] is LakeType.STRING
    [spec] = [s for s in requested.definitions().resolve_all_asset_specs() if s.key == ORDERS]
    columns = spec.metadata["dagster/column_schema"].columns
    assert {column.name: column.type for column in columns}[COLUMN] == "string"


BOTH = {f"{ONE}", f"{TWO}"}


def cancelled_engine() -> SparkEngine:
    """Ctrl-C in the middle of the second replayed day."""
    return engine_with(flow(after_load=Raises(KeyboardInterrupt(), at=2, of="mirror")))


def reports(platform: Platform) -> list[dict[str, Any]]:
    """The source lines of the replays, the newest first."""
    found = newest_reports(platform.lake, {WEB_SHOP.id})
    return [msgspec.to_builtins(report.source) for report in found if report.is_replay]


def materialized(result: dg.ExecuteInProcessResult) -> set[str | None]:
    """The days of which the run recorded a materialization of the table."""
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    events = [event for event in result.all_events if event.event_type is kind]
    return {event.partition for event in events if event.asset_key == PAGE}


def states(platform: Platform) -> dict[str, Any]:
    """The states of the table's days and checks, as the UI shows them."""
    graph = platform.definitions().resolve_asset_graph()
    days = graph.get(PAGE).partitions_def
    assert days is not None
    found = platform.instance.get_status_by_partition(PAGE, [f"{ONE}", f"{TWO}"], days)
    keys = {*graph.get_check_keys_for_assets({PAGE})}
    return {**(found or {}), **asyncio.run(_check_states(platform.instance, keys))}


async def _check_states(
    instance: dg.DagsterInstance, keys: set[dg.AssetCheckKey]
) -> dict[str, Any]:
    loading = LoadingContextForTest(instance)
    found = await AssetCheckHealthState.compute_for_asset_checks(keys, loading)
    return {"passing": found.passing_checks, "failing": found.failing_checks}


def raw(platform: Platform) -> Archive:
    return Archive(Path(platform.lake.storage.full(paths.raw_root(WEB_SHOP.id))))


def test_a_cancelled_replay_has_recorded_its_days_and_continues_when_launched_again(
    make_platform: MakePlatform,
) -> None:
    platform = make_platform(cancelled_engine())
    assert platform.sync("web_shop").success
    before = platform.rows("web_shop.page")

    cancelled = platform.materialize([PAGE], ONE, TWO)
    assert not cancelled.success
    assert materialized(cancelled) == {f"{ONE}"}
    assert platform.rows("web_shop.page") == before

    again = platform.materialize([PAGE], ONE, TWO)
    assert again.success
    assert materialized(again) == BOTH
    last, first = reports(platform)
    assert (first["status"], first["row_count"]) == ("failed", before[f"{ONE}"])
    assert first["error"] == "The run was cancelled before it was done."
    assert {partition["day"] for partition in first["partitions"]} == {f"{ONE}"}
    assert (last["status"], last["row_count"]) == ("finished", before[f"{TWO}"])
    assert (last["replay_from"][:10], last["replay_to"][:10]) == ("2026-10-01", "2026-10-03")
    assert platform.rows("web_shop.page") == before

    shown = {  # of every day, whichever run loaded it
        event.partition: event.materialization.metadata["dagster/partition_row_count"].value
        for event in again.all_events
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION and event.asset_key == PAGE
    }
    assert shown == before


def test_a_failure_of_dagster_between_two_days_is_in_the_report(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.sync("web_shop")
    with monkeypatch.context() as patch:
        gone = Mock(side_effect=OSError("Dagster's database is gone"))
        patch.setattr("datalake_assets.assets.event_tables._Replayed.take", gone)
        assert not platform.materialize([PAGE], ONE, TWO).success
    [report] = reports(platform)
    assert (report["status"], report["error"]) == ("failed", "OSError: Dagster's database is gone")
    assert {partition["day"] for partition in report["partitions"]} == {f"{ONE}"}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({}, "datalake/accept_changes"),
        ({"from_hour": "noon"}, "'noon'"),
        ({"from_hour": f"{TWO}T03", "to_hour": f"{ONE}T01"}, "is empty"),
    ],
    ids=["raw files changed", "no hour", "empty"],
)
def test_a_refused_replay_is_reported_and_leaves_its_assets_as_they_were(
    platform: Platform, config: dict[str, str], reason: str
) -> None:
    platform.sync("web_shop")
    rows = platform.rows("web_shop.page")
    gone = sorted(raw(platform).day(f"{ONE}").folder.iterdir())[0]
    if not config:
        gone.unlink()
        reason = f"removed: {gone.relative_to(platform.lake.storage.full(''))}"
    before = states(platform)

    refused = platform.materialize([PAGE], ONE, TWO, config=config)
    assert not refused.success
    error = run_error(refused.all_events)
    assert reason in error.message and error.exit_code == 2
    [report] = reports(platform)
    assert (report["status"], report["error"]) == ("failed", f"{REFUSED}{error.message}")
    assert (platform.rows("web_shop.page"), states(platform)) == (rows, before)
    assert current_troubles(platform.lake, platform.lake.settings.source("web_shop"), now()) == {}


def test_changed_raw_files_are_loaded_with_the_tag_that_the_refusal_names(
    platform: Platform,
) -> None:
    platform.sync("web_shop")
    rows = platform.rows("web_shop.page")
    sorted(raw(platform).day(f"{ONE}").folder.iterdir())[0].unlink()
    tagged = platform.materialize([PAGE], ONE, TWO, tags={"datalake/accept_changes": "true"})
    assert tagged.success
    assert sum(platform.rows("web_shop.page").values()) < sum(rows.values())


def test_a_table_that_a_replay_creates_is_recorded_without_being_selected(
    platform: Platform,
) -> None:
    platform.sync("web_shop")
    raw(platform).day(f"{TWO}").file("new", track("Never Seen", "n1", f"{TWO}T01:00"))
    assert platform.materialize(platform.replayable("web_shop"), ONE, TWO).success
    assert platform.rows("web_shop.track_never_seen") == {f"{TWO}": 1}
    new = dg.AssetKey(["web_shop", "track_never_seen"])
    assert platform.instance.get_materialized_partitions(new) == {f"{TWO}"}

"""A sync under Dagster: what it loads, what it records, what stops it."""

import dagster as dg

from lake.sample import WEB_SHOP
from lake.work.dataflow import Dataflow, InProcess
from tests.datalake_assets.conftest import InProcessEngine, MakePlatform, Platform

PAGE = dg.AssetKey(["web_shop", "page"])


def test_every_table_and_day_that_was_touched_is_a_materialization(platform: Platform) -> None:
    result = platform.sync("web_shop")

    assert result.success
    expected = platform.account.expected(WEB_SHOP.id).rows
    recorded = {
        (event.asset_key.path[-1], event.partition)
        for event in _materializations(result)
        if len(event.asset_key.path) == 2 and event.asset_key.path[0] == "web_shop"
    }
    assert recorded == {(slot.table, slot.day) for slot in expected}


def test_a_materialization_carries_what_the_ui_draws(platform: Platform) -> None:
    platform.sync("web_shop")
    event = platform.instance.get_latest_materialization_event(PAGE)

    assert event is not None and event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert set(metadata) >= {
        "dagster/partition_row_count",
        "dagster/column_schema",
        "rows_loaded",
        "duplicates_in_run",
        "new_columns",
    }
    day = event.asset_materialization.partition
    assert metadata["dagster/partition_row_count"].value == platform.rows("web_shop.page")[day]
    columns = metadata["dagster/column_schema"].value.columns
    assert [column.name for column in columns][:3] == ["message_id", "anonymous_id", "user_id"]


def test_the_checks_of_every_table_are_recorded_with_their_numbers(platform: Platform) -> None:
    result = platform.sync("web_shop")
    checks = [
        event.event_specific_data
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ]

    of_page = {check.check_name: check for check in checks if check.asset_key == PAGE}
    assert set(of_page) == {"dedup", "types", "conservation"}
    assert all(check.passed for check in checks)
    evidence = of_page["conservation"].metadata
    assert evidence["rows_in"].value == (
        evidence["loaded"].value + evidence["duplicates"].value + evidence["rejected"].value
    )


def test_the_archive_is_observed_and_the_report_recorded(platform: Platform) -> None:
    result = platform.sync("web_shop")
    observed = [
        event.asset_observation_data.asset_observation
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.ASSET_OBSERVATION
    ]
    report = platform.instance.get_latest_materialization_event(
        dg.AssetKey(["__segment_datalake", "sync_reports", "web_shop"])
    )

    raw_files = len(platform.account.files[WEB_SHOP.id])
    assert [o.metadata["files"].value for o in observed] == [raw_files]
    assert report is not None and report.asset_materialization is not None
    totals = platform.account.expected(WEB_SHOP.id).totals
    assert report.asset_materialization.metadata["rows_loaded"].value == totals.row_count


def test_a_sync_with_nothing_new_succeeds_and_touches_no_table(platform: Platform) -> None:
    platform.sync("web_shop")
    before = platform.lake.storage.files("segment-data/data")
    again = platform.sync("web_shop")

    assert again.success
    assert [event.asset_key.path[-2:] for event in _materializations(again)] == [
        ["sync_reports", "web_shop"]
    ]
    assert platform.lake.storage.files("segment-data/data") == before


class LosesARow(InProcess):
    """A data flow with a fault: one file is written but not told of."""

    def load(self, *args):  # type: ignore[no-untyped-def]
        return super().load(*args)[1:]


class FaultyEngine(InProcessEngine):
    def flow(self) -> Dataflow:
        return LosesARow()


def test_a_failed_check_is_recorded_stops_publication_and_says_why(
    make_platform: MakePlatform,
) -> None:
    platform = make_platform(FaultyEngine())
    result = platform.sync("web_shop")

    assert not result.success
    failed = {
        event.event_specific_data.check_name
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
        and not event.event_specific_data.passed
    }
    assert failed == {"dedup", "conservation"}
    assert platform.lake.catalog.tables("web_shop") == []
    failures = [e.step_failure_data for e in result.all_events if e.is_step_failure]
    told = failures[0].user_failure_data
    assert told is not None and "nothing was published" in (told.description or "")

    mended = Platform(platform.lake, platform.account, platform.instance, InProcessEngine())
    assert mended.sync("web_shop").success
    rows = platform.account.expected(WEB_SHOP.id).totals.row_count
    assert sum(sum(mended.rows(t.full_name).values()) for t in _tables(mended)) == rows


def _tables(platform: Platform):  # type: ignore[no-untyped-def]
    return platform.lake.catalog.tables("web_shop")


def _materializations(result: dg.ExecuteInProcessResult) -> list[dg.AssetMaterialization]:
    return [
        event.step_materialization_data.materialization
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION
    ]

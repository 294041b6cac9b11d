"""A sync under Dagster: what it loads, what it records, what stops it."""

import dagster as dg

from eventlake.load.blobs import Shares
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.runs.context import Dataflow
from eventlake.sample import WEB_SHOP
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.platform import InProcessEngine, MakePlatform, Platform, events, values

PAGE = dg.AssetKey(["web_shop", "page"])
CHECK = dg.DagsterEventType.ASSET_CHECK_EVALUATION
MATERIALIZATION = dg.DagsterEventType.ASSET_MATERIALIZATION
OBSERVATION = dg.DagsterEventType.ASSET_OBSERVATION


def test_every_table_and_day_that_was_touched_is_a_materialization(platform: Platform) -> None:
    result = platform.sync("web_shop")

    assert result.success
    expected = platform.account.expected(WEB_SHOP.id).rows
    recorded = {
        (event.asset_key.path[-1], event.partition)
        for event in _materializations(result)
        if event.asset_key.path[0] == "web_shop"
        and not event.asset_key.path[-1].endswith("_schema")
    }
    assert recorded == {(slot.table, slot.day) for slot in expected}


def test_a_materialization_carries_what_the_ui_draws(platform: Platform) -> None:
    platform.sync("web_shop")
    event = platform.instance.get_latest_materialization_event(PAGE)

    assert event is not None and event.asset_materialization is not None
    metadata = values(event.asset_materialization.metadata)
    assert set(metadata) >= {
        "dagster/partition_row_count",
        "dagster/column_schema",
        "rows_loaded",
        "duplicates_in_run",
        "new_columns",
    }
    day = event.asset_materialization.partition
    assert day is not None
    assert metadata["dagster/partition_row_count"] == platform.rows("web_shop.page")[day]
    columns = metadata["dagster/column_schema"].columns
    assert [column.name for column in columns][:3] == ["message_id", "anonymous_id", "user_id"]


def test_the_checks_of_every_table_are_recorded_with_their_numbers(platform: Platform) -> None:
    result = platform.sync("web_shop")
    checks = events(result, CHECK)

    of_page = {check.check_name: check for check in checks if check.asset_key == PAGE}
    assert set(of_page) == {"dedup", "types", "conservation"}
    assert all(check.passed for check in checks)
    told = values(of_page["conservation"].metadata)
    assert told["rows_in"] == told["loaded"] + told["duplicates"] + told["rejected"]


def test_the_archive_is_observed_and_the_report_recorded(platform: Platform) -> None:
    result = platform.sync("web_shop")
    observed = [event.asset_observation for event in events(result, OBSERVATION)]
    report = platform.instance.get_latest_materialization_event(
        dg.AssetKey(["__segment_datalake", "web_shop_sync_reports"])
    )

    raw_files = len(platform.account.files[WEB_SHOP.id])
    assert [values(o.metadata)["files"] for o in observed] == [raw_files]
    assert report is not None and report.asset_materialization is not None
    totals = platform.account.expected(WEB_SHOP.id).totals
    assert values(report.asset_materialization.metadata)["rows_loaded"] == totals.row_count


def test_a_sync_with_nothing_new_succeeds_and_touches_no_table(platform: Platform) -> None:
    platform.sync("web_shop")
    before = platform.lake.storage.files("segment-data/data")
    again = platform.sync("web_shop")

    assert again.success
    assert [event.asset_key.path[-1] for event in _materializations(again)] == [
        "web_shop_sync_reports"
    ]
    assert platform.lake.storage.files("segment-data/data") == before


class LosesARow(InProcess):
    """A data flow with a fault: one file is written but not told of."""

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        return super().load(job, shares)[1:]


class FaultyEngine(InProcessEngine):
    def flow(self) -> Dataflow:
        return LosesARow()


def test_a_failed_check_is_recorded_stops_publication_and_says_why(
    make_platform: MakePlatform,
) -> None:
    platform = make_platform(FaultyEngine())
    result = platform.sync("web_shop")

    assert not result.success
    failed = {check.check_name for check in events(result, CHECK) if not check.passed}
    assert failed == {"dedup", "conservation"}
    assert platform.lake.catalog.tables("web_shop") == []
    told = events(result, dg.DagsterEventType.STEP_FAILURE)[0].user_failure_data
    assert "nothing was published" in told.description

    mended = Platform(platform.lake, platform.account, platform.instance, InProcessEngine())
    assert mended.sync("web_shop").success
    rows = platform.account.expected(WEB_SHOP.id).totals.row_count
    tables = platform.lake.catalog.tables("web_shop")
    assert sum(sum(mended.rows(table.full_name).values()) for table in tables) == rows


def _materializations(result: dg.ExecuteInProcessResult) -> list[dg.AssetMaterialization]:
    return [event.materialization for event in events(result, MATERIALIZATION)]

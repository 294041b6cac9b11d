"""The jobs that sync, check and maintain the lake, run by Dagster without Spark."""

import shutil
from typing import Any

import dagster as dg
import pytest

from eventlake.checks.view import TABLE_RULES
from eventlake.runs.verify import CHECKS
from eventlake.sample import WEB_SHOP
from eventlake.upkeep import upkeep
from eventlake.upkeep.upkeep import newest_upkeeps
from tests.support.faults.flows import flow
from tests.support.lakes.platform import (
    InProcessEngine,
    MakePlatform,
    Platform,
    engine_with,
    events,
    values,
)

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
    assert set(of_page) == CHECKS.keys() | TABLE_RULES.keys()
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


def test_a_failed_check_is_recorded_stops_publication_and_says_why(
    make_platform: MakePlatform,
) -> None:
    platform = make_platform(engine_with(flow(after_load=lambda _, files: files[1:])))
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


def shown(result: dg.ExecuteInProcessResult) -> list[list[str]]:
    """The cells of the table in the UI, without its head."""
    [output] = events(result, dg.DagsterEventType.STEP_OUTPUT)
    return cells(values(output.metadata)["findings"])


def cells(table: Any) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_all_is_well(platform: Platform) -> None:
    result = run(platform, "check")
    assert result.success
    assert [(sign, what) for sign, what, _ in shown(result)] == [
        ("✓", "storage"),
        ("✓", "archive of web_shop"),
        ("✓", "tables of web_shop"),
        ("✓", "archive of ios_prod"),
        ("✓", "tables of ios_prod"),
        ("✓", "catalog"),
        ("✓", "Java"),
    ]
    assert platform.lake.catalog.table("__segment_datalake", "sync_reports") is not None


def test_what_is_wrong_fails_the_run_and_is_told(platform: Platform) -> None:
    source = platform.lake.settings.source("web_shop")
    shutil.rmtree(platform.lake.storage.full(source.raw))
    result = run(platform, "check")
    assert not result.success
    [failure] = events(result, dg.DagsterEventType.STEP_FAILURE)
    told = failure.user_failure_data
    assert told.description.startswith("archive of web_shop: The raw archive of source 'web_shop'")
    table = cells(values(told.metadata)["findings"])
    assert [what for sign, what, _ in table if sign == "✗"] == ["archive of web_shop"]
    assert platform.lake.catalog.table("__segment_datalake", "sync_reports") is None


def run(platform: Platform, name: str = "upkeep_web_shop") -> dg.ExecuteInProcessResult:
    job = platform.definitions().resolve_job_def(name)
    return job.execute_in_process(instance=platform.instance, raise_on_error=False)


def materialized(result: dg.ExecuteInProcessResult) -> tuple[str, dict[str, Any]]:
    [event] = events(result, dg.DagsterEventType.ASSET_MATERIALIZATION)
    one = event.materialization
    return one.asset_key.to_user_string(), values(one.metadata)


def test_it_does_the_upkeep_and_shows_its_numbers(platform: Platform) -> None:
    platform.sync("web_shop")
    result = run(platform)
    assert result.success
    key, shown = materialized(result)
    assert key == "web_shop/upkeep"
    source = platform.lake.settings.source("web_shop")
    [report] = newest_upkeeps(platform.lake.storage, source.id)
    assert report.dagster_run_id == result.run_id
    assert shown["run_id"] == report.run_id
    assert shown["data_files_before"] == report.before["data"].files > 0
    assert shown["record_log_bytes_after"] == report.after["record log"].bytes
    assert {name for name in shown if name.startswith("removed_")} >= {
        "removed_replaced_files",
        "removed_orphans_bytes",
        "removed_manifests_files",
    }


def test_a_part_that_fails_fails_the_run_and_the_numbers_are_there(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.sync("web_shop")

    def fail(*args: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(upkeep, "compact", fail)
    result = run(platform)
    assert not result.success
    _, shown = materialized(result)
    assert shown["warnings"] == "- Compaction broke off: the disk is full"
    [failure] = events(result, dg.DagsterEventType.STEP_FAILURE)
    assert failure.user_failure_data.description == "Compaction broke off: the disk is full"

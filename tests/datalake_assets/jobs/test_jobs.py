"""The jobs that sync, check and maintain the lake, run by Dagster without Spark."""

import shutil
from collections.abc import Mapping
from typing import Any
from unittest.mock import Mock

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
SYNC, UPKEEP = dg.AssetKey(["web_shop", "sync"]), dg.AssetKey(["web_shop", "upkeep"])
REPORTS = dg.AssetKey(["__segment_datalake", "web_shop_sync_reports"])
CHECK = dg.DagsterEventType.ASSET_CHECK_EVALUATION
MATERIALIZATION = dg.DagsterEventType.ASSET_MATERIALIZATION
OBSERVATION = dg.DagsterEventType.ASSET_OBSERVATION
SOURCES = ("web_shop", "ios_prod")


def materializations(result: dg.ExecuteInProcessResult) -> list[dg.AssetMaterialization]:
    return [event.materialization for event in events(result, MATERIALIZATION)]


def newest(platform: Platform, key: dg.AssetKey) -> dg.AssetMaterialization:
    event = platform.instance.get_latest_materialization_event(key)
    assert event is not None and event.asset_materialization is not None
    return event.asset_materialization


def test_a_sync_records_its_archive_tables_days_checks_and_report(platform: Platform) -> None:
    result = platform.sync("web_shop")
    assert result.success
    expected = platform.generated.expected(WEB_SHOP.id)

    recorded = {
        (made.asset_key.path[-1], made.partition)
        for made in materializations(result)
        if made.asset_key not in (REPORTS, SYNC) and not made.asset_key.path[-1].endswith("_schema")
    }
    assert recorded == {(slot.table, slot.day) for slot in expected.rows}

    page = newest(platform, PAGE)
    shown = values(page.metadata)
    assert shown.keys() >= {"rows_loaded", "duplicates_in_run", "new_columns"}
    assert page.partition is not None
    assert shown["dagster/partition_row_count"] == platform.rows("web_shop.page")[page.partition]
    columns = shown["dagster/column_schema"].columns
    assert [column.name for column in columns][:3] == ["message_id", "anonymous_id", "user_id"]

    checks = events(result, CHECK)
    of_page = {check.check_name: check for check in checks if check.asset_key == PAGE}
    assert set(of_page) == CHECKS.keys() | TABLE_RULES.keys()
    assert all(check.passed for check in checks)
    shown = values(of_page["conservation"].metadata)
    assert shown["rows_in"] == shown["loaded"] + shown["duplicates"] + shown["rejected"]

    observed = [event.asset_observation for event in events(result, OBSERVATION)]
    raw_files = len(platform.generated.files[WEB_SHOP.id])
    assert [values(one.metadata)["files"] for one in observed] == [raw_files]
    [version] = [one.tags["dagster/data_version"] for one in observed]
    assert version.startswith(f"{raw_files}-")
    assert values(newest(platform, REPORTS).metadata)["rows_loaded"] == expected.totals.row_count


def test_a_sync_with_nothing_new_succeeds_and_touches_no_table(platform: Platform) -> None:
    platform.sync("web_shop")
    before = platform.lake.storage.files("segment-data/data")
    again = platform.sync("web_shop")

    assert again.success
    assert [made.asset_key for made in materializations(again)] == [REPORTS, SYNC]
    assert platform.lake.storage.files("segment-data/data") == before


def test_a_failed_check_is_recorded_and_stops_publication_with_the_reason(
    make_platform: MakePlatform,
) -> None:
    platform = make_platform(engine_with(flow(after_load=lambda _, files: files[1:])))
    result = platform.sync("web_shop")

    assert not result.success
    failed = {check.check_name for check in events(result, CHECK) if not check.passed}
    assert failed == {"dedup", "conservation"}
    assert platform.lake.catalog.tables("web_shop") == []
    assert "nothing was published" in failure(result).description

    platform.engine = InProcessEngine()
    assert platform.sync("web_shop").success
    rows = platform.generated.expected(WEB_SHOP.id).totals.row_count
    tables = platform.lake.catalog.tables("web_shop")
    assert sum(sum(platform.rows(table.full_name).values()) for table in tables) == rows


def failure(result: dg.ExecuteInProcessResult) -> Any:
    [failed] = events(result, dg.DagsterEventType.STEP_FAILURE)
    return failed.user_failure_data


def findings(shown: Mapping[str, dg.MetadataValue]) -> list[tuple[str, str]]:
    """Sign and subject of the rows of the table in the UI."""
    lines = str(shown["findings"].value).splitlines()[2:]
    return [(sign.strip(), what.strip()) for _, sign, what, *_ in (row.split("|") for row in lines)]


def test_the_check_job_shows_its_findings_as_a_table(platform: Platform) -> None:
    result = run(platform, "check")
    assert result.success
    [output] = events(result, dg.DagsterEventType.STEP_OUTPUT)
    kinds = ("archive", "tables", "lines")
    each = [f"{kind} of {source}" for source in SOURCES for kind in kinds]
    signs = {what: sign for sign, what in findings(output.metadata)}
    assert list(signs) == ["storage", *each, "catalog", "Java"]
    rejected_by_design = {what: "!" for what in each if what.startswith("lines")}
    assert signs == dict.fromkeys(signs, "✓") | rejected_by_design
    assert platform.lake.catalog.table("__segment_datalake", "sync_reports") is not None


def test_an_error_fails_the_check_job_and_is_its_description(platform: Platform) -> None:
    source = platform.lake.settings.source("web_shop")
    shutil.rmtree(platform.lake.storage.full(source.raw))
    result = run(platform, "check")
    assert not result.success
    error = failure(result)
    assert error.description.startswith("archive of web_shop: The raw archive of source 'web_shop'")
    wrong = [what for sign, what in findings(error.metadata) if sign == "✗"]
    assert wrong == ["archive of web_shop"]
    assert platform.lake.catalog.table("__segment_datalake", "sync_reports") is None


def run(platform: Platform, name: str = "upkeep_web_shop") -> dg.ExecuteInProcessResult:
    job = platform.definitions().resolve_job_def(name)
    return job.execute_in_process(instance=platform.instance, raise_on_error=False)


def test_the_upkeep_job_shows_the_numbers_of_its_report(platform: Platform) -> None:
    platform.sync("web_shop")
    result = run(platform)
    assert result.success
    [made] = materializations(result)
    assert made.asset_key == UPKEEP
    shown = values(made.metadata)
    source = platform.lake.settings.source("web_shop")
    [report] = newest_upkeeps(platform.lake.storage, source.id)
    assert report.dagster_run_id == result.run_id
    assert shown["run_id"] == report.run_id
    assert shown["data_files_before"] == report.before["data"].files > 0
    assert shown["record_log_bytes_after"] == report.after["record log"].bytes
    removed = {"replaced_files", "orphans_bytes", "manifests_files"}
    assert shown.keys() >= {f"removed_{name}" for name in removed}


def test_a_failed_part_of_the_upkeep_fails_the_run_and_the_numbers_are_recorded(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.sync("web_shop")
    monkeypatch.setattr(upkeep, "compact", Mock(side_effect=OSError("the disk is full")))
    result = run(platform)
    assert not result.success
    [made] = materializations(result)
    assert values(made.metadata)["warnings"] == "- Compaction broke off: the disk is full"
    assert failure(result).description == "Compaction broke off: the disk is full"

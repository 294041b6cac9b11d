"""Checks of what is published, in Dagster."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from unittest.mock import Mock

import dagster as dg
import pytest

from datalake_assets import checks
from eventlake.rules import clock
from eventlake.runs.context import now
from tests.support.lakes.platform import MakePlatform, Platform, events, values

PAGE = dg.AssetKey(["web_shop", "page"])
REPORTS = dg.AssetKey(["__segment_datalake", "web_shop_sync_reports"])
RULES = ("drift", "partitions", "small_files", "schema_change")


def run(platform: Platform, job: str) -> dg.ExecuteInProcessResult:
    found = platform.definitions().resolve_job_def(job)
    return found.execute_in_process(instance=platform.instance, raise_on_error=False)


def verdicts(result: dg.ExecuteInProcessResult) -> list[dg.AssetCheckEvaluation]:
    return events(result, dg.DagsterEventType.ASSET_CHECK_EVALUATION)


def lose_a_file(platform: Platform) -> None:
    partition = platform.lake.catalog.partitions("web_shop", "page")[0]
    platform.lake.storage.delete(platform.lake.storage.files(partition.location)[0].path)


def test_the_job_records_checks_of_every_table_and_nothing_else(platform: Platform) -> None:
    platform.sync("web_shop")
    tables = len(platform.lake.catalog.tables("web_shop"))
    result = run(platform, "check_tables_web_shop")
    found = verdicts(result)

    assert result.success
    assert Counter(one.check_name for one in found) == dict.fromkeys(RULES, tables)
    assert all(one.passed for one in found)
    assert len(result.all_events) < len(found) + 15


def statuses(platform: Platform) -> dict[str, str]:
    """The checks of all assets as the UI shows them: by the latest materialization."""
    repository = platform.definitions().get_repository_def()
    keys = repository.asset_graph.asset_check_keys
    latest = platform.instance.event_log_storage.get_latest_asset_check_execution_by_key([*keys])
    shown = dict.fromkeys(map(str, keys), "not evaluated")
    for key, record in latest.items():
        written = platform.instance.get_latest_materialization_event(key.asset_key)
        if written is None or written.run_id == record.run_id:
            shown[str(key)] = record.status.value
    return shown


def test_after_its_runs_every_check_of_every_asset_has_passed(make_platform: MakePlatform) -> None:
    """As in the demo: the second day has new tables, new columns and late files of the first."""
    for arrived in (1, 2):
        platform = make_platform(arrived=arrived)
        assert platform.sync("web_shop").success and platform.sync("ios_prod").success

    of_tables = 4 + 3
    tables = sum(len(platform.lake.catalog.tables(name)) for name in ("web_shop", "ios_prod"))
    shown = statuses(platform)
    assert len(shown) == of_tables * tables + 2
    assert {key: status for key, status in shown.items() if status != "SUCCEEDED"} == {}

    days = date(2026, 10, 1), date(2026, 10, 2)
    assert platform.materialize(platform.replayable("web_shop"), *days).success
    assert {
        key: status for key, status in statuses(platform).items() if status != "SUCCEEDED"
    } == {}


def test_a_sync_does_not_clear_what_only_the_daily_checks_can_see(
    make_platform: MakePlatform,
) -> None:
    platform = make_platform(arrived=1)
    platform.sync("web_shop")
    lose_a_file(platform)
    [found] = [one for one in verdicts(run(platform, "check_tables_web_shop")) if not one.passed]
    synced = verdicts(make_platform(arrived=2).sync("web_shop"))

    [still] = [one for one in synced if not one.passed]
    assert still.asset_check_key == found.asset_check_key == dg.AssetCheckKey(PAGE, "partitions")
    assert still.metadata == found.metadata


def test_checks_that_cannot_be_evaluated_do_not_fail_the_sync(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = Mock(side_effect=OSError("no answer"))
    monkeypatch.setattr("datalake_assets.assets.events.check_freshness", fails)
    result = platform.sync("web_shop")
    assert result.success
    assert {one.check_name for one in verdicts(result)} == {"dedup", "types", "conservation"}


def test_wrong_data_is_an_error_and_new_columns_a_warning(
    make_platform: MakePlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_platform(arrived=1).sync("web_shop")
    monkeypatch.setattr(clock, "read", lambda: datetime.now(UTC) + timedelta(days=1))
    platform = make_platform(arrived=2)
    synced = platform.sync("web_shop")
    at_once = [
        one for one in verdicts(synced) if one.check_name == "schema_change" and not one.passed
    ]
    lose_a_file(platform)
    result = run(platform, "check_tables_web_shop")
    wrong = [one for one in verdicts(result) if not one.passed]

    assert result.success  # the verdict is in the checks; the job did what it should
    [error] = [one for one in wrong if one.severity is dg.AssetCheckSeverity.ERROR]
    assert (error.asset_key, error.check_name) == (PAGE, "partitions")
    shown = values(error.metadata)
    assert shown["problems"] == 1
    assert shown["first_problems"].startswith("- day=2026-10-01/hr=")
    assert "datalake recover" in shown["what_to_do"]

    changed = {one.asset_key for one in wrong if one.check_name == "schema_change"}
    assert changed and dg.AssetKey(["web_shop", "track_gift_card_redeemed"]) not in changed
    assert {one.asset_key for one in at_once} == changed
    assert {one.severity for one in at_once} == {dg.AssetCheckSeverity.WARN}
    assert {values(one.metadata)["dagster_run"] for one in at_once} == {synced.run_id}
    assert not any(one.blocking for one in wrong)


def test_any_of_them_runs_by_itself(platform: Platform) -> None:
    platform.sync("web_shop")
    lose_a_file(platform)
    chosen = {dg.AssetCheckKey(PAGE, "partitions"), dg.AssetCheckKey(REPORTS, "freshness")}
    job = platform.definitions().resolve_implicit_global_asset_job_def()
    alone = job.get_subset(asset_selection=set(), asset_check_selection=chosen)
    result = alone.execute_in_process(instance=platform.instance, raise_on_error=False)

    found = {one.asset_check_key: one.passed for one in verdicts(result)}
    assert found.keys() == chosen
    assert found[dg.AssetCheckKey(PAGE, "partitions")] is False


def test_a_silent_source_is_warned_of(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    platform.sync("web_shop")
    monkeypatch.setattr(checks, "now", lambda: now() + timedelta(days=400))
    web, ios = verdicts(run(platform, "check_freshness"))

    assert (web.asset_key, web.passed, web.severity) == (REPORTS, False, dg.AssetCheckSeverity.WARN)
    assert ios.passed and values(ios.metadata)["not_judged"] == "nothing is loaded yet"

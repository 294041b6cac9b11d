"""Replays in Dagster that are cancelled, launched again, or need consent."""

from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import msgspec
import pytest

from eventlake.rules import paths
from eventlake.runs.context import Published
from eventlake.runs.report_history import newest_reports
from eventlake.sample import WEB_SHOP
from spark_resources.engines.base import SparkEngine
from tests.support.faults.flows import Raises, flow
from tests.support.lakes.archive import Archive, track
from tests.support.lakes.platform import MakePlatform, Platform, engine_with

PAGE = dg.AssetKey(["web_shop", "page"])
PAGE_SCHEMA = dg.AssetKey(["web_shop", "page_schema"])
ONE, TWO = date(2026, 10, 1), date(2026, 10, 2)
BOTH = {f"{ONE}", f"{TWO}"}


def cancelled_engine() -> SparkEngine:
    """Ctrl-C is pressed in the middle of the second replayed day."""
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


def description(result: dg.ExecuteInProcessResult) -> str:
    """Why the run failed, as Dagster tells it."""
    [failure] = [e.step_failure_data for e in result.all_events if e.is_step_failure]
    assert failure.user_failure_data is not None
    return failure.user_failure_data.description or ""


def raw(platform: Platform) -> Archive:
    return Archive(Path(platform.lake.storage.full(paths.raw_root(WEB_SHOP.id))))


def test_a_cancelled_replay_has_recorded_its_days_and_goes_on_when_launched_again(
    make_platform: MakePlatform,
) -> None:
    platform = make_platform(cancelled_engine())
    assert platform.sync("web_shop").success
    before = platform.rows("web_shop.page")

    cancelled = platform.materialize([PAGE, PAGE_SCHEMA], ONE, TWO)
    assert not cancelled.success
    assert materialized(cancelled) == {f"{ONE}"}
    assert platform.rows("web_shop.page") == before

    again = platform.materialize([PAGE, PAGE_SCHEMA], ONE, TWO)
    assert again.success
    assert materialized(again) == BOTH
    last, first = reports(platform)
    assert (first["status"], first["row_count"]) == ("failed", before[f"{ONE}"])
    assert first["error"] == "The run was cancelled before it was done."
    assert {partition["day"] for partition in first["partitions"]} == {f"{ONE}"}
    assert (last["status"], last["row_count"]) == ("finished", before[f"{TWO}"])
    assert (last["replay_from"][:10], last["replay_to"][:10]) == ("2026-10-01", "2026-10-03")
    assert platform.rows("web_shop.page") == before


def test_every_day_shows_its_rows_whichever_run_brought_it(make_platform: MakePlatform) -> None:
    platform = make_platform(cancelled_engine())
    platform.sync("web_shop")
    platform.materialize([PAGE], ONE, TWO)
    again = platform.materialize([PAGE], ONE, TWO)
    shown = {
        event.partition: event.materialization.metadata["dagster/partition_row_count"].value
        for event in again.all_events
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION and event.asset_key == PAGE
    }
    assert shown == platform.rows("web_shop.page")


def test_what_fails_in_dagster_between_two_days_is_in_the_report(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datalake_assets.assets.event_tables import _Replayed

    def database_is_gone(self: object, unit: Published) -> None:
        raise OSError("Dagster's database is gone")

    platform.sync("web_shop")
    with monkeypatch.context() as patch:
        patch.setattr(_Replayed, "take", database_is_gone)
        assert not platform.materialize([PAGE], ONE, TWO).success
    [report] = reports(platform)
    assert (report["status"], report["error"]) == ("failed", "OSError: Dagster's database is gone")
    assert {partition["day"] for partition in report["partitions"]} == {f"{ONE}"}


def test_changed_raw_files_fail_the_run_before_it_changes_anything(platform: Platform) -> None:
    platform.sync("web_shop")
    rows = platform.rows("web_shop.page")
    gone = sorted(raw(platform).day(f"{ONE}").folder.iterdir())[0]
    gone.unlink()

    refused = platform.materialize([PAGE], ONE, TWO)
    assert not refused.success
    told = description(refused)
    assert f"removed: {gone.relative_to(platform.lake.storage.full(''))}" in told
    assert "datalake/accept_changes" in told
    assert (platform.rows("web_shop.page"), reports(platform)) == (rows, [])

    tagged = platform.materialize([PAGE], ONE, TWO, tags={"datalake/accept_changes": "true"})
    assert tagged.success
    assert sum(platform.rows("web_shop.page").values()) < sum(rows.values())


def test_a_table_that_a_replay_makes_is_announced_though_nobody_had_selected_it(
    platform: Platform,
) -> None:
    platform.sync("web_shop")
    raw(platform).day(f"{TWO}").file("new", track("Never Seen", "n1", f"{TWO}T01:00"))
    assert platform.materialize(platform.replayable("web_shop"), ONE, TWO).success
    assert platform.rows("web_shop.track_never_seen") == {f"{TWO}": 1}
    new = dg.AssetKey(["web_shop", "track_never_seen"])
    assert platform.instance.get_materialized_partitions(new) == {f"{TWO}"}

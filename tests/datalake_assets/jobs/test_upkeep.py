"""The job `upkeep_<source>` in Dagster: the lake without Spark, all else real."""

from typing import Any

import dagster as dg
import pytest

from eventlake.upkeep import upkeep
from eventlake.upkeep.upkeep import newest_upkeeps
from tests.support.lakes.platform import Platform, events, values


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

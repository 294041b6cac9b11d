"""The job `check` in Dagster."""

import shutil
from typing import Any

import dagster as dg

from tests.support.lakes.platform import Platform, events, values


def run(platform: Platform) -> dg.ExecuteInProcessResult:
    job = platform.definitions().resolve_job_def("check")
    return job.execute_in_process(instance=platform.instance, raise_on_error=False)


def shown(result: dg.ExecuteInProcessResult) -> list[list[str]]:
    """The cells of the table in the UI, without its head."""
    [output] = events(result, dg.DagsterEventType.STEP_OUTPUT)
    return cells(values(output.metadata)["findings"])


def cells(table: Any) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_all_is_well(platform: Platform) -> None:
    result = run(platform)
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
    result = run(platform)
    assert not result.success
    [failure] = events(result, dg.DagsterEventType.STEP_FAILURE)
    told = failure.user_failure_data
    assert told.description.startswith("archive of web_shop: The raw archive of source 'web_shop'")
    table = cells(values(told.metadata)["findings"])
    assert [what for sign, what, _ in table if sign == "✗"] == ["archive of web_shop"]
    assert platform.lake.catalog.table("__segment_datalake", "sync_reports") is None

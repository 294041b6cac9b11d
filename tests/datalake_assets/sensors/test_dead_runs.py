"""Runs whose process is gone fail, in the lake and in Dagster; the others go on."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import dagster as dg
import msgspec
import pytest

from datalake_assets.assets.keys import SOURCE_TAG
from datalake_assets.assets.running import PROCESS_TAG, new_job
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.runs.open_runs import OpenRun
from eventlake.runs.report_history import newest_reports
from eventlake.sample import WEB_SHOP
from eventlake.state.lease import Holder, myself
from eventlake.storage.documents import encode
from tests.support.faults.damage import NEWER_RELEASE
from tests.support.lakes.platform import Platform

HERE, NOW = myself().host, datetime.now(UTC)
LATER = NOW + timedelta(days=1)
STARTED, FAILURE = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE
CANCELED, CANCELING = dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.CANCELING


def dead_here(pid: int) -> Holder:
    return Holder(HERE, pid, LATER)


def begun(
    platform: Platform, holder: Holder, status: dg.DagsterRunStatus = STARTED, in_lake: bool = True
) -> str:
    """A sync that a process has started, in Dagster and in the lake."""
    job = platform.definitions().resolve_job_def("sync_web_shop")
    run = platform.instance.create_run_for_job(
        job,
        status=status,
        tags={SOURCE_TAG: "web_shop", PROCESS_TAG: msgspec.json.encode(holder).decode()},
    )
    if in_lake:
        facts = new_job(platform.lake.settings, platform.lake.settings.sources[0], run.run_id)
        path = paths.open_run(WEB_SHOP.id, facts.run_id)
        platform.lake.storage.write(path, encode(OpenRun(facts.facts(), 0, holder)))
    return run.run_id


def evaluate(platform: Platform) -> str:
    """What the sensor says."""
    context = dg.build_sensor_context(instance=platform.instance)
    said = platform.definitions().resolve_sensor_def("dead_runs")(context)
    assert isinstance(said, dg.SkipReason)
    return said.skip_message or ""


def status(platform: Platform, run_id: str) -> dg.DagsterRunStatus:
    run = platform.instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def reports(lake: Lake) -> dict[str, str]:
    return {r.dagster_run_id: r.source.status for r in newest_reports(lake, {WEB_SHOP.id})}


def test_a_run_whose_process_is_gone_fails_with_a_report_and_a_remedy(
    platform: Platform, dead_pid: int
) -> None:
    run = begun(platform, dead_here(dead_pid))
    assert "crashed" in evaluate(platform)
    assert status(platform, run) is FAILURE
    last = [log.message for log in platform.instance.all_logs(run) if log.dagster_event][-1]
    assert f"process {dead_pid} on " in last and "launch it again" in last
    assert reports(platform.lake) == {run: "failed"}
    assert evaluate(platform) == "Every run that has begun is alive or has ended."
    assert platform.sync("web_shop").success


def test_a_run_that_the_lake_has_closed_already_still_fails_in_dagster(
    platform: Platform, dead_pid: int
) -> None:
    run = begun(platform, dead_here(dead_pid))
    platform.sync("web_shop")  # closes the dead run in the lake, not in Dagster
    assert status(platform, run) is STARTED
    evaluate(platform)
    assert status(platform, run) is FAILURE


@pytest.mark.parametrize(
    ("before", "after", "in_lake"),
    [(STARTED, FAILURE, False), (CANCELING, CANCELED, True)],
    ids=["before the lake knew it", "while it was cancelled"],
)
def test_a_run_that_died(
    platform: Platform,
    dead_pid: int,
    before: dg.DagsterRunStatus,
    after: dg.DagsterRunStatus,
    in_lake: bool,
) -> None:
    run = begun(platform, dead_here(dead_pid), before, in_lake)
    evaluate(platform)
    assert status(platform, run) is after
    assert in_lake or reports(platform.lake) == {}


@pytest.mark.parametrize(
    ("holder", "dead"),
    [
        (myself, False),
        (lambda: Holder("another-machine", 1, LATER), False),
        (lambda: Holder(HERE, os.getpid(), LATER, born="earlier"), True),
        (lambda: Holder("another-machine", 1, NOW - timedelta(seconds=1)), True),
    ],
    ids=["here", "elsewhere", "the process id was reused", "elsewhere, its lease has expired"],
)
def test_a_run_is_closed_only_if_its_process_is_dead(
    platform: Platform, holder: Callable[[], Holder], dead: bool
) -> None:
    run = begun(platform, holder())
    assert dead or evaluate(platform) == "Every run that has begun is alive or has ended."
    evaluate(platform)
    assert status(platform, run) is (FAILURE if dead else STARTED)
    assert reports(platform.lake) == ({run: "failed"} if dead else {})


def test_a_source_that_cannot_be_read_does_not_stop_the_others(
    platform: Platform, dead_pid: int
) -> None:
    run = begun(platform, dead_here(dead_pid))
    other = platform.lake.settings.sources[1]
    platform.lake.storage.write(paths.open_run(other.id, "1"), NEWER_RELEASE)
    said = evaluate(platform)
    assert f"Runs of {other.slug} could not be read" in said
    assert status(platform, run) is FAILURE


def test_a_run_is_tagged_with_its_process(platform: Platform) -> None:
    result = platform.sync("web_shop")
    run = platform.instance.get_run_by_id(result.run_id)
    assert run is not None
    holder = msgspec.json.decode(run.tags[PROCESS_TAG], type=Holder)
    assert (holder.pid, holder.born) == (os.getpid(), myself().born)

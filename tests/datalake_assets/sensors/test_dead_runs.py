"""Runs whose process is gone end as failed, in the lake and in Dagster; the living go on."""

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
from tests.support.lakes.platform import Platform

LATER = datetime.now(UTC) + timedelta(days=1)
STARTED, FAILURE = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE
CANCELED, CANCELING = dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.CANCELING


def dead_here(pid: int) -> Holder:
    return Holder(myself().host, pid, LATER)


def begun(
    platform: Platform, holder: Holder, status: dg.DagsterRunStatus = STARTED, in_lake: bool = True
) -> str:
    """A sync that was begun by some process, under Dagster and in the lake."""
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


def look(platform: Platform) -> str:
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


def last_words(platform: Platform, run_id: str) -> str:
    logs = platform.instance.all_logs(run_id)
    return [entry.message for entry in logs if entry.dagster_event][-1]


def test_a_run_whose_process_is_gone_fails_with_a_report_and_a_remedy(
    platform: Platform, dead_pid: int
) -> None:
    run = begun(platform, dead_here(dead_pid))
    assert "had died" in look(platform)
    assert status(platform, run) is FAILURE
    assert f"process {dead_pid} on " in last_words(platform, run)
    assert "launch it again" in last_words(platform, run)
    assert reports(platform.lake) == {run: "failed"}
    assert look(platform) == "Every run that has begun is alive or has ended."
    assert platform.sync("web_shop").success


def test_a_run_that_the_lake_has_closed_already_still_fails_in_dagster(
    platform: Platform, dead_pid: int
) -> None:
    run = begun(platform, dead_here(dead_pid))
    platform.sync("web_shop")  # which finds the dead one, and knows nothing of Dagster
    assert status(platform, run) is STARTED
    look(platform)
    assert status(platform, run) is FAILURE


def test_a_run_that_died_before_it_was_known_to_the_lake_fails(
    platform: Platform, dead_pid: int
) -> None:
    run = begun(platform, dead_here(dead_pid), in_lake=False)
    look(platform)
    assert status(platform, run) is FAILURE
    assert reports(platform.lake) == {}


def test_a_run_that_died_while_it_was_cancelled_is_cancelled(
    platform: Platform, dead_pid: int
) -> None:
    run = begun(platform, dead_here(dead_pid), CANCELING)
    look(platform)
    assert status(platform, run) is CANCELED


@pytest.mark.parametrize(
    "holder", [myself, lambda: Holder("another-machine", 1, LATER)], ids=["here", "elsewhere"]
)
def test_the_living_are_left_alone(platform: Platform, holder: Callable[[], Holder]) -> None:
    run = begun(platform, holder())
    assert look(platform) == "Every run that has begun is alive or has ended."
    assert status(platform, run) is STARTED
    assert reports(platform.lake) == {}


def test_a_number_that_another_process_has_by_now_does_not_keep_a_run_alive(
    platform: Platform,
) -> None:
    run = begun(platform, Holder(myself().host, os.getpid(), LATER, born="earlier"))
    look(platform)
    assert status(platform, run) is FAILURE
    assert reports(platform.lake) == {run: "failed"}


def test_a_run_elsewhere_is_dead_when_its_time_is_up(platform: Platform) -> None:
    expired = Holder("another-machine", 1, datetime.now(UTC) - timedelta(seconds=1))
    run = begun(platform, expired)
    look(platform)
    assert status(platform, run) is FAILURE
    assert reports(platform.lake) == {run: "failed"}


def test_a_source_that_cannot_be_read_leaves_the_others_their_turn(
    platform: Platform, dead_pid: int
) -> None:
    run = begun(platform, dead_here(dead_pid))
    other = platform.lake.settings.sources[1]
    platform.lake.storage.write(paths.open_run(other.id, "1"), b"{}")
    said = look(platform)
    assert f"Runs of {other.slug} could not be looked at" in said
    assert status(platform, run) is FAILURE


def test_a_run_carries_the_mark_of_its_process(platform: Platform) -> None:
    result = platform.sync("web_shop")
    run = platform.instance.get_run_by_id(result.run_id)
    assert run is not None
    holder = msgspec.json.decode(run.tags[PROCESS_TAG], type=Holder)
    assert (holder.pid, holder.born) == (os.getpid(), myself().born)

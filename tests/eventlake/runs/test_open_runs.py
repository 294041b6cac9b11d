"""Every run gets one report, also one whose process is gone."""

import os
import socket
from datetime import UTC, datetime, timedelta

import pytest

from eventlake.catalog.sync_reports import DATABASE, NAME
from eventlake.rules import paths
from eventlake.runs.dead_runs import close_dead_runs
from eventlake.runs.open_runs import OpenRun, close_failed_run, opened_run
from eventlake.state.lease import Holder, myself
from eventlake.state.report import Failure
from eventlake.storage.documents import encode
from tests.support.lakes.archive import track
from tests.support.lakes.runs import SOURCE_ID, Runs

NOW = datetime(2026, 10, 20, 12, tzinfo=UTC)
GONE = Holder("another-machine", 1, datetime.now(UTC) - timedelta(minutes=5))


def begun(runs: Runs, holder: Holder) -> OpenRun:
    """A run that has begun and is not heard of again."""
    run = OpenRun(runs.context().facts, 0, holder)
    runs.storage.write(paths.open_run(SOURCE_ID, run.run.run_id), encode(run))
    runs.storage.write(f"{paths.stage(SOURCE_ID, run.run.run_id)}/0/x.parquet", b"staged")
    return run


def close_dead(runs: Runs) -> list[str]:
    return close_dead_runs(runs.storage, runs.catalog, SOURCE_ID, NOW)


def test_a_run_is_known_while_it_goes_on(runs: Runs) -> None:
    facts = runs.context().facts
    with opened_run(runs.storage, facts, 3):
        [file] = runs.storage.files(paths.open_runs(SOURCE_ID))
        assert file.name == "R1.json"
        assert close_dead(runs) == []
    assert runs.storage.files(paths.open_runs(SOURCE_ID)) == []


def test_a_dead_run_gets_a_failed_report_and_its_staging_goes(runs: Runs) -> None:
    begun(runs, GONE)
    assert close_dead(runs) == ["R1"]
    [line] = runs.reports()["R1"]
    assert (line["status"], line["error_code"]) == ("failed", "Segment.Internal")
    assert line["error"].startswith("The run was interrupted")
    assert (line["row_count"], line["finish_time"]) == (0, "2026-10-20 12:00:00.000")
    assert runs.storage.files("segment-stage") == []
    assert close_dead(runs) == []


def test_a_dead_upkeep_is_overtaken_and_noted_and_has_no_report(runs: Runs) -> None:
    facts = runs.context().facts
    dead = OpenRun(facts, 0, GONE, upkeep=True)
    runs.storage.write(paths.open_run(SOURCE_ID, facts.run_id), encode(dead))
    assert close_dead(runs) == []
    assert runs.reports() == {} and runs.storage.files("sync_tracking_datasets") == []
    assert runs.storage.files(paths.open_runs(SOURCE_ID)) == []
    assert [file.name for file in runs.storage.files(paths.abandoned(SOURCE_ID))] == ["R1.json"]
    assert runs.state().manifest == 1  # an empty one: should it come back, it loses the race


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_living_run_is_left_alone(runs: Runs, where: str) -> None:
    in_time = datetime.now(UTC) + timedelta(minutes=1)
    living = Holder(socket.gethostname(), os.getpid(), in_time)
    begun(runs, living if where == "here" else Holder("another-machine", 1, in_time))
    assert close_dead(runs) == []
    assert runs.reports() == {}
    assert len(runs.storage.files("segment-stage")) == 1


def test_a_sync_that_finds_a_dead_run_says_so(runs: Runs) -> None:
    begun(runs, GONE)
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.sync()
    assert runs.warnings[0] == "Run R1 had died without a report; it now has a failed one."
    statuses = {run: lines[0]["status"] for run, lines in runs.reports().items()}
    assert statuses == {"R1": "failed", "R2": "finished"}


def test_a_report_that_is_there_is_never_replaced_by_a_failed_one(runs: Runs) -> None:
    run = begun(runs, myself())
    runs.storage.write(paths.report(SOURCE_ID, run.run.day, "R1"), b'{"status":"finished"}\n')
    failure = Failure("Segment.Internal", "too late")
    close_failed_run(runs.storage, runs.catalog, run.run, 0, NOW, failure)
    assert runs.reports() == {"R1": [{"status": "finished"}]}
    # What follows from the report is made up for.
    assert runs.catalog.partitions(DATABASE, NAME)[0].values == (SOURCE_ID, "2026-10-20")
    folder = paths.tracking("W1", SOURCE_ID, "R1")
    assert b'"finished"' in (runs.storage.read(f"{folder}/metadata.json") or b"")
    assert runs.storage.files("segment-stage") == []
    assert runs.storage.files(paths.open_runs(SOURCE_ID)) == []

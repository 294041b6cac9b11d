"""The commands `status`, `tables` and `reports`."""

import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import InstigatorStatus

from datalake_assets.assets.running import new_job
from datalake_assets.instance.home import ensure_home
from eventlake.catalog import sync_reports
from eventlake.rules.counts import UnitReport
from eventlake.runs.context import Published, Silent
from eventlake.runs.open_runs import close_run, opened_run
from eventlake.runs.unit import Window
from eventlake.state.lease import held_lease
from eventlake.state.report import Failure, RunFacts
from eventlake.state.source_state import first_sync_due
from spark_resources.dataflow.job import run_job
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.jobs import SETTINGS, SampleLake
from tests.support.lakes.platform import switched_on
from tests.support.lakes.runs import utc
from tests.support.lakes.settings import lake_in
from tests.support.terminal import datalake, everything_below


def facts(run_id: str, start: datetime, **more: object) -> RunFacts:
    fixed = {"workspace_id": "W1", "source_id": "9IP56Shn6", "database": "ios_prod"}
    return RunFacts(**fixed, run_id=run_id, start_time=start, s3_bucket="", **more)  # type: ignore[arg-type]


def test_before_the_first_sync_everything_waits(unsynced: SampleLake) -> None:
    before = everything_below(unsynced.folder)
    result = datalake("status")
    files = len(unsynced.generated.files["wX3mQ8rTz"])
    web_shop = result.rows[0]
    assert (web_shop[:2], web_shop[3:6]) == (["web_shop", "never"], ["-", "-", str(files)])
    assert everything_below(unsynced.folder) == before


def test_after_a_sync_nothing_waits_and_the_lag_is_shown(filled: SampleLake) -> None:
    now = datetime.now(UTC)
    [web, ios] = datalake("status", "--json").json
    assert (web["source"], web["files_waiting"], web["failing"]) == ("web_shop", 0, None)
    totals = filled.generated.per_sync("9IP56Shn6")[1].totals
    assert ios["last_sync"]["row_count"] == totals.row_count
    # The sample's last hour is the third of its second day.
    assert ios["loaded_until"] == "2026-10-02T03:00:00Z"
    lag = max((now - datetime(2026, 10, 2, 3, tzinfo=UTC)).total_seconds(), 0)
    assert abs(ios["lag_seconds"] - lag) < 60


def test_failures_in_a_row_are_counted_since_the_last_success(filled: SampleLake) -> None:
    now = datetime.now(UTC)
    for minute in (1, 2):
        error = f"disk full {minute}\nmore about it"
        fail_a_run(filled, f"R{minute}", now + timedelta(minutes=minute), error)
    result = datalake("status")
    assert [row[2] for row in result.rows] == ["finished", "failed"]
    since = f"{now + timedelta(minutes=1):%Y-%m-%d %H:%M}"
    assert (
        f"ios_prod: failing since {since}, 2 failures in a row; Segment.Internal: disk full 2\n"
        in result.err
    )
    ios = datalake("status", "--json").json[1]
    assert (ios["failing"]["times"], ios["failing"]["error_code"]) == (2, "Segment.Internal")

    day = {"replay": True, "replay_from": utc("2026-10-01"), "replay_to": utc("2026-10-02")}
    fail_a_run(filled, "R3", now + timedelta(minutes=3), "disk full", **day)
    assert f"ios_prod: since {now + timedelta(minutes=3):%Y-%m-%d %H:%M}: replay failed" in (
        datalake("status").err
    )
    problems = datalake("status", "--json").json[1]["open_problems"]
    assert [one["kind"] for one in problems] == ["sync_failures", "replay_failures"]
    listed = datalake("alerts", "--json").json[1]["open"]
    assert [(one["kind"], one["since"]) for one in listed] == [
        (one["kind"], one["since"]) for one in problems
    ]


def test_a_running_replay_is_shown(filled: SampleLake) -> None:
    storage = filled.lake.storage
    days = {"replay_from": utc("2026-10-01"), "replay_to": utc("2026-10-04")}
    run = facts("R9", datetime.now(UTC), replay=True, **days)
    with (
        opened_run(storage, run, after_manifest=99),
        held_lease(storage, "9IP56Shn6", "R9", "replay of 2026-10-01", lambda lease: None),
    ):
        result = datalake("status")
        shown = datalake("status", "--json").json[1]
    assert "ios_prod: running: replay of 2026-10-01 (run R9, process" in result.err
    assert re.search(r"replay R9 running for \d\.\d s by process", result.err)
    assert "0 of 3 days published" in result.err
    assert shown["lease"]["run_id"] == "R9"
    assert [(r["kind"], r["alive"], r["days"]) for r in shown["open_runs"]] == [("replay", True, 3)]


def test_a_missing_archive_affects_only_its_own_line(filled: SampleLake) -> None:
    shutil.rmtree(filled.folder / "data/segment-logs/9IP56Shn6")
    result = datalake("status")
    assert [row[-1] for row in result.rows] == ["0 B", "?"]
    assert "segment-logs/9IP56Shn6 does not exist" in result.err


def test_a_source_that_is_switched_off_is_marked(tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text(SETTINGS + "    enabled: false\n")
    result = datalake("status")
    assert "ios_prod: not enabled" in result.err
    assert "web_shop: not enabled" not in result.err


def test_the_progress_of_a_replay_is_shown_also_when_it_was_interrupted(filled: SampleLake) -> None:
    source = filled.lake.settings.source("ios_prod")
    window = Window(utc("2026-10-01"), utc("2026-10-03"))

    def begin() -> Iterator[Published]:
        job = new_job(filled.lake.settings, source, "", window=window, tables=("screen",))
        return run_job(job, InProcess, Silent())

    days = begin()
    next(days)
    assert "1 of 2 days published" in datalake("status").err
    del days  # its process is gone
    result = datalake("status")
    assert (
        "replay of 2026-10-01T00 to 2026-10-03T00 of screen interrupted after 1 of 2" in result.err
    )
    assert "launch it again to continue" in result.err
    [shown] = datalake("status", "--json").json[1]["interrupted_replays"]
    assert (shown["tables"], shown["days_published"], shown["days"]) == (["screen"], 1, 2)

    days = begin()
    next(days)
    assert "interrupted" not in datalake("status").err
    assert list(days) == []
    assert datalake("status", "--json").json[1]["interrupted_replays"] == []


def test_the_next_sync_is_shown_by_the_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    berlin = {"schedule": "30 2 1 1 *", "schedule_timezone": "Europe/Berlin"}
    off = {"id": "b2", "slug": "never", "schedule": "off"}
    lake = lake_in(tmp_path, {"id": "a1", "slug": "yearly", **berlin}, off)
    [yearly, never] = datalake("status", "--json").json
    assert yearly["next_sync"].endswith("-01-01T01:30:00Z")
    assert never["next_sync"] is None
    result = datalake("status")
    assert "never: `schedule` is off: no scheduled syncs" in result.err
    due = first_sync_due(lake.storage, lake.settings.source("yearly"), datetime.now(UTC))
    assert due is not None
    [yearly, _] = datalake("status", "--json").json
    assert yearly["next_sync"] == f"{due:%Y-%m-%dT%H:%M:%S.%f}Z"
    # It runs unless it was switched off in the Dagster instance here.
    home = ensure_home(lake.settings)
    [yearly, _] = datalake("status", "--json").json
    assert yearly["next_sync"] is not None
    state = switched_on("sync_yearly_schedule")
    with dg.DagsterInstance.from_config(str(home)) as instance:
        instance.add_instigator_state(state.with_status(InstigatorStatus.STOPPED))
        with monkeypatch.context() as patch:
            # Dagster takes seconds to load: its database is read directly, unless it is elsewhere.
            patch.delattr(dg.DagsterInstance, "from_config")
            result = datalake("status")
            assert "none" in result.rows[0]
            assert "yearly: its schedule was switched off in Dagster" in result.err
            assert [one["next_sync"] for one in datalake("status", "--json").json] == [None, None]
        instance.update_instigator_state(state)
    [yearly, _] = datalake("status", "--json").json
    assert yearly["next_sync"] == f"{due:%Y-%m-%dT%H:%M:%S.%f}Z"
    yaml = (home / "dagster.yaml").read_text().split("storage:")[0]
    sqlite = f"storage: {{sqlite: {{base_dir: {home}}}}}"
    (home / "dagster.yaml").write_text(f"{yaml}{sqlite}\n")
    [yearly, _] = datalake("status", "--json").json
    assert yearly["next_sync"] == f"{due:%Y-%m-%dT%H:%M:%S.%f}Z"


@pytest.mark.parametrize(
    ("command", "message"), [("tables", "No tables yet"), ("reports", "No reports yet")]
)
def test_before_the_first_sync_there_are_none(
    unsynced: SampleLake, command: str, message: str
) -> None:
    result = datalake(command)
    assert (result.out, message in result.err) == ("", True)
    assert datalake(command, "--json").json == []


def test_every_table_with_its_rows_and_partitions(filled: SampleLake) -> None:
    found = datalake("tables", "--json").json
    loads = filled.generated.as_they_arrive("9IP56Shn6")
    expected = filled.generated.expected("9IP56Shn6", loads).rows
    assert {
        t["table"]: (t["rows"], t["partitions"]) for t in found if t["database"] == "ios_prod"
    } == {
        table: (
            sum(n for slot, n in expected.items() if slot.table == table),
            sum(1 for slot in expected if slot.table == table),
        )
        for table in {slot.table for slot in expected}
    }
    assert {t["database"] for t in found} == {"__segment_datalake", "ios_prod", "web_shop"}
    screen = next(t for t in found if t["table"] == "screen")
    assert screen["files"] >= screen["partitions"]
    assert screen["bytes"] > 0
    assert screen["location"] == "segment-data/data/9IP56Shn6/segment_type=screen"


def test_the_tables_of_one_database(filled: SampleLake) -> None:
    rows = datalake("tables", "web_shop").rows
    assert {row[0] for row in rows} == {"web_shop"}
    assert ["web_shop", "page"] in [row[:2] for row in rows]
    _, reports = datalake("tables", "__segment_datalake", "--json").json
    assert (reports["table"], reports["rows"]) == (sync_reports.NAME, None)
    keys = len(sync_reports.SYNC_REPORTS.partition_keys)
    assert reports["columns"] == len(sync_reports.COLUMNS) + keys


def test_the_columns_of_one_table_with_where_they_come_from(filled: SampleLake) -> None:
    columns = datalake("tables", "web_shop.track_order_completed", "--json").json
    plain = {"partition_key": False, "wished_type": None}
    assert columns[0] == {"name": "message_id", "type": "string", "path": "/messageId", **plain}
    by_name = {column["name"]: column for column in columns}
    assert by_name["properties_total"]["type"] == "decimal(38,6)"
    assert by_name["properties_total"]["path"] == "/properties/total"
    assert [c["name"] for c in columns if c["partition_key"]] == ["day", "hr"]
    result = datalake("tables", "web_shop.track_order_completed")
    assert result.out.startswith("web_shop.track_order_completed: Order Completed, ")
    assert result.rows[0] == ["message_id", "string", "/messageId"]
    assert result.out.count("partition key") == 2
    assert "values that fit no column (JSON)" in result.out


def fail_a_run(
    sample: SampleLake, run_id: str, start: datetime, error: str, **more: object
) -> None:
    failure, lake = Failure("Segment.Internal", error), sample.lake
    run = facts(run_id, start, **more)
    close_run(lake.storage, lake.catalog, run, UnitReport(), start, failure)


TRACED = "PythonException: worker\nTraceback (most recent call last):\n  File x\nOSError: full"


def test_the_newest_reports_come_first_and_can_be_limited(filled: SampleLake) -> None:
    found = datalake("reports", "--json").json
    assert [(r["database"], r["dagster_run_id"]) for r in found] == [
        ("ios_prod", "dagster-2"),
        ("web_shop", "dagster-2"),
        ("ios_prod", "dagster-1"),
        ("web_shop", "dagster-1"),
    ]
    assert {r["type"] for r in found} == {"source"}
    assert [r["run_id"] for r in found] == sorted((r["run_id"] for r in found), reverse=True)
    words = ("reports", "--source", "web_shop", "--limit", "1", "--json")
    assert datalake(*words).json == found[1:2]


def test_the_table_shows_what_each_run_did(filled: SampleLake) -> None:
    first = filled.generated.per_sync("9IP56Shn6")[0]
    row = datalake("reports", "--source", "ios_prod").rows[-1]
    assert row[1:8] == [
        "ios_prod",
        "sync",
        "finished",
        f"{len(first.tables)} tables",
        str(first.totals.row_count),
        str(first.totals.duplicates),
        str(first.totals.rejected),
    ]


def test_a_failed_run_is_listed_with_its_error_in_a_line_and_shown_with_all_of_it(
    filled: SampleLake,
) -> None:
    assert "No run has failed" in datalake("reports", "--failed").err
    fail_a_run(filled, "R-failed", datetime.now(UTC), TRACED)
    result = datalake("reports", "--failed")
    assert [row[-1] for row in result.rows] == ["R-failed"]
    assert result.err == "error: run R-failed: OSError: full\n"
    result = datalake("reports", "--run", "R-failed")
    assert "ios_prod: failed" in result.out
    assert "Segment.Internal: PythonException: worker\nTraceback" in result.err


def test_the_tables_of_one_run_by_either_id(filled: SampleLake) -> None:
    newest = datalake("reports", "--json").json[0]
    expected = filled.generated.per_sync("9IP56Shn6")[1].tables
    result = datalake("reports", "--run", newest["run_id"])
    assert {row[0] for row in result.rows} == set(expected)
    lines = datalake("reports", "--run", "dagster-2", "--json").json
    assert [line["type"] for line in lines[:2]] == ["source", "event"]
    assert {line["table_name"]: line["row_count"] for line in lines[1:]} == {
        table: totals.row_count for table, totals in expected.items()
    }


def test_a_run_by_the_beginning_of_its_id_or_as_the_latest(filled: SampleLake) -> None:
    newest = datalake("reports", "--json").json[0]["run_id"]
    run, lake = facts("unlike", datetime.now(UTC)), filled.lake
    assert "suppressed" not in datalake("reports").out
    done = UnitReport(rows_in=7, suppressed=4, skipped=3)
    close_run(lake.storage, lake.catalog, run, done, datetime.now(UTC))
    result = datalake("reports")
    assert re.search("duplicates  rejected  suppressed  skipped +time +run\n", result.out)
    assert result.rows[0][4:8] == ["0", "0", "0", "4"]
    for asked, found in [("latest", "unlike"), ("unli", "unlike"), (newest, newest)]:
        assert datalake("reports", "--run", asked, "--json").json[0]["run_id"] == found
    result = datalake("reports", "--run", "dagster", code=2)
    assert "4 runs have ids that begin with 'dagster'" in result.err
    datalake("records", "--run", newest, "--source", "ios_prod")
    assert "0 suppressed, 0 skipped" in datalake("reports", "--run", newest).out

"""The commands `status`, `tables` and `reports`."""

import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from datalake_assets.assets.running import new_job
from eventlake.catalog import sync_reports
from eventlake.lake import Lake
from eventlake.rules.counts import UnitReport
from eventlake.runs.context import Published, Silent
from eventlake.runs.open_runs import close_run, opened_run
from eventlake.runs.unit import Window
from eventlake.settings.file import load_settings
from eventlake.state.first_seen import first_sync_due
from eventlake.state.lease import held_lease
from eventlake.state.report import Failure, RunFacts
from spark_resources.dataflow.job import run_job
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.jobs import SETTINGS, SampleLake
from tests.support.terminal import Terminal, everything_below


def facts(run_id: str, start: datetime, **more: object) -> RunFacts:
    fixed = {"workspace_id": "W1", "source_id": "9IP56Shn6", "database": "ios_prod"}
    return RunFacts(**fixed, run_id=run_id, start_time=start, s3_bucket="", **more)  # type: ignore[arg-type]


def test_before_the_first_sync_everything_waits(terminal: Terminal, unsynced: SampleLake) -> None:
    before = everything_below(unsynced.folder)
    said = terminal.run("status")
    assert said.code == 0
    files = len(unsynced.account.files["wX3mQ8rTz"])
    web_shop = said.rows[0]
    assert (web_shop[:2], web_shop[3:6]) == (["web_shop", "never"], ["-", "-", str(files)])
    assert everything_below(unsynced.folder) == before


def test_after_a_sync_nothing_waits_and_the_lag_is_told(
    terminal: Terminal, filled: SampleLake
) -> None:
    now = datetime.now(UTC)
    [web, ios] = terminal.run("status", "--json").json
    assert (web["source"], web["files_waiting"], web["failing"]) == ("web_shop", 0, None)
    assert ios["last_sync"]["row_count"] == (
        filled.account.per_sync("9IP56Shn6")[1].totals.row_count
    )
    # The sample's last hour is the third of its second day.
    assert ios["loaded_until"] == "2026-10-02T03:00:00Z"
    lag = max((now - datetime(2026, 10, 2, 3, tzinfo=UTC)).total_seconds(), 0)
    assert abs(ios["lag_seconds"] - lag) < 60


def test_failures_in_a_row_are_counted_since_the_last_success(
    terminal: Terminal, filled: SampleLake
) -> None:
    lake, now = filled.lake, datetime.now(UTC)
    for minute in (1, 2):
        start = now + timedelta(minutes=minute)
        failure = Failure("Segment.Internal", f"disk full {minute}\nmore about it")
        run = facts(f"R{minute}", start)
        close_run(lake.storage, lake.catalog, run, UnitReport(), start, failure)
    said = terminal.run("status")
    assert [row[2] for row in said.rows] == ["finished", "failed"]
    since = f"{now + timedelta(minutes=1):%Y-%m-%d %H:%M}"
    assert (
        f"ios_prod: failing since {since}, 2 failures in a row; Segment.Internal: disk full 2\n"
        in said.err
    )
    failing = terminal.run("status", "--json").json[1]["failing"]
    assert (failing["times"], failing["error_code"]) == (2, "Segment.Internal")


def test_who_is_at_work_is_told(terminal: Terminal, filled: SampleLake) -> None:
    storage = filled.lake.storage
    window = {
        "replay_from": datetime(2026, 10, 1, tzinfo=UTC),
        "replay_to": datetime(2026, 10, 4, tzinfo=UTC),
    }
    run = facts("R9", datetime.now(UTC), replay=True, **window)
    with (
        opened_run(storage, run, after_manifest=99),
        held_lease(storage, "9IP56Shn6", "R9", "replay of 2026-10-01", lambda lease: None),
    ):
        said = terminal.run("status")
        shown = terminal.run("status", "--json").json[1]
    assert "ios_prod: at work: replay of 2026-10-01 (run R9, process" in said.err
    assert re.search(r"replay R9 running for \d\.\d s by process", said.err)
    assert "0 of 3 days published" in said.err
    assert shown["lease"]["run_id"] == "R9"
    assert [(r["kind"], r["alive"], r["days"]) for r in shown["open_runs"]] == [("replay", True, 3)]


def test_an_archive_that_is_gone_spoils_only_its_own_line(
    terminal: Terminal, filled: SampleLake
) -> None:
    shutil.rmtree(filled.folder / "data/segment-logs/9IP56Shn6")
    said = terminal.run("status")
    assert said.code == 0
    assert [row[-1] for row in said.rows] == ["0 B", "?"]
    assert "segment-logs/9IP56Shn6 does not exist" in said.err


def test_a_source_that_is_switched_off_is_marked(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text(SETTINGS + "    enabled: false\n")
    said = terminal.run("status")
    assert "ios_prod: not enabled" in said.err
    assert "web_shop: not enabled" not in said.err


def test_how_far_a_replay_is_is_told_also_when_it_was_interrupted(
    terminal: Terminal, filled: SampleLake
) -> None:
    source = filled.lake.settings.source("ios_prod")
    window = Window(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 3, tzinfo=UTC))

    def begin() -> Iterator[Published]:
        job = new_job(filled.lake.settings, source, "", window=window, tables=("screen",))
        return run_job(job, InProcess, Silent())

    days = begin()
    next(days)
    assert "1 of 2 days published" in terminal.run("status").err
    del days  # whoever carried it out is gone
    said = terminal.run("status")
    assert "replay of 2026-10-01T00 to 2026-10-03T00 of screen interrupted after 1 of 2" in said.err
    assert "launch it again, and it goes on" in said.err
    [shown] = terminal.run("status", "--json").json[1]["interrupted_replays"]
    assert (shown["tables"], shown["days_published"], shown["days"]) == (["screen"], 1, 2)

    days = begin()
    next(days)
    assert "interrupted" not in terminal.run("status").err
    assert list(days) == []
    assert terminal.run("status", "--json").json[1]["interrupted_replays"] == []


def test_the_next_sync_is_told_as_the_schedule_has_it(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text(
        """\
workspace_id: W1
storage: ./data
sources:
  - {id: a1, slug: yearly, schedule: "30 2 1 1 *", schedule_timezone: Europe/Berlin}
  - {id: b2, slug: never, schedule: off}
"""
    )
    [yearly, never] = terminal.run("status", "--json").json
    assert yearly["next_sync"].endswith("-01-01T01:30:00Z")
    assert never["next_sync"] is None
    said = terminal.run("status")
    assert "never: `schedule` is off: no scheduled syncs" in said.err
    lake = Lake.open(load_settings(None, {}, tmp_path))
    due = first_sync_due(lake.storage, lake.settings.source("yearly"), datetime.now(UTC))
    assert due is not None
    [yearly, _] = terminal.run("status", "--json").json
    assert yearly["next_sync"] == f"{due:%Y-%m-%dT%H:%M:%S.%f}Z"


def test_before_the_first_sync_there_are_none(terminal: Terminal, unsynced: SampleLake) -> None:
    said = terminal.run("tables")
    assert (said.code, said.out) == (0, "")
    assert "No tables yet" in said.err
    assert terminal.run("tables", "--json").json == []


def test_every_table_with_its_rows_and_partitions(terminal: Terminal, filled: SampleLake) -> None:
    found = terminal.run("tables", "--json").json
    loads = filled.account.as_they_arrive("9IP56Shn6")
    expected = filled.account.expected("9IP56Shn6", [load for sync in loads for load in sync]).rows
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


def test_of_one_database(terminal: Terminal, filled: SampleLake) -> None:
    said = terminal.run("tables", "web_shop")
    assert {row[0] for row in said.rows} == {"web_shop"}
    assert ["web_shop", "page"] in [row[:2] for row in said.rows]


def test_the_table_of_reports_has_no_count_of_rows(terminal: Terminal, filled: SampleLake) -> None:
    [reports] = terminal.run("tables", "__segment_datalake", "--json").json
    assert (reports["table"], reports["rows"]) == (sync_reports.NAME, None)
    keys = len(sync_reports.SYNC_REPORTS.partition_keys)
    assert reports["columns"] == len(sync_reports.COLUMNS) + keys


def test_the_columns_of_one_table_with_where_they_come_from(
    terminal: Terminal, filled: SampleLake
) -> None:
    columns = terminal.run("tables", "web_shop.track_order_completed", "--json").json
    assert columns[0] == {
        "name": "message_id",
        "type": "string",
        "path": "/messageId",
        "partition_key": False,
        "wished_type": None,
    }
    by_name = {column["name"]: column for column in columns}
    assert by_name["properties_total"]["type"] == "decimal(38,6)"
    assert by_name["properties_total"]["path"] == "/properties/total"
    assert [c["name"] for c in columns if c["partition_key"]] == ["day", "hr"]
    said = terminal.run("tables", "web_shop.track_order_completed")
    assert said.out.startswith("web_shop.track_order_completed: Order Completed, ")
    assert said.rows[0] == ["message_id", "string", "/messageId"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("web_shp", "no database 'web_shp'; did you mean 'web_shop'?"),
        ("web_shop.pge", "no table 'pge'; did you mean 'page'? `datalake tables web_shop`"),
        ("x.y", "databases: __segment_datalake, ios_prod, web_shop"),
    ],
)
def test_unknown_names_are_wrong_use(
    terminal: Terminal, filled: SampleLake, name: str, told: str
) -> None:
    said = terminal.run("tables", name)
    assert said.code == 2
    assert told in said.err


def fail_a_run(sample: SampleLake) -> None:
    now = datetime.now(UTC)
    run = RunFacts("W1", "9IP56Shn6", "ios_prod", "R-failed", now, "")
    traced = "PythonException: worker\nTraceback (most recent call last):\n  File x\nOSError: full"
    failure = Failure("Segment.Internal", traced)
    close_run(sample.lake.storage, sample.lake.catalog, run, UnitReport(), now, failure)


def test_before_the_first_run_there_are_none(terminal: Terminal, unsynced: SampleLake) -> None:
    said = terminal.run("reports")
    assert (said.code, said.out) == (0, "")
    assert "No reports yet" in said.err
    assert terminal.run("reports", "--json").json == []


def test_the_newest_comes_first(terminal: Terminal, filled: SampleLake) -> None:
    found = terminal.run("reports", "--json").json
    assert [(r["database"], r["dagster_run_id"]) for r in found] == [
        ("ios_prod", "dagster-2"),
        ("web_shop", "dagster-2"),
        ("ios_prod", "dagster-1"),
        ("web_shop", "dagster-1"),
    ]
    assert {r["type"] for r in found} == {"source"}
    assert [r["run_id"] for r in found] == sorted((r["run_id"] for r in found), reverse=True)


def test_the_table_shows_what_each_run_did(terminal: Terminal, filled: SampleLake) -> None:
    first = filled.account.per_sync("9IP56Shn6")[0]
    row = terminal.run("reports", "--source", "ios_prod").rows[-1]
    assert row[1:8] == [
        "ios_prod",
        "sync",
        "finished",
        f"{len(first.tables)} tables",
        str(first.totals.row_count),
        str(first.totals.duplicates),
        str(first.totals.rejected),
    ]


def test_of_one_source_and_no_more_than_asked_for(terminal: Terminal, filled: SampleLake) -> None:
    words = ("reports", "--source", "web_shop", "--limit", "1", "--json")
    assert [(r["database"], r["dagster_run_id"]) for r in terminal.run(*words).json] == [
        ("web_shop", "dagster-2")
    ]


def test_failed_ones_alone_each_with_its_error_in_a_line(
    terminal: Terminal, filled: SampleLake
) -> None:
    assert "No run has failed" in terminal.run("reports", "--failed").err
    fail_a_run(filled)
    said = terminal.run("reports", "--failed")
    assert [row[-1] for row in said.rows] == ["R-failed"]
    assert said.err == "error: run R-failed: OSError: full\n"


def test_the_tables_of_one_run_by_either_id(terminal: Terminal, filled: SampleLake) -> None:
    newest = terminal.run("reports", "--json").json[0]
    expected = filled.account.per_sync("9IP56Shn6")[1].tables
    said = terminal.run("reports", "--run", newest["run_id"])
    assert {row[0] for row in said.rows} == set(expected)
    lines = terminal.run("reports", "--run", "dagster-2", "--json").json
    assert [line["type"] for line in lines[:2]] == ["source", "event"]
    assert {line["table_name"]: line["row_count"] for line in lines[1:]} == {
        table: totals.row_count for table, totals in expected.items()
    }


def test_a_failed_run_is_shown_with_all_of_its_error(
    terminal: Terminal, filled: SampleLake
) -> None:
    fail_a_run(filled)
    said = terminal.run("reports", "--run", "R-failed")
    assert "ios_prod: failed" in said.out
    assert "Segment.Internal: PythonException: worker\nTraceback" in said.err


def test_an_unknown_run_is_wrong_use(terminal: Terminal, filled: SampleLake) -> None:
    said = terminal.run("reports", "--run", "17")
    assert said.code == 2
    assert "No report has the run id '17'" in said.err

"""Sync reports: their lines, their history, and runs that are still open."""

import os
import re
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eventlake.catalog.sync_reports import COLUMNS, DATABASE, NAME
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.counts import NewColumn, TableReport, UnitReport
from eventlake.runs.dead_runs import close_dead_runs
from eventlake.runs.open_runs import OpenRun, close_failed_run, close_run, opened_run
from eventlake.runs.report_history import newest_reports
from eventlake.runs.sync import sync_units
from eventlake.state.lease import Holder, myself
from eventlake.state.report import Failure, RunFacts
from eventlake.storage.documents import encode
from tests.support.lakes.archive import identify, order, page
from tests.support.lakes.runs import SOURCE_ID, Runs
from tests.support.lakes.settings import SHOP, settings_of

TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}")
BALANCE = ("row_count", "duplicates", "rejected", "suppressed", "skipped")


def lines_of(runs: Runs, run: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The source's line, and those of the tables by name."""
    source, *tables = runs.reports()[run]
    assert source["type"] == "source"
    assert all(line["type"] == "event" for line in tables)
    return source, {line["table_name"]: line for line in tables}


def test_one_line_for_the_source_and_one_for_each_table(tmp_path: Path) -> None:
    runs = Runs(tmp_path, skip_events=["page"])
    runs.load(
        "2026-10-01",
        order("m1", "2026-10-01T07:00", n=1),
        order("m2", "2026-10-01T09:00", n="x"),
        order("m2", "2026-10-01T09:00"),
        order(None, "2026-10-01T09:00"),
        identify("m3", "2026-10-01T07:00"),
        page("m4", "2026-10-01T07:00"),
        "no JSON",
        "",
    )
    [path] = runs.storage.files(paths.reports_root())
    folder = "segment-data/reports/day=2026-10-20/source=S1/run_id=R1"
    assert path.path == f"{folder}/report.json"
    source, tables = lines_of(runs, "R1")
    assert list(tables) == ["identify", "track_order"]
    size = sum(file.size for file in runs.storage.files("segment-data/data"))
    finish = source.pop("finish_time")
    assert TIME.fullmatch(finish)
    source.pop("duration_mins")
    assert source == {
        "type": "source",
        "workspace_id": "W1",
        "source_id": "S1",
        "run_id": "R1",
        "start_time": "2026-10-20 00:01:00.123",
        "status": "finished",
        "table_name": "",
        "database": "shop",
        "row_count": 3,
        "is_new": False,
        "replay": False,
        "emr_cluster_id": "",
        "s3_bucket": str(tmp_path),
        "day": "2026-10-20",
        "rows_in": 7,
        "duplicates": 1,
        "rejected": 2,
        "suppressed": 0,
        "skipped": 1,
        "rescued_cells": 0,
        "files_written": 3,
        "bytes_written": size,
        "raw_files": 1,
        "ignored_files": 0,
        "dagster_run_id": "",
    }
    orders = tables["track_order"]
    assert orders["partitions"] == [{"day": "2026-10-01", "hr": hr} for hr in ("07", "09")]
    assert orders["is_new"] is True
    assert len(orders["new_columns"]) == 17
    assert orders["new_columns"][-1] == {"name": "properties_n", "type": "string"}
    assert [orders[name] for name in ("rows_in", *BALANCE)] == [4, 2, 1, 1, 0, 0]


def test_every_line_balances_and_the_tables_are_part_of_the_source(runs: Runs) -> None:
    runs.load(
        "2026-10-01",
        *(order(f"m{n % 3}", f"2026-10-01T0{n}:00", n=n) for n in range(5)),
        identify(None, "2026-10-01T07:00"),
        identify("m9", "2026-10-01T07:00"),
        "no JSON",
    )
    source, tables = lines_of(runs, "R1")
    for line in (source, *tables.values()):
        assert line["rows_in"] == sum(line[name] for name in BALANCE)
    for name in ("row_count", "duplicates", "files_written", "bytes_written", "rescued_cells"):
        assert source[name] == sum(line[name] for line in tables.values())
    assert (source["rejected"], tables["identify"]["rejected"]) == (2, 1)


def test_fields_are_columns_of_the_table_of_reports_or_its_keys(runs: Runs) -> None:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    table = runs.catalog.table(DATABASE, NAME)
    assert table is not None
    assert table.columns == COLUMNS
    known = {column.name for column in COLUMNS} | set(table.partition_keys)
    for lines in runs.reports().values():
        for line in lines:
            assert set(line) <= known
    [partition] = runs.catalog.partitions(DATABASE, NAME)
    assert partition.values == (SOURCE_ID, "2026-10-20")
    assert partition.location == "segment-data/reports/day=2026-10-20/source=S1"


def test_new_columns_are_listed_only_where_there_are_some(runs: Runs) -> None:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00"), identify("m2", "2026-10-01"))
    runs.load(
        "2026-10-01", order("m3", "2026-10-01T07:00", n=1), identify("m4", "2026-10-01"), name="b"
    )
    _, tables = lines_of(runs, "R2")
    assert tables["track_order"]["new_columns"] == [{"name": "properties_n", "type": "bigint"}]
    assert "new_columns" not in tables["identify"]
    assert not any(line["is_new"] for line in tables.values())


def test_a_replay_reports_its_range(runs: Runs) -> None:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00"))
    runs.replay("2026-10-01T07:00", "2026-10-01T09:00")
    source, tables = lines_of(runs, "R2")
    for line in (source, tables["track_order"]):
        assert line["replay"] is True
        assert line["replay_from"] == "2026-10-01 07:00:00.000"
        assert line["replay_to"] == "2026-10-01 09:00:00.000"
    of_sync, _ = lines_of(runs, "R1")
    assert of_sync["replay"] is False
    assert not {"replay_from", "replay_to", "error", "error_code"} & set(of_sync)


def test_a_run_over_several_days_has_one_report_of_all(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", order(day, f"{day}T07:00", **{f"p{day[-1]}": 1}), "no JSON")
    runs.sync()
    source, tables = lines_of(runs, "R1")
    assert (source["row_count"], source["rejected"], source["raw_files"]) == (2, 2, 2)
    orders = tables["track_order"]
    assert orders["partitions"] == [{"day": f"2026-10-0{n}", "hr": "07"} for n in (1, 2)]
    assert orders["is_new"] is True
    assert [c["name"] for c in orders["new_columns"]][-2:] == ["properties_p1", "properties_p2"]


def test_nothing_to_do_is_a_finished_run_without_tables_or_files(runs: Runs) -> None:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00"))
    before = runs.storage.files("segment-data/data")

    def no_flow() -> Any:
        raise AssertionError("nothing to read, so nothing may be started")

    runs.flow = no_flow
    runs.sync()
    source, tables = lines_of(runs, "R2")
    assert (source["status"], source["rows_in"], tables) == ("finished", 0, {})
    assert runs.storage.files("segment-data/data") == before


def test_units_come_out_as_soon_as_they_are_in_the_lake(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", order(day, f"{day}T07:00"))
    units = sync_units(runs.context())
    first = next(units)
    assert runs.ids("track_order") == ["2026-10-01"]
    assert first.report.row_count == 1
    assert {check.check for check in first.checks} == {"dedup", "types", "conservation"}
    assert runs.reports() == {}
    [second] = list(units)
    assert second.manifest.report.row_count == 2
    assert list(runs.reports()) == ["R1"]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(settings_of(tmp_path, SHOP, {"id": "S2", "slug": "app"}))


def report(lake: Lake, source_id: str, start: str, done: UnitReport | None = None) -> None:
    begun = datetime.fromisoformat(f"2026-10-{start}:00.250+00:00").astimezone(UTC)
    run = RunFacts("W1", source_id, "db", f"{source_id}@{start}", begun, "")
    finish = begun + timedelta(seconds=90)
    close_run(lake.storage, lake.catalog, run, done or UnitReport(), finish)


def test_they_come_newest_first_across_days_and_sources(lake: Lake) -> None:
    assert list(newest_reports(lake)) == []
    for source_id, start in [("S1", "01T10:00"), ("S2", "02T09:00"), ("S1", "02T08:00")]:
        report(lake, source_id, start)
    report(lake, "S2", "01T11:00")
    expected = ["S2@02T09:00", "S1@02T08:00", "S2@01T11:00", "S1@01T10:00"]
    assert [run.run_id for run in newest_reports(lake)] == expected
    assert [run.run_id for run in newest_reports(lake, {"S1"})] == ["S1@02T08:00", "S1@01T10:00"]


def test_a_report_has_its_duration_and_new_columns(lake: Lake) -> None:
    columns = (NewColumn("a", "string"), NewColumn("b", "bigint"))
    tables = {
        "db.made": TableReport("made", "made", 0, new_columns=columns, is_new=True),
        "db.grown": TableReport("grown", "grown", 0, new_columns=columns),
        "db.same": TableReport("same", "same", 0),
    }
    report(lake, "S1", "01T10:00", UnitReport(tables))
    [run] = newest_reports(lake)
    assert run.seconds == 90
    assert run.started == datetime(2026, 10, 1, 10, 0, 0, 250_000, UTC)
    assert run.new_tables == ["made"]
    assert run.new_columns == ["grown.a", "grown.b"]


@pytest.mark.parametrize("damaged", [b"[]\n", b'{"type": "event"}\n', b'{"type": "source"}\n'])
def test_a_damaged_report_is_named_when_it_is_read(lake: Lake, damaged: bytes) -> None:
    report(lake, "S1", "01T10:00")
    report(lake, "S1", "02T10:00")
    path = paths.report("S1", "2026-10-01", "S1@01T10:00")
    lake.storage.write(path, damaged)
    whole, stand_in = newest_reports(lake)
    assert (whole.run_id, whole.damaged) == ("S1@02T10:00", False)
    assert (stand_in.run_id, stand_in.source.status) == ("S1@01T10:00", "damaged")
    assert "run_id=S1@01T10:00/report.json is not a sync report" in str(stand_in.source.error)


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


def test_a_run_is_known_while_it_is_in_progress(runs: Runs) -> None:
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


def test_a_sync_warns_of_a_dead_run(runs: Runs) -> None:
    begun(runs, GONE)
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00"))
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

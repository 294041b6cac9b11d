"""What `report.json` says of a run: its lines, its fields, and that they add up."""

import re
from pathlib import Path
from typing import Any

from eventlake.catalog.sync_reports import COLUMNS, DATABASE, NAME
from eventlake.rules import paths
from eventlake.runs.sync import sync_units
from tests.support.lakes.archive import identify, page, track
from tests.support.lakes.runs import SOURCE_ID, Runs

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
    runs.archive.day("2026-10-01").file(
        "a",
        track("Order", "m1", "2026-10-01T07:00", n=1),
        track("Order", "m2", "2026-10-01T09:00", n="x"),
        track("Order", "m2", "2026-10-01T09:00"),
        track("Order", None, "2026-10-01T09:00"),
        identify("m3", "2026-10-01T07:00"),
        page("m4", "2026-10-01T07:00"),
        "no JSON",
        "",
    )
    runs.sync()
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
        "dagster_run_id": "",
    }
    orders = tables["track_order"]
    assert orders["partitions"] == [
        {"day": "2026-10-01", "hr": "07"},
        {"day": "2026-10-01", "hr": "09"},
    ]
    assert orders["is_new"] is True
    assert len(orders["new_columns"]) == 17
    assert orders["new_columns"][-1] == {"name": "properties_n", "type": "string"}
    assert {name: orders[name] for name in ("rows_in", *BALANCE)} == {
        "rows_in": 4,
        "row_count": 2,
        "duplicates": 1,
        "rejected": 1,
        "suppressed": 0,
        "skipped": 0,
    }


def test_every_line_balances_and_the_tables_are_part_of_the_source(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file(
        "a",
        *(track("Order", f"m{n % 3}", f"2026-10-01T0{n}:00", n=n) for n in range(5)),
        identify(None, "2026-10-01T07:00"),
        identify("m9", "2026-10-01T07:00"),
        "no JSON",
    )
    runs.sync()
    source, tables = lines_of(runs, "R1")
    for line in (source, *tables.values()):
        assert line["rows_in"] == sum(line[name] for name in BALANCE)
    for name in ("row_count", "duplicates", "files_written", "bytes_written", "rescued_cells"):
        assert source[name] == sum(line[name] for line in tables.values())
    assert (source["rejected"], tables["identify"]["rejected"]) == (2, 1)


def test_fields_are_columns_of_the_table_of_reports_or_its_keys(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.sync()
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


def test_new_columns_stand_only_where_there_are_some(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", track("Order", "m1", "2026-10-01T07:00"), identify("m2", "2026-10-01"))
    runs.sync()
    day.file("b", track("Order", "m3", "2026-10-01T07:00", n=1), identify("m4", "2026-10-01"))
    runs.sync()
    _, tables = lines_of(runs, "R2")
    assert tables["track_order"]["new_columns"] == [{"name": "properties_n", "type": "bigint"}]
    assert "new_columns" not in tables["identify"]
    assert not any(line["is_new"] for line in tables.values())


def test_a_replay_says_of_what_range(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.sync()
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
        runs.archive.day(day).file(
            "a", track("Order", day, f"{day}T07:00", **{f"p{day[-1]}": 1}), "no JSON"
        )
    runs.sync()
    source, tables = lines_of(runs, "R1")
    assert (source["row_count"], source["rejected"], source["raw_files"]) == (2, 2, 2)
    orders = tables["track_order"]
    assert orders["partitions"] == [
        {"day": "2026-10-01", "hr": "07"},
        {"day": "2026-10-02", "hr": "07"},
    ]
    assert orders["is_new"] is True
    assert [c["name"] for c in orders["new_columns"]][-2:] == ["properties_p1", "properties_p2"]


def test_nothing_to_do_is_a_finished_run_without_tables_or_files(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.sync()
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
        runs.archive.day(day).file("a", track("Order", day, f"{day}T07:00"))
    units = sync_units(runs.context())
    first = next(units)
    assert runs.ids("track_order") == ["2026-10-01"]
    assert first.report.row_count == 1
    assert {check.check for check in first.checks} == {"dedup", "types", "conservation"}
    assert runs.reports() == {}
    [second] = list(units)
    assert second.manifest.report.row_count == 2
    assert list(runs.reports()) == ["R1"]

"""Downloading records and their payloads."""

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.lake import Lake
from eventlake.load.record_log import SCHEMA, BatchType, RecordLog
from eventlake.records.logs import check_target, download, run_log, run_logs, search
from eventlake.records.payloads import with_payloads
from eventlake.rules import paths
from eventlake.rules.errors import UsageError
from eventlake.storage import Storage
from tests.support.lakes.archive import as_line, track
from tests.support.lakes.recorded import LINES
from tests.support.lakes.runs import Row, Runs

AT = datetime(2026, 10, 20, 0, 1, 0, 123456, UTC)
RECORDS: list[Row] = [
    {
        "identifier": "m1",
        "record_payload": None,
        "operation": "append",
        "status": "succeeded",
        "status_message": None,
        "batch_started_at": AT,
        "batch_ended_at": AT,
        "raw_file": "a.gz",
        "raw_line": 1,
        "table_name": "track_order",
        "partition": "day=2026-10-01/hr=07",
        "data_file": "R1-0-0.parquet",
    },
    {
        "identifier": 'q"1, \n注',
        "record_payload": '{"a": "x,y"}\n',
        "operation": "append",
        "status": "rejected",
        "status_message": "",
        "batch_started_at": AT,
        "batch_ended_at": AT,
        "raw_file": "a.gz",
        "raw_line": 2**40,
        "table_name": None,
        "partition": None,
        "data_file": None,
    },
]


def tables() -> list[pa.Table]:
    """A table for each record: what is written in pieces is one file all the same."""
    return [pa.Table.from_pylist([record], SCHEMA) for record in RECORDS]


def test_csv_has_names_first_and_tells_nothing_from_an_empty_text(tmp_path: Path) -> None:
    assert download(tables(), tmp_path / "r.csv") == 2
    text = (tmp_path / "r.csv").read_text()
    names, *rows = csv.reader(text.splitlines(keepends=True))
    assert names == SCHEMA.names
    assert [row[0] for row in rows] == ["m1", 'q"1, \n注']
    assert rows[0][5] == "2026-10-20 00:01:00.123456Z"
    assert rows[1][8] == str(2**40)
    assert ',"succeeded",,' in text
    assert ',"rejected","",' in text


def test_json_lines_have_an_object_a_line(tmp_path: Path) -> None:
    download(tables(), tmp_path / "r.jsonl")
    found: list[Any] = [
        json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()
    ]
    as_text = {"batch_started_at": "2026-10-20T00:01:00.123456Z"}
    as_text["batch_ended_at"] = as_text["batch_started_at"]
    assert found == [record | as_text for record in RECORDS]


def test_parquet_has_the_columns_of_the_log(tmp_path: Path) -> None:
    download(tables(), tmp_path / "r.PARQUET")
    found = pq.read_table(tmp_path / "r.PARQUET")
    assert found.schema == SCHEMA
    assert found.to_pylist() == RECORDS


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.parquet"])
def test_no_records_are_a_file_without_any(tmp_path: Path, name: str) -> None:
    assert download([], tmp_path / name) == 0
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["r.txt", "r", "r.json", ".csv"])
def test_another_ending_is_refused_with_those_there_are(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"the ending says what to write: \.csv, \.jsonl, \.parqu"):
        check_target(tmp_path / name)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give a file in a folder that exists"):
        check_target(tmp_path / "no" / "r.csv")
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(UsageError, match="give a file in a folder that exists"):
        check_target(tmp_path / "dir.csv")


def test_what_breaks_off_leaves_what_was_there(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.Table]:
        yield tables()[0]
        raise OSError("the disk is gone")

    (tmp_path / "r.csv").write_text("before")
    with pytest.raises(OSError, match="the disk is gone"):
        download(broken(), tmp_path / "r.csv")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"r.csv": "before"}


def found(lake: Lake, identifier: str, run: str = "R1") -> tuple[list[Row], list[str]]:
    source = lake.settings.sources[0]
    files = run_log(lake, [source], run).files
    records = [r for _, t in search(lake.storage, files, identifier) for r in t.to_pylist()]
    return with_payloads(lake.storage, run_logs(lake, source), records, source.limits)


def suppress(storage: Storage, run: str, identifier: str) -> None:
    """Let a run say that it left out the record of somebody who is suppressed."""
    with RecordLog(storage, "aside", "append") as log:
        log.add(BatchType.SUPPRESSED, pa.table({"identifier": [identifier]}), "test")
    (file,) = storage.files("aside")
    storage.move_into_place(
        file.path, f"{paths.tracking('W1', 'S1', run)}/{BatchType.SUPPRESSED}.0.parquet"
    )


def test_a_loaded_record_has_its_line_of_the_archive(lake: Lake) -> None:
    records, problems = found(lake, "m2")
    assert [(r["status"], r["record_payload"]) for r in records] == [
        ("succeeded", as_line(LINES[6]).decode())
    ]
    assert problems == []


def test_what_was_not_loaded_keeps_the_payload_that_the_log_has(runs: Runs, lake: Lake) -> None:
    runs.archive.day("2026-10-01").raw("a.gz", b"")
    records, problems = found(lake, "d1")
    assert [r["record_payload"] for r in records] == [as_line(LINES[5]).decode()]
    assert problems == []


@pytest.mark.parametrize(
    "content", [None, b"", b"\n" * 9, b"{}\n" * 9, as_line(track("Order", "m3", "2026-10-01"))]
)
def test_a_line_that_is_another_now_is_not_passed_off(
    runs: Runs, lake: Lake, content: bytes | None
) -> None:
    path = runs.archive.day("2026-10-01").raw("a.gz", content or b"")
    if content is None:
        path.unlink()
    records, (problem,) = found(lake, "m2")
    assert [r["record_payload"] for r in records] == [None]
    assert "line 7 of segment-logs/S1/1790812800000/a.gz is no longer this event" in problem


def test_a_record_that_is_identified_by_its_hash_has_its_line_too(runs: Runs, lake: Lake) -> None:
    nameless = track("Order", None, "2026-10-02")
    runs.set(load_without_message_id=True)
    runs.archive.day("2026-10-02").file("b", nameless)
    runs.sync()
    (identifier,) = (i for i in runs.ids("track_order") if len(i) == 64)
    records, problems = found(lake, identifier, "R2")
    assert ([r["record_payload"] for r in records], problems) == ([as_line(nameless).decode()], [])


@pytest.mark.parametrize("run", ["R1", "R2"])
def test_nothing_is_shown_of_people_who_are_suppressed_in_any_run(
    runs: Runs, lake: Lake, run: str
) -> None:
    runs.sync()
    suppress(lake.storage, run, "m2")
    records, problems = found(lake, "m2")
    assert {r["record_payload"] for r in records} == {None}
    assert problems == ["Its user is suppressed, so the payload is not shown."]
    assert found(lake, "m1")[0][0]["record_payload"] == as_line(LINES[0]).decode()


def test_no_records_have_no_payloads(lake: Lake) -> None:
    nothing: tuple[list[Any], list[Any]] = ([], [])
    assert found(lake, "nobody") == nothing

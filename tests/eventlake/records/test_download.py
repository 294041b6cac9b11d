"""Records as a file: the same in all three formats."""

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.load.record_log import SCHEMA
from eventlake.records.logs import check_target, download
from eventlake.rules.errors import UsageError
from tests.support.lakes.runs import Row

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

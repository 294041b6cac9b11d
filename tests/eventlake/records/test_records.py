"""The record logs of runs: files, statuses, records that were not loaded, downloads, payloads."""

import csv
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.lake import Lake
from eventlake.load import record_log
from eventlake.load.blobs import BlobKind
from eventlake.load.not_loaded import log_not_loaded
from eventlake.load.record_log import SCHEMA, BatchType, LogJob, NotLoaded, RecordLog
from eventlake.load.seen import position
from eventlake.records.logs import check_target, download, newest_log, run_log, run_logs, search
from eventlake.records.payloads import with_payloads
from eventlake.rules import paths
from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import StateError, UsageError
from eventlake.rules.names import Naming
from eventlake.rules.partitions import DatePartition
from eventlake.runs.open_runs import close_run
from eventlake.runs.record_log import write_metadata
from eventlake.settings.models import Limits
from eventlake.state.report import RunFacts
from eventlake.storage import LocalStorage, Storage
from tests.support.lakes.archive import as_line, track
from tests.support.lakes.recorded import LINES, expire
from tests.support.lakes.runs import Row, Runs, utc
from tests.support.lakes.staged import Staged


def some(*identifiers: str, payload: str = "{}") -> pa.Table:
    return pa.table(
        {"identifier": list(identifiers), "record_payload": [payload] * len(identifiers)}
    )


def written(root: Path) -> dict[str, list[str]]:
    """The identifiers in each file, by its batch type and number."""
    found = {}
    for path in sorted(root.rglob("*.parquet")):
        batch_type, _, number = path.stem.split("-")
        found[f"{batch_type} {number}"] = pq.read_table(path)["identifier"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("batch_type", "status"),
    [
        ("records_loaded", "succeeded"),
        ("records_rejected", "rejected"),
        ("records_duplicate", "DUPLICATE"),
        ("records_null", "NULL"),
        ("records_suppressed", "rejected"),
        ("records_skipped", "rejected"),
    ],
)
def test_each_batch_type_has_a_status(tmp_path: Path, batch_type: str, status: str) -> None:
    with RecordLog(LocalStorage(str(tmp_path)), "log", "append") as log:
        log.add(BatchType(batch_type), some("m1"), "here")
    [path] = tmp_path.rglob("*.parquet")
    assert path.name.startswith(f"{batch_type}-")
    table = pq.read_table(path)
    assert table.schema.names == SCHEMA.names
    [record] = table.to_pylist()
    assert (record["identifier"], record["status"], record["operation"]) == ("m1", status, "append")
    assert record["raw_file"] is None
    assert record["batch_started_at"] <= record["batch_ended_at"]


def test_files_have_a_limit_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_log, "RECORDS_PER_FILE", 3)
    with RecordLog(LocalStorage(str(tmp_path)), "log", "append") as log:
        log.add(BatchType.LOADED, some("a", "b"), "here")
        assert written(tmp_path) == {}
        log.add(BatchType.NULL, some("x"), "here")
        log.add(BatchType.LOADED, some("c", "d", "e", "f", "g"), "here")
        full = {"records_loaded 0": ["a", "b", "c"], "records_loaded 1": ["d", "e", "f"]}
        assert written(tmp_path) == full
    assert written(tmp_path) == {**full, "records_loaded 2": ["g"], "records_null 0": ["x"]}


def test_files_have_a_limit_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_log, "BYTES_PER_FILE", 1_000)
    with RecordLog(LocalStorage(str(tmp_path)), "log", "append") as log:
        for identifier in "abcde":
            log.add(BatchType.REJECTED, some(identifier, payload="x" * 600), "here")
        full = {"records_rejected 0": ["a", "b"], "records_rejected 1": ["c", "d"]}
        assert written(tmp_path) == full
    assert written(tmp_path) == {**full, "records_rejected 2": ["e"]}


def test_an_error_ends_the_log(tmp_path: Path) -> None:
    with pytest.raises(KeyError), RecordLog(LocalStorage(str(tmp_path)), "log", "append") as log:
        log.add(BatchType.LOADED, some("a"), "here")
        raise KeyError
    assert written(tmp_path) == {}


def test_the_same_work_done_again_writes_the_same_files(tmp_path: Path) -> None:
    for origin in ("here", "here", "there"):
        with RecordLog(LocalStorage(str(tmp_path)), "log", "append") as log:
            log.add(BatchType.LOADED, some(origin), origin)
    assert len(list(tmp_path.rglob("*.parquet"))) == 2


def test_a_log_has_its_run_and_its_files_in_order(lake: Lake) -> None:
    (log,) = run_logs(lake, lake.settings.sources[0])
    assert (log.run_id, log.run.kind, log.run.state) == ("R1", "sync", "finished")
    assert log.run.started_at == utc("2026-10-20T00:01:00.123456")
    kinds = ("loaded", "rejected", "duplicate", "null", "skipped")
    expected = [f"records_{kind}.0.parquet" for kind in kinds]
    assert [file.path.rsplit("/", 1)[1] for file in log.files] == expected


def test_the_tenth_file_comes_after_the_ninth(lake: Lake) -> None:
    folder = paths.tracking("W1", "S1", "R1")
    for n in (10, 9, 1):
        name = f"{folder}/records_loaded"
        lake.storage.copy(f"{name}.0.parquet", f"{name}.{n}.parquet")
    log = run_log(lake, lake.settings.sources, "R1")
    assert [file.number for file in log.files[:4]] == [0, 1, 9, 10]


@pytest.mark.parametrize(
    "name",
    ["records_loaded.parquet", "records_loaded.x.parquet", "records_lost.0.parquet", "notes.txt"],
)
def test_other_files_are_not_read(lake: Lake, name: str) -> None:
    folder = paths.tracking("W1", "S1", "R1")
    before = run_log(lake, lake.settings.sources, "R1")
    lake.storage.write(f"{folder}/{name}", b"")
    assert run_log(lake, lake.settings.sources, "R1") == before


def test_the_newest_log_is_the_last_that_has_records(runs: Runs, lake: Lake) -> None:
    source = lake.settings.sources[0]
    runs.archive.day("2026-10-02").file("b", track("Order", "m3", "2026-10-02"))
    runs.sync()
    runs.sync()  # with nothing to do
    found = [(log.run_id, bool(log.files)) for log in run_logs(lake, source)]
    assert found == [("R3", False), ("R2", True), ("R1", True)]
    assert newest_log(lake, source).run_id == "R2"


def test_a_run_is_found_by_its_dagster_run_id(lake: Lake) -> None:
    now = datetime.now(UTC)
    facts = RunFacts("W1", "S1", "shop", "R5", now, "", dagster_run_id="4711-abc")
    close_run(lake.storage, lake.catalog, facts, UnitReport(), now)
    assert run_log(lake, lake.settings.sources, "4711-abc").run_id == "R5"


@pytest.mark.parametrize("run", ["R9", "", ".", "..", "../S1/R1", "R1/"])
def test_an_unknown_run_is_refused_with_the_known_ones(lake: Lake, run: str) -> None:
    with pytest.raises(UsageError, match=rf"(?s)No run of shop has the id '{run}'.*R1 \(shop\)"):
        run_log(lake, lake.settings.sources, run)


def test_an_expired_log_is_not_an_unknown_run(lake: Lake) -> None:
    expire(lake, "R1")
    reason = r"(?s)Run R1 of shop began 2026-10-20 00:01 UTC.*kept 14 days"
    with pytest.raises(UsageError, match=reason):
        run_log(lake, lake.settings.sources, "R1")


def test_before_the_first_record_there_is_no_newest_log(lake: Lake) -> None:
    source = lake.settings.sources[0]
    expire(lake, "R1")
    with pytest.raises(UsageError, match="`datalake sync` creates one, and logs are kept 14 days"):
        newest_log(lake, source)
    write_metadata(lake.storage, RunFacts("W1", "S1", "shop", "R2", utc("2026-10-20"), ""), "x")
    with pytest.raises(UsageError, match="had no records to log"):
        newest_log(lake, source)


def test_damaged_metadata_are_named(lake: Lake) -> None:
    lake.storage.write(f"{paths.tracking('W1', 'S1', 'R1')}/metadata.json", b"{}")
    with pytest.raises(StateError, match=r"R1/metadata\.json does not describe a run"):
        run_logs(lake, lake.settings.sources[0])


EVENT = (
    '{"type":"track","event":"Order","messageId":"m1","userId":"zoe",'
    '"receivedAt":"2026-10-01T07:00Z","properties":{"secret":"zoe@example.com"}}'
)


def logged(root: Path, reason: str) -> tuple[str, dict[str, Any]]:
    """The batch type of the one file, and the one record in it."""
    partition = DatePartition.DAY_HOUR
    storage = LocalStorage(str(root))
    job = LogJob(
        *(storage, "log", "append", Naming.NATIVE, "web", partition, Limits(), 7),
        raw_files=("other.json", "a.json"),
        reasons=("another", reason),
        broken={},
    )
    lines = Staged(root / "raw", [], ["", EVENT]).of(BlobKind.LINES)
    rows = NotLoaded(np.array([position(1, 2)], np.uint64), np.array([1]))
    log_not_loaded(job, [(lines, rows)], list)
    [path] = (root / "log").iterdir()
    [record] = pq.read_table(path).to_pylist()
    return path.name.split("-")[0], record


@pytest.mark.parametrize(
    ("reason", "batch_type", "status", "message"),
    [
        (
            *("duplicate", "records_duplicate", "DUPLICATE"),
            "An event with the same messageId, received within 7 days of this one, is in the lake.",
        ),
        ("skipped", "records_skipped", "rejected", "Its table is listed in `skip_events`."),
        ("suppressed", "records_suppressed", "rejected", "Its user is suppressed."),
        (
            *("too_many_columns", "records_rejected", "rejected"),
            "The event needs columns beyond the limit `columns` of a table.",
        ),
        (
            *("catalog_full", "records_rejected", "rejected"),
            "The event needs a new table, but the catalog has reached its limit.",
        ),
        ("no_message_id", "records_null", "NULL", "`messageId` is missing or empty."),
    ],
)
def test_a_line_that_was_not_loaded_is_logged_with_its_position_and_table(
    tmp_path: Path, reason: str, batch_type: str, status: str, message: str
) -> None:
    found, record = logged(tmp_path, reason)
    assert (found, record["status"], record["status_message"]) == (batch_type, status, message)
    assert (record["identifier"], record["raw_file"], record["raw_line"]) == ("m1", "a.json", 2)
    assert record["table_name"] == "web_track_order"
    assert record["partition"] == "day=2026-10-01/hr=07"
    assert record["data_file"] is None
    assert record["record_payload"] == (None if reason == "suppressed" else EVENT)
    assert reason != "suppressed" or "zoe" not in str(record)


AT = datetime(2026, 10, 20, 0, 1, 0, 123456, UTC)
LOADED: Row = {
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
}
REJECTED: Row = {
    "identifier": 'q"1, \n注',
    "record_payload": '{"a": "x,y"}\n',
    "status": "rejected",
    "status_message": "",
    "raw_line": 2**40,
}
RECORDS = [LOADED, LOADED | dict.fromkeys(("table_name", "partition", "data_file")) | REJECTED]


ENDINGS = ("r.txt", "r", "r.json", ".csv")


def tables() -> list[pa.Table]:
    """A table for each record: what is written in pieces is one file all the same."""
    return [pa.Table.from_pylist([record], SCHEMA) for record in RECORDS]


def test_csv_has_names_first_and_distinguishes_null_from_empty_text(tmp_path: Path) -> None:
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
    found = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    time = "2026-10-20T00:01:00.123456Z"
    as_text = {"batch_started_at": time, "batch_ended_at": time}
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


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, "the ending sets the format: .csv, .jsonl, .parqu") for name in ENDINGS),
        ("no/r.csv", "give a file in a folder that exists"),
        ("dir.csv", "give a file in a folder that exists"),
    ],
)
def test_another_ending_or_folder_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(UsageError, match=re.escape(reason)):
        check_target(tmp_path / name)


def test_a_failed_download_leaves_the_old_file(tmp_path: Path) -> None:
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
    """Let the log of a run have the record of a suppressed user."""
    with RecordLog(storage, "aside", "append") as log:
        log.add(BatchType.SUPPRESSED, pa.table({"identifier": [identifier]}), "test")
    (file,) = storage.files("aside")
    log_file = f"{paths.tracking('W1', 'S1', run)}/{BatchType.SUPPRESSED}.0.parquet"
    storage.move_into_place(file.path, log_file)


def test_a_loaded_record_has_its_line_of_the_archive(lake: Lake) -> None:
    (record,), problems = found(lake, "m2")
    assert (record["status"], problems) == ("succeeded", [])
    assert record["record_payload"] == as_line(LINES[6]).decode()
    records, problems = found(lake, "missing")
    assert (len(records), problems) == (0, [])


def test_what_was_not_loaded_keeps_the_payload_that_the_log_has(runs: Runs, lake: Lake) -> None:
    runs.archive.day("2026-10-01").raw("a.gz", b"")
    records, problems = found(lake, "d1")
    assert [r["record_payload"] for r in records] == [as_line(LINES[5]).decode()]
    assert problems == []


@pytest.mark.parametrize(
    "content", [None, b"", b"\n" * 9, b"{}\n" * 9, as_line(track("Order", "m3", "2026-10-01"))]
)
def test_a_changed_line_is_not_shown(runs: Runs, lake: Lake, content: bytes | None) -> None:
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
def test_payloads_of_suppressed_users_are_hidden(runs: Runs, lake: Lake, run: str) -> None:
    runs.sync()
    suppress(lake.storage, run, "m2")
    records, problems = found(lake, "m2")
    assert {r["record_payload"] for r in records} == {None}
    assert problems == ["Its user is suppressed, so the payload is not shown."]
    assert found(lake, "m1")[0][0]["record_payload"] == as_line(LINES[0]).decode()

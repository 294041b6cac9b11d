"""Reading record logs, from a folder and from S3."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from eventlake.audit.audit import audit
from eventlake.audit.snapshot import Scope
from eventlake.checks.published import check_published
from eventlake.lake import Lake
from eventlake.load.record_log import SCHEMA, BatchType, RecordLog
from eventlake.records import logs
from eventlake.records.find import find
from eventlake.records.logs import (
    LogFile,
    RunLog,
    batch_types,
    newest_log,
    run_log,
    run_logs,
    search,
)
from eventlake.records.payloads import with_payloads
from eventlake.retype import find_column, preview
from eventlake.rules import paths
from eventlake.rules.errors import UsageError
from eventlake.rules.types import LakeType
from eventlake.runs.report_history import newest_reports
from eventlake.runs.unit import Window
from eventlake.settings.models import Source
from eventlake.status import source_status
from eventlake.storage import Storage
from eventlake.storage.s3 import S3Storage
from tests.support.faults.cases import first_sync, replay
from tests.support.lakes.recorded import FILE
from tests.support.lakes.retyping import lake_of
from tests.support.lakes.runs import Row, Runs, utc
from tests.support.servers.aws import AwsServer

LOADED, REJECTED, DUPLICATE, NULL, SUPPRESSED, SKIPPED = BatchType


@pytest.fixture
def log(lake: Lake) -> RunLog:
    return run_log(lake, lake.settings.sources, "R1")


def rows(tables: list[pa.Table]) -> list[Row]:
    return [row for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("", {*BatchType}),
        ("succeeded", {LOADED}),
        ("loaded", {LOADED}),
        ("rejected", {REJECTED, SUPPRESSED, SKIPPED}),
        ("records_rejected", {REJECTED}),
        ("suppressed", {SUPPRESSED}),
        ("skipped", {SKIPPED}),
        ("NULL", {NULL}),
        ("null", {NULL}),
        ("DUPLICATE", {DUPLICATE}),
        ("Duplicate null", {DUPLICATE, NULL}),
    ],
)
def test_a_status_means_these_batch_types(words: str, meant: set[BatchType]) -> None:
    assert batch_types(words.split()) == meant
    with pytest.raises(UsageError, match=r"'failed' is no status\. Allowed are succeeded"):
        batch_types([*words.split(), "failed"])


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("succeeded", [("m1", 1), ("m2", 7)]),
        ("DUPLICATE", [("m1", 2)]),
        ("NULL", [(f"{FILE}:5", 5)]),
        ("rejected", [(f"{FILE}:3", 3), ("d1", 6), ("p1", 4)]),
        ("skipped", [("p1", 4)]),
        ("suppressed", []),
    ],
)
def test_records_of_a_status(lake: Lake, log: RunLog, status: str, expected: object) -> None:
    found = rows(list(logs.read(lake.storage, log.of(batch_types([status])))))
    assert [(row["identifier"], row["raw_line"]) for row in found] == expected


def test_they_are_counted_unread_and_have_the_same_columns(lake: Lake, log: RunLog) -> None:
    expected = {LOADED: 2, REJECTED: 2, DUPLICATE: 1, NULL: 1, SKIPPED: 1}
    assert logs.count(lake.storage, log.files) == expected
    assert {table.schema for file in log.files for table in logs.read(lake.storage, [file])} == {
        SCHEMA
    }


def test_an_identifier_is_found_in_every_file_that_has_it(lake: Lake, log: RunLog) -> None:
    found = logs.search(lake.storage, log.files, "m1")
    assert [(file.batch_type, rows([table])) for file, table in found] == [
        (LOADED, rows(list(logs.read(lake.storage, log.files)))[:1]),
        (DUPLICATE, rows(list(logs.read(lake.storage, log.of([DUPLICATE]))))),
    ]
    assert logs.search(lake.storage, log.files, "M1") == []
    assert logs.search(lake.storage, [], "m1") == []


def written(storage: Storage, *counts: int) -> list[LogFile]:
    """Files of so many records, which are numbered through: n0, n1, …"""
    files, start = [], 0
    for number, count in enumerate(counts):
        with RecordLog(storage, f"log/{number}", "append") as log:
            names = [f"n{n}" for n in range(start, start + count)]
            log.add(LOADED, pa.table({"identifier": names}), "test")
        (file,) = storage.files(f"log/{number}")
        files.append(LogFile(file.path, LOADED, number))
        start += count
    return files


ALL = "n0 n1 n2 n3 n4 n5 n6 n7 n8 n9"


@pytest.mark.parametrize(
    ("size", "sample", "first"),
    [
        (1, "n5", "n0"),
        (2, "n2 n7", "n0 n1"),
        (3, "n1 n5 n8", "n0 n1 n2"),
        (10, ALL, ALL),
        (11, ALL, ALL),
        (99, ALL, ALL),
    ],
)
def test_a_sample_is_spread_over_all_files_and_the_first_are_not(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, size: int, sample: str, first: str
) -> None:
    monkeypatch.setattr(logs, "BATCH", 2)
    files = written(lake.storage, 3, 1, 6)
    for _ in range(2):  # the same every time
        found = rows(list(logs.sample(lake.storage, files, size)))
        assert [row["identifier"] for row in found] == sample.split()
    found = rows(list(logs.first(logs.read(lake.storage, files), size)))
    assert [row["identifier"] for row in found] == first.split()


def test_the_documented_query_runs(lake: Lake) -> None:
    folder = lake.storage.full(paths.tracking("W1", "S1", "R1"))
    with duckdb.connect() as connection:
        query = f"""
        SELECT status_message, ARRAY_AGG(identifier) AS rejected_records
        FROM read_parquet('{folder}/*.parquet', union_by_name=True)
        WHERE status = 'rejected'
        GROUP BY 1
        """
        found = connection.execute(query).fetchall()
    assert sorted(found) == [
        ("Its table is listed in `skip_events`.", ["p1"]),
        (
            "The line is not JSON: expecting property name enclosed in double quotes at "
            "character 2.",
            [f"{FILE}:3"],
        ),
        ('`type` is none of track, identify, page, screen, group, alias: it is "delete".', ["d1"]),
    ]


def test_a_bloom_filter_excludes_files(lake: Lake) -> None:
    files = written(lake.storage, 1000, 1000)
    listed = [lake.storage.full(file.path) for file in files]
    query = "SELECT bloom_filter_excludes FROM parquet_bloom_probe(?, 'identifier', 'n1500')"
    with duckdb.connect() as connection:
        assert connection.execute(query, [listed]).fetchall() == [(True,), (False,)]


Look = Callable[[Lake, Source], Any]


@pytest.fixture
def lakes(tmp_path: Path, aws: AwsServer) -> list[Runs]:
    here = Runs(tmp_path / "here")
    there = Runs(tmp_path / "there", store=S3Storage(f"s3://{aws.bucket()}/lake"))
    for runs in (here, there):
        first_sync(runs)
        replay(runs)
    return [here, there]


def payloads(lake: Lake, source: Source) -> Any:
    logs = run_logs(lake, source)
    files = [file for log in logs for file in log.files]
    found = [r for _, t in search(lake.storage, files, "m1") for r in t.to_pylist()]
    shown, problems = with_payloads(lake.storage, logs, found, source.limits)
    return [(r["raw_file"], r["status"], r["record_payload"]) for r in shown], problems


def records(lake: Lake, source: Source) -> Any:
    files = run_log(lake, [source], "R1").files
    tables = [*logs.read(lake.storage, files), *logs.sample(lake.storage, files, 3)]
    times = ["batch_started_at", "batch_ended_at"]
    found = [table.drop_columns(times).to_pylist() for table in tables]
    return logs.count(lake.storage, files), found, newest_log(lake, source).run_id


def found(lake: Lake, source: Source) -> Any:
    seen = find(lake, source, "m1")
    places = [(o.now, o.now_in, o.record["raw_file"], o.batch_type) for o in seen.occurrences]
    return places, seen.rows, seen.searched.index_days


def status(lake: Lake, source: Source) -> Any:
    seen = source_status(lake, source, utc("2026-10-20T12:30"))
    assert seen.last_sync is not None
    return seen.last_sync.run_id, seen.loaded_until, seen.waiting, seen.lease, seen.open_runs


def reports(lake: Lake, source: Source) -> Any:
    return [(run.run_id, run.is_replay, run.failed) for run in newest_reports(lake)]


def audited(lake: Lake, source: Source) -> Any:
    done = audit(lake, Scope(source))
    paths = [file.path for file in done.raw.read]  # their stamps and times differ
    return replace(done, raw=replace(done.raw, read=())), paths


def types_and_checks(lake: Lake, source: Source) -> Any:
    column = find_column(lake, "shop.track_order.properties_price")
    window = Window(utc("2026-10-01"), utc("2026-10-03"))
    shown = preview(lake, column, LakeType.STRING)
    return shown, list(check_published(lake, source, column.schema, window))


LOOKS: list[Look] = [payloads, records, found, status, reports, audited, types_and_checks]


def test_the_same_is_seen(lakes: list[Runs]) -> None:
    for look in LOOKS:
        here, there = (look(lake_of(runs), runs.source) for runs in lakes)
        assert here
        assert there == here, look

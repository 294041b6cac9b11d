"""What a record's payload was, from the raw archive."""

from typing import Any

import pyarrow as pa
import pytest

from eventlake.lake import Lake
from eventlake.load.record_log import BatchType, RecordLog
from eventlake.records.logs import run_log, run_logs, search
from eventlake.records.payloads import with_payloads
from eventlake.rules import paths
from eventlake.storage import Storage
from tests.support.lakes.archive import as_line, track
from tests.support.lakes.recorded import LINES
from tests.support.lakes.runs import Row, Runs


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
    storage.place(file.path, f"{paths.tracking('W1', 'S1', run)}/{BatchType.SUPPRESSED}.0.parquet")


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

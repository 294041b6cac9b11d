"""Records as they are written: which status, how many to a file, and nothing held for long."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.load import record_log
from eventlake.load.record_log import SCHEMA, BatchType, RecordLog
from eventlake.storage import LocalStorage


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
def test_each_batch_type_has_its_status_and_the_run_s_operation(
    tmp_path: Path, batch_type: str, status: str
) -> None:
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


def test_a_file_has_no_more_records_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_log, "RECORDS_PER_FILE", 3)
    with RecordLog(LocalStorage(str(tmp_path)), "log", "append") as log:
        log.add(BatchType.LOADED, some("a", "b"), "here")
        assert written(tmp_path) == {}
        log.add(BatchType.NULL, some("x"), "here")
        log.add(BatchType.LOADED, some("c", "d", "e", "f", "g"), "here")
        assert written(tmp_path) == {
            "records_loaded 0": ["a", "b", "c"],
            "records_loaded 1": ["d", "e", "f"],
        }
    assert written(tmp_path) == {
        "records_loaded 0": ["a", "b", "c"],
        "records_loaded 1": ["d", "e", "f"],
        "records_loaded 2": ["g"],
        "records_null 0": ["x"],
    }


def test_long_payloads_are_not_held_until_there_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_log, "BYTES_PER_FILE", 1_000)
    with RecordLog(LocalStorage(str(tmp_path)), "log", "append") as log:
        for identifier in "abcde":
            log.add(BatchType.REJECTED, some(identifier, payload="x" * 600), "here")
        assert written(tmp_path) == {
            "records_rejected 0": ["a", "b"],
            "records_rejected 1": ["c", "d"],
        }
    assert written(tmp_path)["records_rejected 2"] == ["e"]


def test_what_breaks_off_writes_no_more(tmp_path: Path) -> None:
    with pytest.raises(KeyError), RecordLog(LocalStorage(str(tmp_path)), "log", "append") as log:
        log.add(BatchType.LOADED, some("a"), "here")
        raise KeyError
    assert written(tmp_path) == {}


def test_the_same_work_done_again_writes_the_same_files(tmp_path: Path) -> None:
    for origin in ("here", "here", "there"):
        with RecordLog(LocalStorage(str(tmp_path)), "log", "append") as log:
            log.add(BatchType.LOADED, some(origin), origin)
    assert len(list(tmp_path.rglob("*.parquet"))) == 2

"""What the record log says of lines that were not loaded, by the reason of each."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from eventlake.load.not_loaded import log_not_loaded
from eventlake.load.record_log import LogJob, NotLoaded
from eventlake.load.stage_job import RawFile
from eventlake.rules.names import Naming
from eventlake.rules.partitions import DatePartition
from eventlake.settings.models import Limits
from eventlake.storage import LocalStorage

EVENT = (
    '{"type":"track","event":"Order","messageId":"m1","userId":"zoe",'
    '"receivedAt":"2026-10-01T07:00Z","properties":{"secret":"zoe@example.com"}}'
)


def logged(root: Path, reason: str) -> tuple[str, dict[str, Any]]:
    """The batch type of the one file, and the one record in it."""
    (root / "a.json").write_text(f"\n{EVENT}\n")
    job = LogJob(
        storage=LocalStorage(str(root)),
        folder="log",
        operation="append",
        naming=Naming.NATIVE,
        table_prefix="web",
        date_partition=DatePartition.DAY_HOUR,
        limits=Limits(),
        dedup_days=7,
    )
    file = RawFile(0, "a.json", 0, "")
    log_not_loaded(job, [NotLoaded(file, np.array([2]), [reason])])
    [path] = (root / "log").iterdir()
    [record] = pq.read_table(path).to_pylist()
    return path.name.split("-")[0], record


@pytest.mark.parametrize(
    ("reason", "batch_type", "status", "message"),
    [
        (
            "duplicate",
            "records_duplicate",
            "DUPLICATE",
            "An event with the same messageId, received within 7 days of this one, is in the lake.",
        ),
        ("skipped", "records_skipped", "rejected", "Its table is listed in `skip_events`."),
        ("suppressed", "records_suppressed", "rejected", "Its user is suppressed."),
        (
            "too_many_columns",
            "records_rejected",
            "rejected",
            "The event needs columns beyond the limit `columns` of a table.",
        ),
        (
            "catalog_full",
            "records_rejected",
            "rejected",
            "The event needs a new table, but the catalog has reached its limit.",
        ),
        ("no_message_id", "records_null", "NULL", "`messageId` is missing or empty."),
    ],
)
def test_a_line_that_could_be_read_is_told_with_its_place_and_table(
    tmp_path: Path, reason: str, batch_type: str, status: str, message: str
) -> None:
    found, record = logged(tmp_path, reason)
    assert (found, record["status"], record["status_message"]) == (batch_type, status, message)
    assert (record["identifier"], record["raw_file"], record["raw_line"]) == ("m1", "a.json", 2)
    assert record["table_name"] == "web_track_order"
    assert record["partition"] == "day=2026-10-01/hr=07"
    assert record["data_file"] is None
    assert record["record_payload"] == (None if reason == "suppressed" else EVENT)


def test_of_suppressed_people_nothing_is_kept(tmp_path: Path) -> None:
    _, record = logged(tmp_path, "suppressed")
    assert "zoe" not in str(record)

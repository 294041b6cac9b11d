"""A dedup task: duplicates among its ids and of the index, counted by table; the rest indexed."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eventlake.columnar.id_hashes import checksum, hash_id
from eventlake.load.blobs import Blob, BlobKind, from_ipc, to_ipc
from eventlake.load.dedup import DedupJob, TableIds, dedup
from eventlake.load.seen import positions
from eventlake.state.id_index import SCHEMA, UNKNOWN, read_index, write_index
from eventlake.storage import LocalStorage, Storage
from tests.support.lakes.staged import Staged

OCTOBER_1 = 1_790_812_800_000_000
WEEK = 7 * 86_400_000_000
Row = tuple[Any, ...]


def blob(*rows: Row) -> Blob:
    """Ids with received time, file, line, table and hash of the payload (1 if not given)."""
    filled = [(*row, 1)[:6] for row in rows]
    names, received, files, lines, tables, payloads = zip(*filled, strict=True)
    table = pa.table(
        {
            "id": pa.array([hash_id(name) for name in names], pa.binary(16)),
            "received": pa.array(received, pa.int64()),
            "file": pa.array(files, pa.int32()),
            "line": pa.array(lines, pa.int32()),
            "table": pa.array(tables, pa.string()).dictionary_encode(),
            "payload": pa.array(payloads, pa.uint32()),
        }
    )
    return Blob(BlobKind.IDS, "0", 0, len(table), to_ipc(table))


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path))


def test_duplicates_cross_tables_blobs_and_the_index(storage: Storage) -> None:
    known = pa.table(
        {"id": [hash_id("m3")], "received": [OCTOBER_1 - WEEK], "payload": [1]}, schema=SCHEMA
    )
    index = tuple(write_index(storage, "S1", "R0-0", known))
    job = DedupJob(storage, "S1", "R1-0", groups=1, window_us=WEEK, index=index)
    found = dedup(
        job,
        0,
        [
            blob(("m1", OCTOBER_1 + 1, 0, 1, "page"), ("m3", OCTOBER_1, 0, 2, "page")),
            blob(("m1", OCTOBER_1, 1, 1, "identify"), ("m2", OCTOBER_1, 1, 2, "page")),
        ],
    )
    losers = np.frombuffer(found.positions, np.uint64)
    assert sorted(losers.tolist()) == sorted(positions(np.array([0, 0]), np.array([1, 2])).tolist())
    assert found.tables == {
        "page": TableIds(kept=1, duplicates=2, checksum=_sum("m2")),
        "identify": TableIds(kept=1, duplicates=0, checksum=_sum("m1")),
    }
    ids, received, _ = read_index(storage, found.index)
    assert len(ids) == 2
    assert received.tolist() == [OCTOBER_1, OCTOBER_1]
    assert [file.day for file in found.index] == ["2026-10-01"]


def _sum(*names: str) -> int:
    return checksum(pa.array([hash_id(name) for name in names], pa.binary(16)))


@pytest.mark.parametrize(
    ("kept", "payload", "other"), [(7, 7, 0), (7, 8, 1), (UNKNOWN, 8, 0)], ids=str
)
def test_duplicates_with_another_payload_are_counted_apart(
    storage: Storage, kept: int, payload: int, other: int
) -> None:
    """Against what the lake has, and within the run alike; what is unknown is not held against."""
    known = pa.table(
        {"id": [hash_id("m1")], "received": [OCTOBER_1], "payload": [kept]}, schema=SCHEMA
    )
    index = tuple(write_index(storage, "S1", "R0-0", known))
    job = DedupJob(storage, "S1", "R1-0", groups=1, window_us=WEEK, index=index)
    found = dedup(job, 0, [blob(("m1", OCTOBER_1, 0, 1, "page", payload))])
    assert (found.tables["page"].duplicates, found.tables["page"].other_payload) == (1, other)
    assert len(np.frombuffer(found.other_payload, np.uint64)) == other

    alone = DedupJob(storage, "S1", "R2-0", groups=1, window_us=WEEK, index=())
    both = blob(("m1", OCTOBER_1, 0, 1, "page", kept), ("m1", OCTOBER_1, 0, 2, "page", payload))
    assert dedup(alone, 0, [both]).tables["page"].other_payload == other


def test_where_all_are_duplicates_nothing_is_indexed(storage: Storage) -> None:
    known = pa.table(
        {"id": [hash_id("m1")], "received": [OCTOBER_1], "payload": [1]}, schema=SCHEMA
    )
    index = tuple(write_index(storage, "S1", "R0-0", known))
    job = DedupJob(storage, "S1", "R1-0", groups=1, window_us=WEEK, index=index)
    found = dedup(job, 0, [blob(("m1", OCTOBER_1, 0, 1, "page"))])
    assert found.index == []
    assert found.tables == {"page": TableIds(kept=0, duplicates=1, checksum=0)}


@pytest.mark.parametrize("groups", [1, 2, 4, 8, 16])
def test_every_bucket_belongs_to_one_group(groups: int) -> None:
    job = DedupJob(LocalStorage("."), "S1", "R1-0", groups=groups, window_us=WEEK, index=())
    for bucket in range(16):
        first, end = job.buckets(job.group_of(str(bucket)))
        assert first <= bucket < end


EVENT = {
    "messageId": "m1",
    "type": "track",
    "event": "Order",
    "receivedAt": "2026-10-01T07:00:00Z",
    "sentAt": "2026-10-01T06:59:59Z",
    "timestamp": "2026-10-01T06:59:58Z",
    "properties": {"total": 1},
}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"receivedAt": "2026-10-02T07:00:00Z"}, True),
        ({"sentAt": "2026-10-02T07:00:00Z", "timestamp": "2026-10-02T07:00:00Z"}, True),
        ({"properties": {"total": 2}}, False),
        ({"event": "Order Refunded"}, False),
        ({"userId": "u1"}, False),
    ],
)
def test_only_what_the_transport_stamps_may_differ(
    tmp_path: Path, change: dict[str, object], same: bool
) -> None:
    staged = Staged(tmp_path, [EVENT, EVENT | change])
    ids = pa.concat_tables(from_ipc(blob.data) for blob in staged.of(BlobKind.IDS))
    one, other = ids["payload"].to_pylist()
    assert UNKNOWN not in (one, other)
    assert (one == other) is same

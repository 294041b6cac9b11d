"""What each task of a loading pass is told."""

from zlib import crc32

import numpy as np

from eventlake.load.blobs import (
    LARGEST,
    SMALLEST,
    Blob,
    BlobKind,
    Shares,
    deal_out,
    file_number,
    joint_key,
    rows_key,
)
from eventlake.load.write import LoadJob
from eventlake.rules.names import Naming
from eventlake.rules.types import TableSchema
from eventlake.storage import LocalStorage


def test_a_task_gets_only_its_own_tables() -> None:
    tables = ("page", "page_view", "order")
    keys = [rows_key(table, f"hr={hour}") for table in tables for hour in range(2)]
    job = LoadJob(
        storage=LocalStorage("lake"),
        schemas={table: TableSchema(table, "shop", table, table, ()) for table in tables},
        targets={key: f"to {key}" for key in keys},
        locations={key: f"in {key}" for key in keys},
        duplicates=np.array([7]),
        raw_files=("a", "b"),
        naming=Naming.NATIVE,
        log_folder="log",
        operation="sync",
        shadows={keys[0]: "shadow"},
    )
    shared, told = job.dealt_out([{"page", "order"}, {"page_view", "order"}])
    assert (shared.schemas, shared.targets, shared.locations, shared.shadows) == ({}, {}, {}, {})
    one, two = map(shared.for_task, told)
    assert [list(dealt.schemas) for dealt in (one, two)] == [
        ["page", "order"],
        ["page_view", "order"],
    ]
    for dealt, own in ((one, keys[:2] + keys[4:]), (two, keys[2:])):
        assert dealt.targets == {key: f"to {key}" for key in own}
        assert dealt.locations == {key: f"in {key}" for key in own}
        assert (dealt.raw_files, dealt.duplicates.tolist()) == (("a", "b"), [7])
    assert (one.shadows, two.shadows) == ({keys[0]: "shadow"}, {})


MB = 1 << 20
HOURS = [f"day=2026-10-01/hr={hour:02}" for hour in range(24)]


def blob(table: str, hour: str, task: int = 0) -> Blob:
    return Blob(BlobKind.ROWS, rows_key(table, hour), task, 1, b"")


def test_all_partitions_of_a_small_table_are_one_share() -> None:
    staged = {rows_key(table, hour): 1000 for table in ("a", "b") for hour in HOURS}
    shares = deal_out(staged, {}, slots=2)
    assert {shares.of(blob("a", hour)) for hour in HOURS} == {"0\na\n0"}
    assert {shares.of(blob("b", hour)) for hour in HOURS} == {"0\nb\n0"}


def test_a_large_table_is_split_by_partition_whatever_task_read_it() -> None:
    staged = {rows_key("large", hour): 40 * MB for hour in HOURS} | {rows_key("a", HOURS[0]): 1}
    shares = deal_out(staged, {}, slots=2)
    assert shares.groups == {"large": 24 * 40 * MB // LARGEST}
    of_hours = [shares.of(blob("large", hour)) for hour in HOURS]
    assert of_hours == [shares.of(blob("large", hour, task=7)) for hour in HOURS]
    assert len(set(of_hours)) > 4


def test_with_many_slots_shares_are_smaller_but_not_tiny() -> None:
    staged = {rows_key("t", hour): MB for hour in HOURS}
    assert deal_out(staged, {}, slots=2).groups == {"t": 6}
    assert deal_out(staged, {}, slots=1000).groups == {"t": 24 * MB // SMALLEST}


def test_a_partition_of_several_files_is_dealt_out_by_task_of_origin() -> None:
    key = rows_key("huge", HOURS[0])
    shares = deal_out({key: 900 * MB, rows_key("huge", HOURS[1]): MB}, {key: 2}, slots=2)
    assert [shares.of(blob("huge", HOURS[0], task)) for task in range(3)] == [
        f"0\n{key}",
        f"1\n{key}",
        f"0\n{key}",
    ]
    assert file_number(shares.of(blob("huge", HOURS[0], 1))) == 1
    assert shares.groups == {}
    assert shares.of(blob("huge", HOURS[1])) == "0\nhuge\n0"


def test_shares_are_the_same_everywhere() -> None:
    """Python's own hash differs from process to process, and Spark has another."""
    shares = Shares(groups={"t": 5})
    key = rows_key("t", HOURS[3])
    assert shares.of(blob("t", HOURS[3])) == f"0\nt\n{crc32(key.encode()) % 5}"


def joint(table: str) -> Blob:
    return Blob(BlobKind.ROWS, joint_key(table, dict.fromkeys(HOURS[:2], 1)), 0, 2, b"")


def test_a_blob_of_several_partitions_is_divided_only_where_these_are_dealt_out() -> None:
    huge = rows_key("huge", HOURS[0])
    staged = {rows_key("large", hour): 40 * MB for hour in HOURS}
    staged |= {huge: 900 * MB, rows_key("huge", HOURS[1]): MB, rows_key("small", HOURS[0]): 1}
    shares = deal_out(staged, {huge: 2}, slots=2)
    assert [shares.divides(joint(table)) for table in ("large", "huge", "small")] == [
        *(True, True),
        False,
    ]
    assert shares.of(joint("small")) == shares.of(blob("small", HOURS[0]))
    assert not shares.divides(blob("large", HOURS[0]))

"""Staging raw files into blobs, and splitting, grouping and gathering the blobs."""

from itertools import chain
from pathlib import Path

import pytest

from eventlake.columnar import raw_lines
from eventlake.columnar.id_hashes import bucket_numbers, hash_id
from eventlake.load import stage as staging
from eventlake.load.blobs import (
    BlobKind,
    divided,
    from_ipc,
    parts_of,
    rows_key,
    split_key,
    table_of,
)
from eventlake.load.seen import Seen
from eventlake.load.stage import stage
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.staged import PAYLOAD
from eventlake.rules.events import Reason
from eventlake.rules.names import Naming
from eventlake.rules.partitions import DatePartition
from eventlake.settings.models import Limits
from eventlake.storage import LocalStorage
from tests.support.lakes.archive import Archive, Line, as_line, identify, page, track
from tests.support.lakes.runs import utc
from tests.support.lakes.staged import Staged, rows_of

HOUR_7 = "day=2026-10-01/hr=07"
HOUR_8 = "day=2026-10-01/hr=08"
STANDARD = 16


def places(staged: Staged) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """File and line of the staged rows, by table and partition."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for blob in chain.from_iterable(map(divided, staged.of(BlobKind.ROWS))):
        rows = rows_of(blob)
        assert len(rows) == blob.rows
        found.setdefault(split_key(blob.key), []).extend((row.file, row.line) for row in rows)
    return {key: sorted(rows) for key, rows in found.items()}


def test_rows_come_out_by_table_and_partition_with_their_places(tmp_path: Path) -> None:
    staged = Staged(
        tmp_path,
        [
            track("Order", "m1", "2026-10-01T08:00", price=1),
            identify("m2", "2026-10-01T07:59:59.999999"),
            track("Order", "m3", "2026-10-01T07:00", price=2),
        ],
        [track("order", "m4", "2026-10-01T10:00+02:00", size="L")],
    )
    assert places(staged) == {
        ("track_order", HOUR_7): [(0, 3)],
        ("track_order", HOUR_8): [(0, 1), (1, 1)],
        ("identify", HOUR_7): [(0, 2)],
    }
    [orders] = [t for t in staged.seen.tables if t.table == "track_order"]
    assert (orders.original, orders.first) == ("Order", (0, 1, 0))
    assert orders.rows == {HOUR_7: 1, HOUR_8: 2}
    assert staged.columns("track_order") == [
        ("type", "/type"),
        ("message_id", "/messageId"),
        ("received_at", "/receivedAt"),
        ("event", "/event"),
        ("properties_price", "/properties/price"),
        ("properties_size", "/properties/size"),
    ]
    assert [c.first[:2] for c in orders.columns][-2:] == [(0, 1), (1, 1)]


def test_every_id_is_returned_once_in_its_bucket(tmp_path: Path) -> None:
    names = [f"m{n}" for n in range(40)]
    staged = Staged(tmp_path, [track("Order", name, "2026-10-01T07:00") for name in names])
    found: dict[bytes, int] = {}
    for blob in staged.of(BlobKind.IDS):
        ids = from_ipc(blob.data)
        assert set(bucket_numbers(ids["id"].combine_chunks())) == {int(blob.key)}
        assert ids["table"].to_pylist() == ["track_order"] * blob.rows
        found |= dict(zip(ids["id"].to_pylist(), ids["line"].to_pylist(), strict=True))
    assert found == {hash_id(name): line for line, name in enumerate(names, 1)}


GOOD = track("Order", "m1", "2026-10-01T07:00")


@pytest.mark.parametrize(
    ("line", "reason", "table"),
    [
        ("{", Reason.NOT_JSON, ""),
        (b'{"a":"\xff"}', Reason.BAD_UTF8, ""),
        ('{"a":"\\ud800"}', Reason.LONE_SURROGATE, ""),
        ("[1]", Reason.NOT_AN_OBJECT, ""),
        ('{"a":"' + "x" * 500 + '"}', Reason.TOO_LONG, ""),
        ('{"a":{"b":{"c":{"d":{"e":1}}}}}', Reason.TOO_DEEP, ""),
        (GOOD | {"type": "delete"}, Reason.UNKNOWN_TYPE, ""),
        (GOOD | {"event": " "}, Reason.NO_EVENT_NAME, ""),
        (GOOD | {"receivedAt": "yesterday"}, Reason.NO_RECEIVED_AT, ""),
        (GOOD | {"messageId": ""}, Reason.NO_MESSAGE_ID, "track_order"),
        (
            track("Order", "m2", "2026-10-01T07:00", a=1, b=2, c=3),
            Reason.TOO_MANY_COLUMNS,
            "track_order",
        ),
        (track("Other", "m2", "2026-10-01T07:00"), Reason.TOO_MANY_TABLES, "track_other"),
    ],
)
def test_each_reason_rejects_only_its_own_line(
    tmp_path: Path, line: Line, reason: Reason, table: str
) -> None:
    limits = Limits(line_bytes=300, depth=4, columns=STANDARD + 2, tables=1)
    after = track("Order", "m3", "2026-10-01T07:00", a=1, b=2)
    staged = Staged(tmp_path, [GOOD, line, after], limits=limits)
    assert places(staged) == {("track_order", HOUR_7): [(0, 1), (0, 3)]}
    assert staged.seen.rejected == {table: {reason: 1}}
    [sample] = staged.seen.samples
    assert (sample.file, sample.line, sample.reason) == (0, 2, reason)
    assert sample.detail.startswith(reason.sentence)
    assert staged.seen.rows_in == 3


def test_blank_lines_are_no_rows_but_count_as_lines(tmp_path: Path) -> None:
    staged = Staged(tmp_path, [b"", GOOD, b" \r", GOOD | {"messageId": "m2"}])
    [file] = staged.seen.files
    assert (file.lines, file.rows, file.hours) == (4, 2, {"2026-10-01T07"})


def test_every_row_is_in_one_count(tmp_path: Path) -> None:
    staged = Staged(
        tmp_path,
        [GOOD, "x", page("m2", "2026-10-01T07:00"), identify(None, "2026-10-01T07:00"), b""],
        [GOOD, "y"],
        skip=frozenset({"page"}),
    )
    seen = staged.seen
    assert seen.staged_rows() == {"track_order": 2}
    assert seen.rejected == {"": {Reason.NOT_JSON: 2}, "identify": {Reason.NO_MESSAGE_ID: 1}}
    assert (seen.skipped, seen.suppressed) == (1, {})
    assert seen.rows_in == 6 == 2 + 2 + 1 + 1
    assert [(file.lines, file.rows) for file in seen.files] == [(5, 4), (2, 2)]


def test_a_cut_file_gives_its_lines_and_one_rejected_row(tmp_path: Path) -> None:
    day = Archive(tmp_path).day("2026-10-01")
    lines = [track("Order", f"m{n}", "2026-10-01T07:00") for n in range(300)]
    path = str(day.file("cut", *lines, keep=0.5).relative_to(tmp_path))
    job = StageJob(LocalStorage(str(tmp_path)), Naming.NATIVE, DatePartition.DAY, Limits(), {})
    *_, last = stage(job, 0, [RawFile(0, path, 0, "")])
    seen = Seen.decode(last.data)
    [file] = seen.files
    assert file.broken == "the file is cut off before its end"
    assert 0 < file.lines < 300
    assert seen.staged_rows() == {"track_order": file.lines}
    assert seen.rejected == {"": {Reason.CUT_OFF: 1}}
    assert file.rows == file.lines + 1
    assert (seen.samples[0].line, seen.samples[0].reason) == (file.lines + 1, Reason.CUT_OFF)


def test_lines_that_are_loaded_already_are_passed_over_and_their_hours_kept(tmp_path: Path) -> None:
    day = Archive(tmp_path).day("2026-10-01")
    lines = [track("Order", f"m{n}", f"2026-10-01T0{n}:00") for n in range(1, 5)]
    path = str(day.file("whole", *lines).relative_to(tmp_path))
    job = StageJob(LocalStorage(str(tmp_path)), Naming.NATIVE, DatePartition.DAY, Limits(), {})
    raw = RawFile(0, path, 0, "", skip_lines=3, skip_hours=("2026-10-01T01", "2026-10-01T03"))
    *_, last = stage(job, 0, [raw])
    [file] = Seen.decode(last.data).files
    assert (file.lines, file.rows) == (4, 1)
    assert file.hours == {"2026-10-01T01", "2026-10-01T03", "2026-10-01T04"}


def test_a_limit_of_columns_counts_what_the_table_has(tmp_path: Path) -> None:
    known = {"track_order": frozenset(map(str, range(18))), "track_full": frozenset("abc")}
    lines = [track("Order", "m1", "2026-10-01T07:00", a=1), track("Full", "m2", "2026-10-01T07:00")]
    staged = Staged(tmp_path, lines, columns=known, limits=Limits(columns=22, tables=2))
    assert staged.seen.rejected == {"track_order": {Reason.TOO_MANY_COLUMNS: 1}}
    assert staged.seen.staged_rows() == {"track_full": 1}


def test_what_is_far_from_now_is_counted_and_staged(tmp_path: Path) -> None:
    lines = [
        track("Order", f"m{n}", at)
        for n, at in enumerate(["0001-01-01", "2026-10-01T07:00", "9999-12-31T23:59"])
    ]
    start, ahead = (int(utc(day).timestamp()) * 1_000_000 for day in ("2026-10-01", "2026-10-02"))
    staged = Staged(tmp_path, lines, start_us=start, ahead_us=ahead)
    assert (staged.seen.before_start, staged.seen.ahead) == (1, 1)
    assert staged.seen.days() == ["0001-01-01", "2026-10-01", "9999-12-31"]
    assert staged.seen.staged_rows() == {"track_order": 3}


def test_a_replay_sees_only_the_rows_of_its_range_and_tables(tmp_path: Path) -> None:
    window = tuple(int(utc(f"2026-10-01T0{h}:00").timestamp()) * 1_000_000 for h in (7, 8))
    lines: list[Line] = [
        track("Order", "m1", "2026-10-01T06:59:59.999999"),
        track("Order", "m2", "2026-10-01T07:00"),
        track("Order", None, "2026-10-01T07:30"),
        track("Order", "m3", "2026-10-01T08:00"),
        track("Other", "m4", "2026-10-01T07:00"),
        track("Other", None, "2026-10-01T07:00"),
        "no JSON",
    ]
    tables = frozenset({"track_order"})
    staged = Staged(tmp_path, lines, window=window, tables=tables)
    assert places(staged) == {("track_order", HOUR_7): [(0, 2)]}
    assert staged.seen.rejected == {"track_order": {Reason.NO_MESSAGE_ID: 1}}
    assert staged.seen.rows_in == 2


def test_a_task_lets_go_of_its_rows_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [track("Order", f"m{n}", "2026-10-01T07:00", **{f"p{n}": n}) for n in range(5)]
    whole = Staged(tmp_path / "whole", lines)
    monkeypatch.setattr(staging, "FLUSH_BYTES", 1)
    monkeypatch.setattr(raw_lines, "PIECE", len(as_line(lines[0])) + 1)
    pieces = Staged(tmp_path / "pieces", lines)
    assert len(whole.of(BlobKind.ROWS)) == 1
    assert len(pieces.of(BlobKind.ROWS)) == 5
    assert places(pieces) == places(whole)
    assert [t.first for t in pieces.seen.tables] == [(0, line, 0) for line in range(1, 6)]
    assert pieces.seen.staged_rows() == whole.seen.staged_rows() == {"track_order": 5}


def test_rows_without_id_are_named_by_the_hash_of_their_line(tmp_path: Path) -> None:
    line = track("Order", None, "2026-10-01T07:00")
    staged = Staged(tmp_path, [line, line, line | {"x": 1}], hash_missing_ids=True)
    rows = staged.rows()
    texts = [row.values["/messageId"] for row in rows]
    assert texts[0] == texts[1] != texts[2]
    assert all(len(text) == 64 for text in texts)
    assert [row.id for row in rows] == list(map(hash_id, texts))
    assert [row.received for row in rows] == [1_790_838_000_000_000] * 3


def test_a_blob_of_one_partition_stays_as_it_is(tmp_path: Path) -> None:
    [one] = Staged(tmp_path, [GOOD]).of(BlobKind.ROWS)
    assert (table_of(one), parts_of(one)) == ("track_order", {one.key: 1})
    assert divided(one) == [one]


def test_a_blob_of_several_lists_its_parts_and_can_be_divided(tmp_path: Path) -> None:
    lines = [
        track("Order", f"m{n}", f"2026-10-01T0{7 + n % 2}:00", note="x" * (250 + n), n=n)
        for n in range(9)
    ]
    [joint] = Staged(tmp_path, lines).of(BlobKind.ROWS)
    seven, eight = (rows_key("track_order", hour) for hour in (HOUR_7, HOUR_8))
    assert (table_of(joint), parts_of(joint)) == ("track_order", {seven: 5, eight: 4})
    parts = divided(joint)
    assert [(part.key, part.task, part.rows) for part in parts] == [(seven, 0, 5), (eight, 0, 4)]
    assert [row for part in parts for row in rows_of(part)] == rows_of(joint)
    assert [row.values["/properties/n"] for row in rows_of(parts[0])] == [0, 2, 4, 6, 8]


def test_partitions_share_a_blob_only_where_it_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [track("Order", f"m{n}", f"2026-10-01T0{7 + n}:00") for n in range(2)]
    assert len(Staged(tmp_path / "a", lines).of(BlobKind.ROWS)) == 1
    monkeypatch.setattr(staging, "TOGETHER", 0)
    apart = [rows_key("track_order", hour) for hour in (HOUR_7, HOUR_8)]
    assert [b.key for b in Staged(tmp_path / "b", lines).of(BlobKind.ROWS)] == apart


def test_payloads_are_kept_beside_the_rows_however_they_were_read(tmp_path: Path) -> None:
    lines: list[Line] = [GOOD, as_line(GOOD).replace(b"track", b"TRACK"), GOOD | {"é": "x" * 300}]
    rows = Staged(tmp_path, lines, keep_payloads=True).rows()
    assert [row.values[PAYLOAD[0]].encode() for row in rows] == [as_line(line) for line in lines]
    assert [row.columns[PAYLOAD[0]] for row in rows] == [PAYLOAD[1]] * 3

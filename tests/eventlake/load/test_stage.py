"""Staging raw files into blobs, and splitting, grouping and gathering the blobs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.columnar import compiled, raw_lines
from eventlake.columnar.id_hashes import bucket_numbers, hash_id
from eventlake.columnar.kinds import ARROW_TYPES, Encoding
from eventlake.load import gather
from eventlake.load import stage as staging
from eventlake.load.blobs import (
    FILE,
    LINE,
    ORIGINS,
    RECEIVED,
    Blob,
    BlobKind,
    RareName,
    StagedField,
    StagedHead,
    divided,
    from_ipc,
    joint_key,
    packed_message,
    parts_of,
    rows_key,
    rows_of,
    split_key,
    table_of,
)
from eventlake.load.gather import gathered_by_kernel
from eventlake.load.seen import Seen
from eventlake.load.stage import stage
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.staged_part import StagedPart, gathered, gathered_by_arrow
from eventlake.rules.events import Reason
from eventlake.rules.names import Naming
from eventlake.rules.partitions import DatePartition
from eventlake.settings.models import Limits
from eventlake.storage import LocalStorage
from tests.support.lakes.archive import Archive, Line, as_line, identify, page, track
from tests.support.lakes.runs import utc

HOUR_7 = "day=2026-10-01/hr=07"
HOUR_8 = "day=2026-10-01/hr=08"
STANDARD = 16


class Staged:
    """The blobs of one task over files made of lines."""

    def __init__(self, root: Path, *files: Sequence[Line], **job: Any) -> None:
        day = Archive(root).day("2026-10-01")
        raw = []
        for number, lines in enumerate(files):
            path = day.raw(f"{number}.json", b"".join(as_line(line) + b"\n" for line in lines))
            raw.append(RawFile(number, str(path.relative_to(root)), 0, ""))
        settings: dict[str, Any] = {
            "storage": LocalStorage(str(root)),
            "naming": Naming.NATIVE,
            "date_partition": DatePartition.DAY_HOUR,
            "limits": Limits(),
            "columns": {},
        }
        self.blobs = list(stage(StageJob(**settings | job), 0, raw))
        self.seen = Seen.decode(self.blobs[-1].data)

    def of(self, kind: BlobKind) -> list[Blob]:
        return [blob for blob in self.blobs if blob.kind == kind]

    def rows(self) -> dict[tuple[str, str], list[tuple[int, int]]]:
        """File and line of the staged rows, by table and partition."""
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for blob in self.of(BlobKind.ROWS):
            _, table = rows_of(blob)
            assert len(table) == blob.rows
            places = zip(table[FILE].to_pylist(), table[LINE].to_pylist(), strict=True)
            found.setdefault(split_key(blob.key), []).extend(places)
        return found

    def columns(self, table: str) -> list[tuple[str, str]]:
        [seen] = [seen for seen in self.seen.tables if seen.table == table]
        return [(column.column, column.pointer) for column in seen.columns]


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
    assert staged.rows() == {
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


def test_every_id_comes_out_once_in_its_bucket(tmp_path: Path) -> None:
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
def test_each_reason_rejects_its_own_line_and_no_other(
    tmp_path: Path, line: Line, reason: Reason, table: str
) -> None:
    limits = Limits(line_bytes=300, depth=4, columns=STANDARD + 2, tables=1)
    after = track("Order", "m3", "2026-10-01T07:00", a=1, b=2)
    staged = Staged(tmp_path, [GOOD, line, after], limits=limits)
    assert staged.rows() == {("track_order", HOUR_7): [(0, 1), (0, 3)]}
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
    assert (staged.seen.early, staged.seen.ahead) == (1, 1)
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
    assert staged.rows() == {("track_order", HOUR_7): [(0, 2)]}
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
    assert pieces.rows() == whole.rows()
    assert [t.first for t in pieces.seen.tables] == [(0, line, 0) for line in range(1, 6)]
    assert pieces.seen.staged_rows() == whole.seen.staged_rows() == {"track_order": 5}


def test_rows_without_id_are_named_by_the_hash_of_their_line(tmp_path: Path) -> None:
    line = track("Order", None, "2026-10-01T07:00")
    staged = Staged(tmp_path, [line, line, line | {"x": 1}], hash_missing_ids=True)
    [blob] = staged.of(BlobKind.ROWS)
    _, rows = rows_of(blob)
    texts = rows["/messageId"].to_pylist()
    assert texts[0] == texts[1] != texts[2]
    assert all(len(text) == 64 for text in texts)
    assert rows[RECEIVED].to_pylist() == [1_790_838_000_000_000] * 3


SEVEN, EIGHT = "day=2026-10-01/hr=07", "day=2026-10-01/hr=08"


def blob(key: str, *numbers: int) -> Blob:
    head = StagedHead(False, False, [StagedField("/number", "number", Encoding.INT)], {})
    rows = pa.RecordBatch.from_pylist([{"/number": number} for number in numbers], head.schema())
    data = packed_message(head.encode(), rows.serialize())
    return Blob(BlobKind.ROWS, key, 3, len(numbers), data)


def test_a_blob_of_one_partition_stays_as_it_is() -> None:
    one = blob(rows_key("page", SEVEN), 1, 2)
    assert (table_of(one), parts_of(one)) == ("page", {one.key: 2})
    assert divided(one) == [one]


def test_a_blob_of_several_says_what_it_has_of_each_and_can_be_divided() -> None:
    joint = blob(joint_key("page", {SEVEN: 2, EIGHT: 1}), 1, 2, 3)
    seven, eight = rows_key("page", SEVEN), rows_key("page", EIGHT)
    assert (table_of(joint), parts_of(joint)) == ("page", {seven: 2, eight: 1})
    parts = divided(joint)
    assert [(part.key, part.task, part.rows) for part in parts] == [(seven, 3, 2), (eight, 3, 1)]
    assert [rows_of(part)[1]["/number"].to_pylist() for part in parts] == [[1, 2], [3]]


def test_what_is_said_of_columns_comes_with_the_rows() -> None:
    rare = {Encoding.INT: [RareName(7, "/n", "n")]}
    head = StagedHead(True, True, [StagedField("/a", "a", Encoding.MILLIS)], rare)
    assert head.schema().names == [*ORIGINS.names, "#payload", "#rescued", "/a", "#rare-int"]
    assert head.schema().field("/a").type == pa.timestamp("us", tz="UTC")
    batch = pa.RecordBatch.from_pylist([{"#line": 3, "#rescued": ["x"]}], head.schema())
    data = packed_message(head.encode(), batch.serialize())
    assert rows_of(Blob(BlobKind.ROWS, "page\nhr=07", 0, 1, data)) == (head, batch)


FIELDS = {
    "/text": (Encoding.TEXT, st.text(max_size=40)),
    "/number": (Encoding.INT, st.integers(-(2**63), 2**63 - 1)),
    "/truth": (Encoding.BOOL, st.booleans()),
    "/when": (Encoding.MILLIS, st.integers(0, 2**40)),
}
COLUMNS = {name: encoding for name, (encoding, _) in FIELDS.items()}


def part(rows: pa.RecordBatch) -> StagedPart:
    """Rows as they are staged; it does not matter where they are from."""
    names = rows.schema.names
    head = StagedHead(False, False, [StagedField(n, n[1:], COLUMNS[n]) for n in names], {})
    origins = [pa.nulls(len(rows), type).fill_null(NOTHING[type]) for type in ORIGINS.types]
    whole = pa.RecordBatch.from_arrays([*origins, *rows.columns], [*ORIGINS.names, *names])
    data = packed_message(head.encode(), whole.serialize())
    return StagedPart(Blob(BlobKind.ROWS, rows_key("page", "hr=07"), 0, len(rows), data))


NOTHING = {type: bytes(16) if type == pa.binary(16) else 0 for type in ORIGINS.types}


def batch(columns: dict[str, list[Any]]) -> pa.RecordBatch:
    arrays = [pa.array(values, ARROW_TYPES[COLUMNS[name]]) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, list(columns))


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Rows with some of the fields, in any order; they may be some of a longer batch."""
    names = draw(st.permutations(list(FIELDS)))[draw(st.integers(0, 3)) :]
    length = draw(st.integers(1, 150))
    random, often = draw(st.randoms(use_true_random=False)), draw(st.sampled_from([1, 0.5, 0.02]))
    columns: dict[str, list[Any]] = {}
    for name in names:
        some = draw(st.lists(FIELDS[name][1], min_size=1, max_size=5))
        present = (random.random() < often for _ in range(length))
        columns[name] = [random.choice(some) if is_there else None for is_there in present]
    rows = batch(columns)
    start = draw(st.integers(0, length - 1))
    return rows.slice(start, draw(st.integers(1, length - start)))


@pytest.mark.parametrize("gather", [gathered_by_kernel, gathered_by_arrow])
@given(st.data(), st.lists(batches(), min_size=1, max_size=4))
def test_rows_are_those_that_are_asked_for(
    gather: Callable[..., dict[str, pa.Array]], data: st.DataObject, parts: list[pa.RecordBatch]
) -> None:
    every = pa.concat_tables(map(pa.Table.from_batches, zip(parts)), promote_options="default")
    order = np.arange(len(every))
    if data.draw(st.booleans()):
        order = np.array(data.draw(st.permutations(order.tolist())))
    order = order[: data.draw(st.integers(0, len(order)))]
    wanted = every.take(pa.array(order)).to_pydict()
    found = gather([part(rows) for rows in parts], COLUMNS, order)
    for name, encoding in COLUMNS.items():
        values = wanted.get(name, [])
        if all(value is None for value in values):
            assert name not in found
        else:
            found[name].validate(full=True)
            assert found[name].type == ARROW_TYPES[encoding]
            assert found[name].to_pylist() == values
            assert found[name].null_count == values.count(None)


def test_more_text_than_offsets_can_tell_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "_MOST", 10)
    rows = part(batch({"/text": ["a" * 11], "/number": [1]}))
    with pytest.raises(OverflowError, match="/text has more than 2 GB of text"):
        gathered([rows], COLUMNS, np.array([0]))


@pytest.mark.parametrize("gather", [gathered_by_kernel, gathered_by_arrow])
def test_where_all_fields_are_rare_there_are_no_columns(
    gather: Callable[..., dict[str, pa.Array]],
) -> None:
    assert gather([part(batch({"/text": ["a"]}))], {}, np.array([0])) == {}


def test_code_that_cannot_be_kept_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "cache_folder", lambda: None)
    monkeypatch.setattr(gather, "gathered_by_kernel", None)
    rows = part(batch({"/text": ["a", "b"]}))
    assert gathered([rows], COLUMNS, np.array([1]))["/text"].to_pylist() == ["b"]

"""The kernel is only a faster way: what it makes of lines is what careful reading makes of them."""

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from eventlake.columnar.fields import NONE
from eventlake.columnar.line_blocks import LineBlock
from eventlake.columnar.memory import address
from eventlake.columnar.text import PADDING
from eventlake.columnar.timestamps import UNREAD, moment
from eventlake.load.blobs import Blob, BlobKind, from_ipc, rows_of
from eventlake.load.careful_reader import payload_hash
from eventlake.load.columns import Block
from eventlake.load.fast_reader import PlainEvents
from eventlake.load.seen import Seen
from eventlake.load.stage import stage
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.rules.dates import parse_timestamp
from eventlake.rules.events import Reject
from eventlake.rules.names import Naming
from eventlake.rules.parse import parse_line
from eventlake.rules.partitions import DatePartition
from eventlake.settings.models import Limits
from eventlake.storage import LocalStorage
from tests.support.lakes.random_archives import all_are_rare, values_of
from tests.support.oracles.leaves import ANY, DATES, TEXTS, spelled

KEYS = st.sampled_from(
    ["a", "b", "B", "c d", "", "注", "day", "properties", "a\\b", 'q"', "long" * 9]
)
OBJECTS = st.recursive(
    st.none() | ANY, lambda inner: st.dictionaries(KEYS, inner, max_size=4), max_leaves=8
)
ENVELOPES: SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["track", "track", "page", "identify", "TRACK", "no such", 7]),
        "messageId": st.sampled_from(["m1", "m2", "", "é", 17, None, "m" * 128, "m" * 129]),
        "receivedAt": st.one_of(
            st.sampled_from(["2026-10-01T07:00:00.123Z", "2026-10-01T08:59:59Z"]), DATES
        ),
    },
    optional={
        "event": st.sampled_from(["Order Done", "order done", "Sign Up", " ", "", 3, None]),
        "userId": st.one_of(TEXTS, st.integers()),
        "timestamp": st.sampled_from(["2026-10-01T07:00:00.000Z", {"a": 1}, None]),
    },
)


@st.composite
def lines(draw: DrawFn) -> bytes:
    """An event on a line, now and then with a byte of it lost, doubled or changed."""
    event = draw(ENVELOPES) | draw(st.dictionaries(KEYS, OBJECTS, max_size=4))
    keys = draw(st.permutations(list(event)))
    line = draw(spelled({key: event[key] for key in keys}, draw(st.booleans()))).encode()
    harm = draw(st.sampled_from(["none"] * 6 + ["lost", "changed", "twice", "cut", "after"]))
    at = draw(st.integers(0, len(line) - 1))
    other = draw(st.sampled_from(b'"\\{}[]:,-0e. \t\x00\x1f\x7f\x80\xc3\xed\xf4n'))
    if harm == "lost":
        return line[:at] + line[at + 1 :]
    if harm == "changed":
        return line[:at] + bytes([other]) + line[at + 1 :]
    if harm == "twice":  # a key that stands twice, or an event in an event
        return line[:-1] + b"," + line[1:]
    if harm == "cut":
        return line[:at]
    return line + bytes([other]) if harm == "after" else line


class NothingPlain(PlainEvents):
    """Leaves every line to the careful reading."""

    def read(self, lines: LineBlock) -> Block:
        block = super().read(lines)
        block.table[:] = NONE
        return block


BY_POINTER = attrgetter("pointer")


def staged(
    root: Path, raw: list[bytes], rows_told: Callable[[Blob], Any] | None = None, **job: Any
) -> tuple[Any, ...]:
    """All that a task tells of some lines, in an order that does not matter to anybody else."""
    (root / "raw").write_bytes(b"\n".join(raw).replace(b"\n\n", b"\n \n"))
    options: dict[str, Any] = {"limits": Limits(depth=4)} | job
    work = StageJob(
        LocalStorage(str(root)), Naming.NATIVE, DatePartition.DAY_HOUR, columns={}, **options
    )
    rows: dict[str, Any] = {}
    rows_told = rows_told or _with_fields
    seen = Seen()
    for blob in stage(work, 0, [RawFile(0, "raw", 0, "")]):
        if blob.kind == BlobKind.SEEN:
            seen = Seen.decode(blob.data)
        else:
            of_ids = blob.kind == BlobKind.IDS
            found = _in_order(from_ipc(blob.data)) if of_ids else rows_told(blob)
            rows[blob.kind + blob.key] = found
    tables = [
        msgspec.structs.replace(table, bytes={}, columns=sorted(table.columns, key=BY_POINTER))
        for table in sorted(seen.tables, key=lambda table: table.table)
    ]
    account = msgspec.to_builtins(msgspec.structs.replace(seen, tables=[]))
    for file in account["files"]:
        file["hours"] = sorted(file["hours"])
    return rows, tables, account


def _with_fields(blob: Blob) -> Any:
    head, rows = rows_of(blob)
    return _in_order(pa.Table.from_batches([rows])), {field.pointer: field for field in head.fields}


def _in_order(table: pa.Table) -> Any:
    names = sorted(table.column_names)
    by = [(name, "ascending") for name in names if name in ("file", "line", "#file", "#line")]
    return table.select(names).sort_by(by).to_pylist()


@settings(max_examples=250)
@given(st.lists(lines(), min_size=1, max_size=6))
@example(
    [
        b'{"type":"page","messageId":"m","receivedAt":"2026-10-01T07:00:00Z","a":-9223372036854775808}'
    ]
)
@example(
    [b'{"type":"page","messageId":"m","receivedAt":"2026-10-01T07:00:00Z","a":[1,{"b":1,"b":2}]}']
)
@example(
    [b'{"type":"page","messageId":"m","receivedAt":"2026-10-01T07:00:00Z","a":["\\ud83d\\ude00"]}']
)
@example([b'{"type":"page","messageId":"m","receivedAt":"2026-10-01T07:00:00Z","a":["\\ud83d"]}'])
@example([b'{"type":"page","messageId":"m","receivedAt":"2026-10-01T07:00:00Z","a":-0,"b":01}'])
def test_plain_lines_are_staged_as_if_they_had_been_read_carefully(
    tmp_path_factory: pytest.TempPathFactory, raw: list[bytes]
) -> None:
    root = tmp_path_factory.mktemp("archive")
    fast = staged(root, raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventlake.load.stage.PlainEvents", NothingPlain)
        careful = staged(root, raw)
    assert fast == careful


@settings(max_examples=150)
@given(st.lists(lines(), min_size=1, max_size=6))
def test_rare_fields_have_the_values_that_careful_reading_finds(
    tmp_path_factory: pytest.TempPathFactory, raw: list[bytes]
) -> None:
    root = tmp_path_factory.mktemp("archive")
    with pytest.MonkeyPatch.context() as patch:
        all_are_rare(patch)
        fast = staged(root, raw, values_of)
        patch.setattr("eventlake.load.stage.PlainEvents", NothingPlain)
        careful = staged(root, raw, values_of)
    assert fast == careful


def read(*raw: bytes, limits: Limits | None = None) -> Block:
    block = LineBlock(1 << 20)
    block.begin(0, 0)
    for line in raw:
        block.add(line + b"\n")
    return PlainEvents(limits or Limits(), Naming.NATIVE).read(block)


HEAD = b'{"type":"page","messageId":"m","receivedAt":"2026-10-01T07:00:00.5Z"'


@pytest.mark.parametrize(
    ("rest", "plain"),
    [
        (b"}", True),
        (b' , "a" : { "b" : [ 1 , "\\u00e9" ] } }', True),
        (b',"a":{}}', True),
        (b',"a":"\xc3\xa9\xf0\x9f\x98\x80"}', True),
        (b',"a":"\\ud83d\\ude00"}', True),
        (b',"a":1.5e3,"b":-0,"c":123456789012345678901234567890}', True),
        (b',"a":1,"a":2}', False),
        (b',"a":{"b":1},"a":{"b":2}}', False),
        (b',"\\u0061":1}', False),
        (b',"a":"\xff"}', False),
        (b',"a":"\xed\xa0\x80"}', False),
        (b',"a":"\\ud83d"}', False),
        (b',"a":"\x01"}', False),
        (b',"a":01}', False),
        (b',"a":1.}', False),
        (b',"a":+1}', False),
        (b',"a":tru}', False),
        (b',"a":[1,]}', False),
        (b',"a":[{"b":1,"b":2}]}', False),
        (b",}", False),
        (b"} x", False),
        (b"", False),
        (b',"a":{"b":{"c":{"d":[[]]}}}}', False),
    ],
)
def test_what_is_plain(rest: bytes, plain: bool) -> None:
    block = read(HEAD + rest, limits=Limits(depth=5))
    assert bool(block.table[0] != NONE) is plain


def test_a_line_over_the_limit_is_not_plain() -> None:
    assert read(HEAD + b"}", limits=Limits(line_bytes=20)).table.tolist() == [NONE]


def test_more_cells_than_were_expected_find_room() -> None:
    wide = HEAD + b"".join(b',"f%d":%d' % (n, n) for n in range(300)) + b"}"
    block = read(*[wide] * 20)
    cells = len(parse_line(wide, Limits()))
    assert np.diff(block.events.first_cell).tolist() == [cells] * 20


@given(st.one_of(DATES, TEXTS))
def test_moments_are_read_as_careful_reading_does(text: str) -> None:
    data = np.frombuffer(text.encode() + bytes(PADDING), np.uint8)
    found = moment(address(data), 0, len(data) - PADDING)
    expected = parse_timestamp(text)
    assert found == UNREAD or (expected is not None and found == expected[0])


@given(lines())
def test_payloads_have_one_hash_however_they_are_read(raw: bytes) -> None:
    block = read(raw.replace(b"\n", b" "))
    if len(block.table) and block.table[0] != NONE:
        try:
            event = parse_line(raw, Limits())
        except Reject:
            pytest.fail("a line that is no event was taken for a plain one")
        assert block.events.payload[0] == payload_hash(event)


def test_usual_moments_are_read_by_the_kernel() -> None:
    texts = ["2026-10-01T07:00:00Z", "2026-10-01T07:00:00.5Z", "2024-02-29 23:59:59.123456Z"]
    for text in texts:
        data = np.frombuffer(text.encode() + bytes(PADDING), np.uint8)
        expected = parse_timestamp(text)
        assert expected is not None
        assert moment(address(data), 0, len(text)) == expected[0]

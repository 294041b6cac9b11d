"""The kernel is only a faster way: what it makes of lines is what careful reading makes of them."""

from collections import Counter
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from eventlake.columnar.fields import MOST_FIELDS, NONE
from eventlake.columnar.line_blocks import LineBlock
from eventlake.load.blobs import BlobKind, from_ipc
from eventlake.load.cells import CellBlock
from eventlake.load.readers import FastReader
from eventlake.load.seen import SeenColumn, SeenTable
from eventlake.load.vocabulary import Vocabulary
from eventlake.rules.inference import kind_of
from eventlake.rules.names import Naming
from eventlake.rules.parse import parse_line
from eventlake.settings.models import Limits
from tests.support.json_values import ANY, COLUMNS, DATES, TEXTS, spelled
from tests.support.lakes.archive import Line
from tests.support.lakes.staged import Staged

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


class NothingPlain(FastReader):
    """Leaves every line to the careful reader."""

    def read(self, lines: LineBlock) -> CellBlock:
        block = super().read(lines)
        block.table[:] = NONE
        return block


def by_table(parts: list[SeenTable]) -> list[list[SeenTable]]:
    names = {part.table for part in parts}
    return [[part for part in parts if part.table == name] for name in names]


def whole(parts: list[SeenTable]) -> SeenTable:
    """A table from the parts of all its blocks: plain and odd lines are in blocks of their own."""
    rows: Counter[str] = Counter()
    columns: dict[str, SeenColumn] = {}
    for part in parts:
        rows.update(part.rows)
        for column in part.columns:
            before = columns.get(column.pointer, column)
            assert before.column == column.column
            columns[column.pointer] = msgspec.structs.replace(
                before,
                first=min(before.first, column.first),
                kinds=before.kinds | column.kinds,
            )
    first = min(parts, key=attrgetter("first"))
    in_order = sorted(columns.values(), key=attrgetter("pointer"))
    return msgspec.structs.replace(first, columns=in_order, rows=dict(rows), bytes={})


def staged(root: Path, raw: list[bytes]) -> tuple[Any, ...]:
    """All that a task tells of some lines, in an order that does not matter to anybody else."""
    lines: list[Line] = [line.replace(b"\n", b" ") for line in raw]
    done = Staged(root, lines, limits=Limits(depth=4))
    ids = [row for blob in done.of(BlobKind.IDS) for row in from_ipc(blob.data).to_pylist()]
    tables = sorted(map(whole, by_table(done.seen.tables)), key=lambda table: table.table)
    account = msgspec.to_builtins(msgspec.structs.replace(done.seen, tables=[]))
    for file in account["files"]:
        file["hours"] = sorted(file["hours"])
    return done.rows(), sorted(ids, key=lambda row: row["line"]), tables, account


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
@example(
    [
        b'{"type":"page","messageId":"m","receivedAt":"2026-10-01T07:00:00Z"}',
        b'{"type":"page","messageId":"m","rece\\u0069vedAt":"2026-10-01T08:59:59Z"}',
    ]
)
def test_plain_lines_are_staged_as_if_they_had_been_read_carefully(
    tmp_path_factory: pytest.TempPathFactory, raw: list[bytes]
) -> None:
    root = tmp_path_factory.mktemp("archive")
    fast = staged(root, raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventlake.load.stage.FastReader", NothingPlain)
        careful = staged(root, raw)
    assert fast == careful


def read(*raw: bytes, limits: Limits | None = None) -> CellBlock:
    block = LineBlock(1 << 20)
    block.begin(0, 0)
    for line in raw:
        block.add(line + b"\n")
    return FastReader(limits or Limits(), Vocabulary(Naming.NATIVE)).read(block)


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


@given(COLUMNS)
def test_kinds_of_values_follow_the_rules(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any]
) -> None:
    root = tmp_path_factory.mktemp("archive")
    head = {"type": "page", "messageId": "m", "receivedAt": "2026-10-01T07:00:00Z"}
    tables = Staged(root, [head | {"x": value} for value in values]).seen.tables
    kinds = [c.kinds for table in tables for c in table.columns if c.pointer == "/x"]
    assert frozenset().union(*kinds) == set(map(kind_of, values))


def test_fields_beyond_the_room_for_them_are_read_carefully(tmp_path: Path) -> None:
    head = {"type": "page", "messageId": "m", "receivedAt": "2026-10-01T07:00:00Z"}
    wide = {f"{n:05}": n for n in range(MOST_FIELDS)} | {f"{n:05}?": n for n in range(9)}
    done = Staged(tmp_path, [head | wide, head], limits=Limits(columns=100_000))
    first, second = done.rows()
    assert first.values == {f"/{key}": value for key, value in (head | wide).items()}
    assert first.lost == [f"/{n:05}?" for n in range(9)]
    assert second.values == {f"/{key}": value for key, value in head.items()}

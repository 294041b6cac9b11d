"""Blobs between tasks: splitting, grouping and gathering."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.columnar import compiled
from eventlake.columnar.kinds import ARROW_TYPES, Encoding
from eventlake.load import gather
from eventlake.load.blobs import (
    ORIGINS,
    Blob,
    BlobKind,
    RareName,
    StagedField,
    StagedHead,
    divided,
    joint_key,
    packed_message,
    parts_of,
    rows_key,
    rows_of,
    table_of,
)
from eventlake.load.gather import gathered_by_kernel
from eventlake.load.staged_part import StagedPart, gathered, gathered_by_arrow

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

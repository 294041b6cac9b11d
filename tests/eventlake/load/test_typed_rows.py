"""Typed rows of a table and their encoding."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.columnar.kinds import Encoding, Kind
from eventlake.columnar.typed import SparseColumn
from eventlake.load.blobs import RareName, StagedField
from eventlake.load.encoding import all_dates, decoded, encode, joined, kinds_of, plain_dates
from eventlake.load.typed_rows import RareNames, RareValues, StagedRows, rare_values, typed_rows
from eventlake.load.write import type_problems
from eventlake.rules.counts import CastCounts
from eventlake.rules.dates import parse_timestamp
from eventlake.rules.inference import infer, kind_of
from eventlake.rules.types import Column, LakeType, TableSchema
from tests.support.oracles.leaves import COLUMNS, DATES, DAYS, column_of, json_of

PRICE = Column("price", LakeType.DECIMAL, "/price")
COUNT = Column("n", LakeType.BIGINT, "/n")
NOTE = Column("note", LakeType.STRING, "/note")


def schema(*columns: Column) -> TableSchema:
    return TableSchema("page", "shop", "page", "Page", columns)


def staged(
    fields: dict[tuple[str, str], list[Any]], rescued: list[Any] | None = None
) -> StagedRows:
    """Values by pointer and column; None where an event has no such field."""
    found = []
    for (at, column), values in fields.items():
        present = [n for n, value in enumerate(values) if value is not None]
        encoding, array = encode([values[n] for n in present])
        rows = [present.index(n) if n in present else None for n in range(len(values))]
        field = StagedField(at, column, encoding)
        found.append((field, array.take(pa.array(rows, pa.int64()))))
    length = len(found[0][1]) if found else len(rescued or [])
    lists = None if rescued is None else pa.array(rescued, pa.list_(pa.string()))
    return StagedRows(length, found, lists)


def test_every_column_of_the_table_is_there_in_order_and_type() -> None:
    rows = staged({("/n", "n"): [1, None], ("/price", "price"): [msgspec.Raw("1.5"), 2]})
    typed = typed_rows(rows, schema(PRICE, NOTE, COUNT))
    assert typed.rows.schema == schema(PRICE, NOTE, COUNT).arrow
    assert typed.rows.table().to_pylist() == [
        {"price": Decimal("1.500000"), "note": None, "n": 1},
        {"price": Decimal("2.000000"), "note": None, "n": None},
    ]
    assert typed.casts == {"price": CastCounts(exact=2), "n": CastCounts(exact=1)}
    assert typed.rescued_cells == 0


def rare(pointer: str, column: str, values: dict[int, Any]) -> RareValues:
    """One rare field with the values of some rows."""
    encoding, array = encode(list(values.values()))
    rows, numbers = np.array(list(values)), np.zeros(len(values), np.int32)
    return RareValues(encoding, [RareName(0, pointer, column)], rows, numbers, array)


def test_rare_fields_stay_without_the_rows_that_do_not_have_them() -> None:
    rows = staged({("/n", "n"): [1, 2, 3, 4]})
    typed = typed_rows(rows, schema(COUNT, NOTE), [rare("/note", "note", {2: "a"})])
    assert isinstance(typed.rows.columns["note"], SparseColumn)
    assert typed.rows.whole("note").to_pylist() == [None, None, "a", None]
    assert typed.casts == {"n": CastCounts(exact=4), "note": CastCounts(exact=1)}


def test_a_rare_value_that_does_not_fit_is_rescued_like_others() -> None:
    rows = staged({("/note", "note"): ["a", "b", "c"]})
    typed = typed_rows(rows, schema(NOTE, COUNT), [rare("/n", "n", {0: "7", 2: "x"})])
    assert typed.rows.whole("n").to_pylist() == [7, None, None]
    assert typed.rows.whole("rescued_data").to_pylist() == [None, None, '{"/n":"x"}']
    assert typed.casts["n"] == CastCounts(exact=1, failed=1)


def test_an_empty_rare_text_is_no_number_and_nothing_is_rescued() -> None:
    rows = staged({("/note", "note"): ["a", "b", "c"]})
    typed = typed_rows(rows, schema(NOTE, COUNT), [rare("/n", "n", {0: "", 2: "7"})])
    assert typed.rows.whole("n").to_pylist() == [None, None, 7]
    assert "rescued_data" not in typed.rows.columns


def test_rows_with_a_rare_field_and_others_fill_a_column_together() -> None:
    rows = staged({("/n", "n"): [1, None, None, None]})
    others = [rare("/n", "n", {1: msgspec.Raw("2.0")}), rare("/N", "n", {3: "4"})]
    typed = typed_rows(rows, schema(COUNT), others)
    assert typed.rows.whole("n").to_pylist() == [1, 2, None, 4]
    assert typed.casts == {"n": CastCounts(exact=3)}


def test_fields_that_share_a_column_fill_it_together() -> None:
    rows = staged({("/n", "n"): [1, None, None], ("/N", "n"): [None, "2", "x"]})
    typed = typed_rows(rows, schema(COUNT))
    assert typed.rows.whole("n").to_pylist() == [1, 2, None]
    assert typed.rows.whole("rescued_data").to_pylist() == [None, None, '{"/N":"x"}']
    assert typed.casts == {"n": CastCounts(exact=2, failed=1)}


def test_what_lost_anything_is_in_one_json_object_a_row() -> None:
    rows = staged(
        {("/n", "n"): ["many", msgspec.Raw("1.50"), 3], ('/a"~1b', "price"): [True, "é\n", None]},
        rescued=[['"/day":1', '"/hr":2'], None, None],
    )
    typed = typed_rows(rows, schema(COUNT, PRICE))
    texts = typed.rows.whole("rescued_data").to_pylist()
    assert texts[2] is None
    assert [msgspec.json.decode(text) for text in texts[:2]] == [
        {"/n": "many", '/a"~1b': True, "/day": 1, "/hr": 2},
        {"/n": 1.5, '/a"~1b': "é\n"},
    ]
    assert '"/n":1.50' in texts[1]
    assert typed.rescued_cells == 6
    assert typed.rows.whole("n").to_pylist() == [None, 1, 3]


def test_rescued_data_is_left_out_where_nothing_is_rescued() -> None:
    rows = staged({("/n", "n"): [1]}, rescued=[None])
    assert typed_rows(rows, schema(COUNT)).rows.schema.names == ["n"]
    had = schema(COUNT, Column("rescued_data", LakeType.STRING, ""))
    assert typed_rows(rows, had).rows.table().to_pylist() == [{"n": 1, "rescued_data": None}]


def test_a_footer_is_held_to_the_schema() -> None:
    table = schema(COUNT, NOTE)
    assert type_problems(table.arrow, table) == ()
    assert type_problems(table.arrow.append(pa.field("rescued_data", pa.string())), table) == ()
    wrong = pa.schema([("n", pa.string()), ("more", pa.int64())])
    assert type_problems(wrong, table) == (
        "n: string in the file, int64 in the table",
        "note: None in the file, string in the table",
        "more: int64 in the file, None in the table",
    )
    older = pa.schema([("n", pa.int64())])
    assert type_problems(older, table, older=True) == ()
    assert len(type_problems(older, table)) == 1


EACH = pa.list_(pa.struct([("field", pa.uint16()), ("value", pa.int64())]))


def part(
    names: dict[int, str], rows: list[dict[int, int] | None]
) -> tuple[pa.RecordBatch, RareNames]:
    """Rows with the values of some fields by number; None: the row comes without a list."""
    lists = [
        None if row is None else [{"field": n, "value": v} for n, v in row.items()] for row in rows
    ]
    told = [RareName(number, f"/{name}", name) for number, name in names.items()]
    batch = pa.RecordBatch.from_arrays([pa.array(lists, EACH)], ["#rare-int"])
    return batch, {Encoding.INT: told}


def test_each_field_has_its_values_in_the_order_asked_for() -> None:
    one = part({5: "a", 9: "b"}, [{5: 1}, {5: 2, 9: 3}, None])
    two = part({5: "b", 0: "c"}, [{5: 4}, {}, {0: 5, 5: 6}])
    [values] = rare_values([one, two])
    taken = values.taken(np.array([5, 3, 1]), rows=6)  # without the first row, which has an "a"
    found = {
        name.column: dict(zip(sparse.rows.tolist(), sparse.values.to_pylist(), strict=True))
        for name, sparse in taken.fields()
    }
    assert found == {"a": {2: 2}, "b": {0: 6, 1: 4, 2: 3}, "c": {0: 5}}


def test_batches_without_rare_fields_have_none() -> None:
    assert rare_values([(pa.RecordBatch.from_pydict({"#line": [1]}), {})]) == []


def test_where_no_row_with_a_rare_field_is_left_there_is_no_field() -> None:
    [values] = rare_values([part({5: "a"}, [{5: 1}, {}])])
    assert list(values.taken(np.array([1]), rows=2).fields()) == []


Raw = msgspec.Raw


@pytest.mark.parametrize(
    ("values", "encoding", "staged", "kinds"),
    [
        ([1, -2], Encoding.INT, [1, -2], {Kind.INT64}),
        ([1, 2**63], Encoding.NUMBER, ["1", str(2**63)], {Kind.INT64, Kind.BIGINT_OVERFLOW}),
        ([10**40], Encoding.NUMBER, ["1" + "0" * 40], {Kind.HUGE}),
        ([1, Raw("0.10")], Encoding.NUMBER, ["1", "0.10"], {Kind.INT64, Kind.NUMBER}),
        ([Raw("1e3"), Raw("-0")], Encoding.NUMBER, ["1e3", "-0"], {Kind.NUMBER, Kind.INT64}),
        ([True, False], Encoding.BOOL, [True, False], {Kind.BOOL}),
        (["x", ""], Encoding.TEXT, ["x", ""], {Kind.TEXT}),
        (
            ["2026-10-01", "2026-10-01 07:00Z"],
            Encoding.TEXT,
            ["2026-10-01", "2026-10-01 07:00Z"],
            {Kind.DATE},
        ),
        (
            ["2026-10-01T07:00:00.120Z"],
            Encoding.MILLIS,
            [datetime(2026, 10, 1, 7, 0, 0, 120_000, UTC)],
            {Kind.DATE},
        ),
        (
            ["2026-10-01T07:00:00.120Z", "2026-10-01T07:00:00.12Z"],
            Encoding.TEXT,
            ["2026-10-01T07:00:00.120Z", "2026-10-01T07:00:00.12Z"],
            {Kind.DATE},
        ),
        (["2026-10-01", ""], Encoding.TEXT, ["2026-10-01", ""], {Kind.TEXT}),
        ([[1, Raw("2.0"), "é"]], Encoding.JSON, ['[1,2.0,"é"]'], {Kind.ARRAY}),
        ([True, 1], Encoding.JSON, ["true", "1"], {Kind.BOOL, Kind.INT64}),
        (["1", 1], Encoding.JSON, ['"1"', "1"], {Kind.TEXT, Kind.INT64}),
        (['a"b', []], Encoding.JSON, ['"a\\"b"', "[]"], {Kind.TEXT, Kind.ARRAY}),
    ],
)
def test_values_are_staged_in_the_plainest_encoding_that_holds_them_all(
    values: list[Any], encoding: Encoding, staged: list[Any], kinds: set[Kind]
) -> None:
    how, array = encode(values)
    assert (how, array.to_pylist()) == (encoding, staged)
    assert kinds_of(how, array) == kinds


@given(COLUMNS)
def test_every_value_comes_back_as_it_was(values: list[Any]) -> None:
    encoding, array = encode(values)
    back = decoded(encoding, array)
    assert [(type(v), json_of(v)) for v in back] == [(type(v), json_of(v)) for v in values]
    assert array.type in (pa.int64(), pa.bool_(), pa.string(), LakeType.TIMESTAMP.arrow)


@given(COLUMNS)
def test_the_kinds_of_a_column_lead_to_the_type_that_its_values_do(values: list[Any]) -> None:
    kinds = kinds_of(*encode(values))
    assert infer(kinds) is infer(set(map(kind_of, values)))


@given(COLUMNS)
def test_none_is_no_value_and_leaves_a_gap(values: list[Any]) -> None:
    encoding, array = encode(values)
    with_gaps = [None, *(cell for value in values for cell in (value, None))]
    same, gappy = encode(with_gaps)
    assert (same, gappy.drop_null().to_pylist()) == (encoding, array.to_pylist())
    assert [cell is None for cell in gappy.to_pylist()] == [cell is None for cell in with_gaps]
    assert kinds_of(same, gappy) == kinds_of(encoding, array)


@given(st.lists(COLUMNS, min_size=1, max_size=4))
def test_parts_of_a_column_are_joined_as_if_they_had_been_one(parts: list[list[Any]]) -> None:
    encoding, array = joined([encode(part) for part in parts])
    whole = [value for part in parts for value in part]
    back = decoded(encoding, array)
    assert [(type(v), json_of(v)) for v in back] == [(type(v), json_of(v)) for v in whole]


@pytest.mark.parametrize(
    "texts",
    [
        ["2026-10-01", "1970-01-01", None],
        ["2026-10-01T07:00:00.123Z", "0001-01-01 00:00:00Z"],
        ["2026-10-01T07:00:00.123456", "2026-10-01", "9999-12-31 23:59:59.9"],
        [None],
    ],
)
def test_usual_dates_are_read_at_once(texts: list[str | None]) -> None:
    read = plain_dates(pa.array(texts, pa.string()))
    assert read is not None
    micros = read.cast(pa.int64()).to_pylist()
    assert micros == [parse_timestamp(text)[0] if text else None for text in texts]  # type: ignore[index]


@pytest.mark.parametrize(
    "texts",
    [
        ["2026-10-01T07:00:00+02:00"],  # an offset
        ["2026-10-01T07:00:00.1234567Z"],  # beyond microseconds
        ["2026-10-01T07:00Z"],  # no seconds
        ["2026-10-01Z"],
        ["2026-10-01T07:00:00Z", "2026-10-01T07:00:00"],  # with and without zone
        ["0000-10-01"],
        ["2026-02-30"],
        ["2026-10-01T24:00:00Z"],
        ["2026-10-01", "yesterday"],
        ["2026-10-01\n"],
        ["٢٠٢٦-10-01"],
    ],
)
def test_others_are_left_to_the_slow_way(texts: list[str]) -> None:
    assert plain_dates(pa.array(texts, pa.string())) is None


def test_what_stands_in_place_of_a_null_is_not_taken_for_a_part_of_dates() -> None:
    letters = "2026-10-01T07:00:002026-10-01T07:00:00"  # the last three are of no text
    offsets = np.array([0, 19, 35, 38], np.int32)
    buffers = [pa.py_buffer(b"\x03"), pa.py_buffer(offsets), pa.py_buffer(letters.encode())]
    texts = pa.Array.from_buffers(pa.string(), 3, buffers, 1)
    assert texts.to_pylist() == ["2026-10-01T07:00:00", "2026-10-01T07:00", None]
    assert plain_dates(texts) is None


@given(st.one_of(column_of(DATES), column_of(DAYS)))
def test_a_column_is_of_dates_if_every_text_is_one(texts: list[str]) -> None:
    each = [parse_timestamp(text) is not None for text in texts]
    assert all_dates(pa.array(texts, pa.string())) is all(each)

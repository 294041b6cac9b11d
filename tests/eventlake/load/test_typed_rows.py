"""Typed rows of a table."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlake.columnar.typed import SparseColumn
from eventlake.load import typed_rows as typing
from eventlake.load.blobs import BlobKind
from eventlake.load.staged import StagedTable
from eventlake.load.typed_rows import TypedRows, typed_rows
from eventlake.load.write import type_problems
from eventlake.rules.casts import Outcome, cast
from eventlake.rules.counts import CastCounts
from eventlake.rules.types import Column, LakeType, TableSchema
from tests.support.json_values import COLUMNS, json_of
from tests.support.lakes.staged import Staged

PRICE = Column("price", LakeType.DECIMAL, "/price")
COUNT = Column("n", LakeType.BIGINT, "/n")
NOTE = Column("note", LakeType.STRING, "/note")
STANDARD = tuple(
    Column(name, LakeType.STRING, "") for name in ("type", "message_id", "received_at")
)
HEAD = {"type": "page", "messageId": "m", "receivedAt": "2026-10-01T07:00:00Z"}


def schema(*columns: Column) -> TableSchema:
    return TableSchema("page", "shop", "page", "Page", columns)


def typed(root: Path, events: list[dict[str, Any]], *columns: Column) -> TypedRows:
    """The rows of these events, without the columns that every event needs."""
    staged = Staged(root, [HEAD | event for event in events])
    table = StagedTable.of(staged.of(BlobKind.ROWS), np.empty(0, np.uint64))
    assert table is not None
    found = typed_rows(table, schema(*columns, *STANDARD))
    casts = {name: counts for name, counts in found.casts.items() if name not in _STANDARD}
    rows = found.rows
    for name in _STANDARD:
        rows = rows.without(name)
    return TypedRows(rows, casts, found.rescued_cells)


_STANDARD = {column.name for column in STANDARD}


def test_every_column_of_the_table_is_there_in_order_and_type(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [{"n": 1, "price": msgspec.Raw("1.5")}, {"price": 2}]
    found = typed(tmp_path, events, PRICE, NOTE, COUNT)
    assert found.rows.schema == schema(PRICE, NOTE, COUNT).arrow
    assert found.rows.table().to_pylist() == [
        {"price": Decimal("1.500000"), "note": None, "n": 1},
        {"price": Decimal("2.000000"), "note": None, "n": None},
    ]
    assert found.casts == {"price": CastCounts(exact=2), "n": CastCounts(exact=1)}
    assert found.rescued_cells == 0


def test_columns_of_few_values_stay_without_the_rows_that_do_not_have_them(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [{"n": n, "price": 1} for n in range(16)]
    events[3] |= {"note": "a", "price": ""}
    events[9] |= {"note": "b"}
    found = typed(tmp_path, events, COUNT, NOTE, PRICE)
    note = found.rows.columns["note"]
    assert isinstance(note, SparseColumn)
    assert (note.rows.tolist(), note.values.to_pylist()) == ([3, 9], ["a", "b"])
    assert isinstance(found.rows.columns["n"], pa.Array)
    assert found.rows.whole("price").null_count == 1
    assert found.casts["price"] == CastCounts(exact=16)


@pytest.mark.parametrize("rows", [2, 40])
def test_fields_that_share_a_column_fill_it_together(tmp_path: Path, rows: int) -> None:
    events: list[dict[str, Any]] = [{"n": 1}, {"N": "2"}, {"N": "x"}, {"N": ""}, {"n": True}]
    found = typed(tmp_path, events + [{}] * rows, COUNT)
    assert found.rows.whole("n").to_pylist()[:5] == [1, 2, None, None, None]
    assert found.rows.whole("rescued_data").to_pylist()[:5] == [
        None,
        None,
        '{"/N":"x"}',
        None,
        '{"/n":true}',
    ]
    assert found.casts == {"n": CastCounts(exact=3, failed=2)}
    assert found.rescued_cells == 2


def test_what_lost_anything_is_in_one_json_object_a_row(tmp_path: Path) -> None:
    at = 'a"~/b'
    column = Column("a_b", LakeType.DECIMAL, "")
    events: list[dict[str, Any]] = [
        {"day": 1, "n": "many", at: True, "hr": 2, "A B": 5},
        {"n": msgspec.Raw("1.50"), at: 'é\n"\\\x1f\x7f' + "x" * 300},
        {"n": 3},
    ]
    found = typed(tmp_path, events, COUNT, column)
    texts = found.rows.whole("rescued_data").to_pylist()
    # What has no column stands behind what lost something in its own.
    assert texts == [
        '{"/n":"many","/a\\"~0~1b":true,"/day":1,"/hr":2,"/A B":5}',
        '{"/n":1.50,"/a\\"~0~1b":' + json_of(events[1][at]) + "}",
        None,
    ]
    assert found.rescued_cells == 7
    assert found.rows.whole("n").to_pylist() == [None, 1, 3]


def test_rescued_data_is_left_out_where_nothing_is_rescued(tmp_path: Path) -> None:
    assert typed(tmp_path / "a", [{"n": 1}], COUNT).rows.schema.names == ["n"]
    had = Column("rescued_data", LakeType.STRING, "")
    found = typed(tmp_path / "b", [{"n": 1}], had, COUNT)
    assert found.rows.table().to_pylist() == [{"rescued_data": None, "n": 1}]


@settings(max_examples=100)
@given(values=COLUMNS, into=st.sampled_from(LakeType), few=st.sampled_from([0, 1, 8]))
def test_a_column_is_cast_as_each_of_its_values(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], into: LakeType, few: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typing, "FEW", few)
        patch.setattr(typing, "ROOM", 1)
        events = [event for value in values for event in ({"n": value}, {})]
        column = Column("n", into, "/n")
        found = typed(tmp_path_factory.mktemp("lake"), events, column)
    wanted = [one for value in values for one in (cast(value, into), (None, Outcome.EXACT))]
    cells = found.rows.whole("n")
    cells.validate(full=True)
    as_micros = cells.cast(pa.int64()) if pa.types.is_timestamp(cells.type) else cells
    assert as_micros.to_pylist() == [cell for cell, _ in wanted]
    ends = [outcome for _, outcome in wanted]
    assert found.casts["n"] == CastCounts(
        exact=ends.count(Outcome.EXACT) - len(values),
        lossy=ends.count(Outcome.LOSSY),
        failed=ends.count(Outcome.FAILED),
    )
    kept = [None] * len(wanted)
    if "rescued_data" in found.rows.columns:
        kept = found.rows.whole("rescued_data").to_pylist()
    for at, (event, outcome) in enumerate(zip(events, ends, strict=True)):
        lost = outcome is not Outcome.EXACT
        assert kept[at] == (json_of({"/n": event["n"]}) if lost else None)


def test_more_text_than_offsets_can_address_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typing, "_MOST", 100)
    with pytest.raises(OverflowError, match="note has more than 2 GB of text"):
        typed(tmp_path / "a", [{"note": "a" * 101}], NOTE)
    with pytest.raises(OverflowError, match="rescued_data has more than 2 GB of text"):
        typed(tmp_path / "b", [{"n": "a" * 101}], COUNT)


def test_a_footer_is_compared_with_the_schema() -> None:
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

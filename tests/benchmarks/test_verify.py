"""The expected content comes from the raw JSON alone, and every wrong table is reported."""

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.archive import Recipe, make_archive
from benchmarks.verify import Tables, Truth, errors_in, truth_of

# "a" comes twice: the earlier copy is later in the file. "d" comes twice at the same time.
LINES = [
    b'{"type":"track","event":"Order Paid","messageId":"a","receivedAt":"2026-10-01T07:00:01.500Z",'
    b'"version":2,"properties":{"total":12.5,"note":"x","position":1}}',
    b'{"type":"track","event":"orderPaid","messageId":"b","receivedAt":"2026-10-01T08:00:00.000Z",'
    b'"version":2,"properties":{"total":3,"position":"top","coupon":null}}',
    b'{"type":"track","event":"Order Paid","messageId":"a","receivedAt":"2026-10-01T07:00:00.000Z",'
    b'"version":2,"properties":{"total":12.75,"position":1,"items":[{"price":7}]}}',
    b'{"type":"page","messageId":"c","receivedAt":"2026-10-01T07:05:00.000Z",'
    b'"properties":{"scrollDepth":0.5,"cart":{"size":1}}}',
    b'{"type":"page","messageId":"d","receivedAt":"2026-10-01T07:06:00.000Z",'
    b'"properties":{"scrollDepth":0.25,"cart":{"size":2,"full":true}}}',
    b'{"type":"page","messageId":"d","receivedAt":"2026-10-01T07:06:00.000Z",'
    b'"properties":{"scrollDepth":0.75,"cart":{"size":3,"full":true}}}',
]
SEVEN, EIGHT = (datetime(2026, 10, 1, hour, tzinfo=UTC) for hour in (7, 8))
ORDERS: dict[str, list[Any]] = {
    "message_id": ["a", "b"],
    "received_at": [SEVEN, EIGHT],
    "properties_total": [12.75, 3.0],
}
PAGES: dict[str, list[Any]] = {
    "message_id": ["c", "d"],
    "received_at": [SEVEN.replace(minute=5), SEVEN.replace(minute=6)],
    "properties_scroll_depth": [0.5, 0.25],
    "properties_cart_size": [1, 2],
}


@pytest.fixture
def truth(tmp_path: Path) -> Truth:
    file = tmp_path / "lines.gz"
    file.write_bytes(gzip.compress(b"\n".join(LINES)))
    return truth_of([file])


def tables(folder: Path, name: str = "page", hour: str = "07", **changed: list[Any]) -> Tables:
    """Correct tables, except for changed columns of pages."""
    pages = {key: values for key, values in {**PAGES, **changed}.items() if values}
    orders = [{key: [values[row]] for key, values in ORDERS.items()} for row in (0, 1)]
    return {
        name: [write(folder / "pages", hour, pages)],
        "track_order_paid": [
            write(folder / "orders", hour, row)
            for hour, row in zip(("07", "08"), orders, strict=True)
        ],
    }


def tables_with_rows(folder: Path, rows: list[int]) -> Tables:
    """Correct tables, except that pages have these rows."""
    changed = {key: [values[row] for row in rows] for key, values in PAGES.items()}
    return tables(folder, "page", "07", **changed)


def write(table: Path, hour: str, columns: dict[str, list[Any]]) -> Path:
    file = table / f"day=2026-10-01/hr={hour}/1.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns), file)
    return file


def test_the_earliest_copy_counts_and_only_numeric_columns_are_added_up(truth: Truth) -> None:
    assert (truth.lines, truth.duplicates, truth.rows) == (6, 2, 4)
    assert truth.bytes == sum(map(len, LINES)) + len(LINES)
    assert truth.slots == {
        "page/2026-10-01/07": 2,
        "track_order_paid/2026-10-01/07": 1,
        "track_order_paid/2026-10-01/08": 1,
    }
    assert truth.tables["track_order_paid"].sums == {"propertiestotal": 15.75}
    assert truth.tables["page"].sums == {"propertiesscrolldepth": 0.75, "propertiescartsize": 3}
    received = sum(moment.timestamp() for moment in ORDERS["received_at"])
    assert truth.tables["track_order_paid"].received_ms == received * 1000


def test_correct_tables_have_no_errors(tmp_path: Path, truth: Truth) -> None:
    assert errors_in(tables(tmp_path), truth, hours=True) == []


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda at: tables(at, name="pages"), "missing tables: page"),
        (lambda at: tables(at, name="pages"), "unexpected tables: pages"),
        (lambda at: tables(at, hour="08"), "page/2026-10-01/07: 0 rows instead of 2"),
        (lambda at: tables(at, message_id=["c", "c"]), "4 message ids, 3 distinct, instead of 4"),
        (lambda at: tables_with_rows(at, [0]), "page: 1 rows instead of 2"),
        (lambda at: tables_with_rows(at, [0, 1, 1]), "page: 3 rows instead of 2"),
        (lambda at: tables(at, received_at=[EIGHT, EIGHT]), "not the earliest copy"),
        (lambda at: tables(at, properties_scroll_depth=[0.5, 0.75]), "is 1.25 instead of 0.75"),
        (lambda at: tables(at, properties_cart_size=[1, 1]), "is 2.0 instead of 3.0"),
        (lambda at: tables(at, properties_scroll_depth=["0.5", "0.25"]), "no numeric column"),
        (lambda at: tables(at, properties_scroll_depth=[]), "no numeric column"),
    ],
)
def test_wrong_tables_are_reported(
    tmp_path: Path, truth: Truth, made: Callable[[Path], Tables], message: str
) -> None:
    assert message in "\n".join(errors_in(made(tmp_path), truth, hours=True))


def test_archives_have_the_tables_duplicates_and_columns_of_their_recipe(tmp_path: Path) -> None:
    plain = make_archive(tmp_path, Recipe(events=3_000, tables=40, files=4)).truth
    assert len(plain.tables) == 40
    assert 0.008 < plain.duplicates / plain.lines < 0.012
    assert 1_100 < plain.bytes / plain.lines < 1_250

    wide = Recipe(events=2_000, files=2, columns=50, columns_each=5)
    page = make_archive(tmp_path, wide).truth.tables["page"]
    assert sum(name.startswith("propertiesextra") for name in page.sums) == 50

    single = make_archive(tmp_path, Recipe(events=600, files=2, one_table=True)).truth
    assert {name: table.rows for name, table in single.tables.items()} == {
        "track_product_viewed": single.rows
    }

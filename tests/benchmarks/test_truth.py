"""What tables must hold, by the raw JSON of a few lines."""

import gzip
from pathlib import Path

from benchmarks.archive import make_archive
from benchmarks.recipe import Recipe
from benchmarks.truth import truth_of

LINES = [
    b'{"type":"track","event":"Order Paid","messageId":"a","receivedAt":"2026-10-01T07:00:01.500Z",'
    b'"version":2,"properties":{"total":12.5,"note":"x","position":1}}',
    b'{"type":"track","event":"orderPaid","messageId":"b","receivedAt":"2026-10-01T08:00:00.000Z",'
    b'"version":2,"properties":{"total":3,"position":"top"}}',
    b'{"type":"track","event":"Order Paid","messageId":"a","receivedAt":"2026-10-01T07:00:00.000Z",'
    b'"version":2,"properties":{"total":12.75,"position":1}}',
]


def test_the_earliest_copy_counts_and_only_columns_of_numbers_are_added_up(tmp_path: Path) -> None:
    file = tmp_path / "lines.gz"
    file.write_bytes(gzip.compress(b"\n".join(LINES)))
    truth = truth_of([file])
    assert (truth.lines, truth.duplicates, truth.rows) == (3, 1, 2)
    assert truth.slots == {"track_order_paid/2026-10-01/07": 1, "track_order_paid/2026-10-01/08": 1}
    assert truth.tables["track_order_paid"].sums == {"propertiestotal": 15.75}


def test_archives_have_as_many_tables_copies_and_columns_as_asked_for(tmp_path: Path) -> None:
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

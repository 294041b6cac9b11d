"""A lake that is right passes; whatever is done to it behind its back is found, and where."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.audit.audit import Audit
from tests.support.lakes.archive import identify, track
from tests.support.lakes.runs import Audited, Runs

ORDER = "segment-data/data/S1/segment_type=track_order"
FIRST = f"{ORDER}/day=2026-10-01/hr=07/R1-0-0.parquet"  # m1 and m2


def differences(found: Audit) -> list[tuple[str, str, int, int, list[str]]]:
    """Table, partition, rows that should be and are, and the ids."""
    return [
        (one.table, one.partition, one.expected, one.found, [f"{k} {id}" for k, id in one.examples])
        for one in found.partitions
    ]


def rewrite(path: Path, rows: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, store_schema=False)


def row(runs: Runs, **cells: object) -> pa.Table:
    """The first row of a data file with some cells changed."""
    rows = pq.read_table(runs.root / FIRST, partitioning=None)[:1]
    for name, value in cells.items():
        place = rows.schema.get_field_index(name)
        column = pa.array([value], rows.schema.field(name).type)
        rows = rows.set_column(place, name, column)
    return rows


def test_all_agrees_and_every_row_is_accounted_for(audited: Audited) -> None:
    found = audited()
    assert found.agrees
    assert [
        (t.table, t.rows_in, t.loaded, t.duplicates, t.rejected, t.skipped) for t in found.tables
    ] == [
        ("", 1, 0, 0, 1, 0),
        ("identify", 2, 1, 0, 1, 0),
        ("track_order", 6, 4, 2, 0, 0),
    ]
    total = found.total
    assert total.rows_in == 9
    assert (total.missing, total.unexpected, total.doubled, total.waiting) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("start", "end", "rows_in", "loaded", "duplicates"),
    [
        ("2026-10-01", "2026-10-02", 6, 4, 1),
        ("2026-10-01T07", "2026-10-01T08", 4, 3, 0),
        ("2026-10-01T07:30", "2026-10-01T08:00", 1, 1, 0),
        ("2026-10-01T09", "2026-10-01T10", 1, 0, 1),
        ("2026-10-02", None, 2, 1, 1),
        (None, "2026-10-02", 6, 4, 1),
        ("2026-11-01", "2026-11-02", 0, 0, 0),
    ],
)
def test_a_range_is_compared_with_the_days_around_it(
    audited: Audited, start: str | None, end: str | None, rows_in: int, loaded: int, duplicates: int
) -> None:
    found = audited(start, end)
    assert found.agrees
    total = found.total
    assert (total.rows_in, total.loaded, total.duplicates) == (rows_in, loaded, duplicates)


def test_a_data_file_that_is_gone(runs: Runs, audited: Audited) -> None:
    (runs.root / FIRST).unlink()
    found = audited()
    (one,) = found.partitions
    assert (one.name, one.partition, one.expected, one.found) == (
        "track_order",
        "day=2026-10-01/hr=07",
        2,
        0,
    )
    # The later copy of m1 is within the window of the one that is missing.
    assert sorted(one.examples) == [("missing", "m1"), ("missing", "m2")]
    assert one.problems == ("the catalog says 2 rows, its files have 0",)
    assert (found.total.missing, found.total.duplicates) == (2, 2)


def test_a_data_file_that_cannot_be_read(runs: Runs, audited: Audited) -> None:
    (runs.root / FIRST).write_bytes(b"PAR1")
    (one,) = audited().partitions
    assert one.missing == 2
    assert one.problems[0].startswith(f"{FIRST} cannot be read: ")


def test_a_data_file_without_the_id_column(runs: Runs, audited: Audited) -> None:
    rewrite(runs.root / FIRST, pa.table({"x": [1, 2]}))
    (one,) = audited().partitions
    assert (one.missing, one.found) == (2, 0)
    assert "cannot be read" in one.problems[0]


def test_a_row_that_was_taken_out(runs: Runs, audited: Audited) -> None:
    rewrite(runs.root / FIRST, row(runs))
    (one,) = audited().partitions
    assert (one.expected, one.found, one.examples) == (2, 1, (("missing", "m2"),))


def test_a_file_that_is_there_twice(runs: Runs, audited: Audited) -> None:
    copy = runs.root / FIRST.replace("R1-0-0", "copy")
    copy.write_bytes((runs.root / FIRST).read_bytes())
    (one,) = audited().partitions
    assert (one.expected, one.found, one.doubled) == (2, 4, 2)
    assert sorted(one.examples) == [("doubled", "m1"), ("doubled", "m2")]
    assert one.problems == ("the catalog says 2 rows, its files have 4",)


def test_a_copy_in_another_table_is_doubled_too(runs: Runs, audited: Audited) -> None:
    where = "segment-data/data/S1/segment_type=identify/day=2026-10-01/hr=07/more.parquet"
    runs.archive.day("2026-10-01").file("c", identify("m1", "2026-10-01T07:15"))
    runs.sync()
    assert audited().agrees
    rewrite(runs.root / where, row(runs, received_at=1790838900000000))
    assert differences(audited()) == [
        ("identify", "day=2026-10-01/hr=07", 1, 2, ["doubled m1"]),
    ]


@pytest.mark.parametrize("start", ["2026-10-01T08", None])
def test_a_copy_is_doubled_also_if_the_other_lies_outside_the_range(
    runs: Runs, audited: Audited, start: str | None
) -> None:
    where = runs.root / f"{ORDER}/day=2026-10-01/hr=08/more.parquet"
    runs.archive.day("2026-10-01").file("c", track("Order", "m1", "2026-10-01T08:15"))
    runs.sync()
    rewrite(where, row(runs, received_at=1790842500000000))
    assert differences(audited(start, "2026-10-01T09")) == [
        ("track_order", "day=2026-10-01/hr=08", 1, 2, ["doubled m1"])
    ]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ({"message_id": "m9"}, "unexpected"),
        ({"message_id": None}, "unexpected"),
        ({"received_at": None}, "unexpected"),
        ({"received_at": 2**62}, "unexpected"),
        ({"received_at": 1790838000000001}, "doubled"),  # a microsecond later
        ({"received_at": 1790841600000000}, "doubled"),  # of the next hour
    ],
)
def test_a_row_that_nobody_sent(
    runs: Runs, audited: Audited, cells: dict[str, object], kind: str
) -> None:
    rewrite(runs.root / FIRST.replace("R1-0-0", "more"), row(runs, **cells))
    (one,) = audited().partitions
    assert (one.expected, one.found, one.unexpected + one.doubled) == (2, 3, 1)
    assert one.examples == ((kind, str(cells.get("message_id", "m1") or "")),)


def test_a_row_in_another_hour_than_its_own_is_missing_there(runs: Runs, audited: Audited) -> None:
    source = runs.root / FIRST
    source.rename(runs.root / FIRST.replace("hr=07", "hr=08").replace("R1-0-0", "moved"))
    assert differences(audited()) == [
        ("track_order", "day=2026-10-01/hr=07", 2, 0, ["missing m1", "missing m2"]),
        ("track_order", "day=2026-10-01/hr=08", 1, 3, ["unexpected m1", "unexpected m2"]),
    ]


def test_what_differs_outside_the_range_is_not_told(runs: Runs, audited: Audited) -> None:
    (runs.root / FIRST).unlink()
    assert audited("2026-10-01T08", "2026-10-01T09").agrees
    assert not audited("2026-10-01T07", "2026-10-01T08").agrees
    # But a copy is missing whose twin outside was the only one.
    (one,) = audited("2026-10-01T09", "2026-10-01T10").partitions
    assert (one.partition, one.examples) == ("day=2026-10-01/hr=09", (("missing", "m1"),))


def test_examples_are_few_and_counts_are_exact(runs: Runs, audited: Audited) -> None:
    runs.archive.day("2026-10-03").file(
        "c", *(track("Order", f"n{n}", "2026-10-03T07:00") for n in range(10))
    )
    runs.sync()
    (runs.root / f"{ORDER}/day=2026-10-03/hr=07/R2-0-0.parquet").unlink()
    (one,) = audited().partitions
    assert (one.missing, len(one.examples)) == (10, 3)


def test_rows_beyond_a_bucket_are_compared_all_the_same(
    runs: Runs, audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlake.audit.rows.ROWS_PER_BUCKET", 1)
    monkeypatch.setattr("eventlake.audit.rows.PENDING", 2)
    monkeypatch.setattr("eventlake.audit.rows.BATCH", 2)
    assert audited().total.loaded == 5
    rewrite(runs.root / FIRST, row(runs))
    assert differences(audited()) == [
        ("track_order", "day=2026-10-01/hr=07", 2, 1, ["missing m2"]),
    ]

"""Rows of several files in the order of time, whatever the files and however little is read."""

from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.upkeep import rewrite
from eventlake.upkeep.rewrite import in_groups, merged

SCHEMA = pa.schema(
    [("received_at", pa.timestamp("us", "UTC")), ("id", pa.string()), ("later", pa.int64())]
)


def file_of(times: list[int], number: int) -> pq.ParquetFile:
    """An older file, which lacks a column."""
    ids = [f"{number}-{row}" for row in range(len(times))]
    columns = {"received_at": pa.array(sorted(times), pa.timestamp("us", "UTC")), "id": ids}
    data = BytesIO()
    pq.write_table(pa.table(columns), data)
    return pq.ParquetFile(BytesIO(data.getvalue()))


@given(st.lists(st.lists(st.integers(-5, 20), max_size=12), max_size=5), st.integers(1, 4))
def test_all_rows_come_once_in_order_and_files_in_theirs(files: list[list[int]], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewrite, "_LEAST", size)
        patch.setattr(rewrite, "ROW_GROUP", 1)
        opened = [file_of(times, number) for number, times in enumerate(files)]
        parts = list(merged(opened, SCHEMA, "received_at"))
    found = pa.concat_tables([SCHEMA.empty_table(), *parts])
    times = found["received_at"].cast(pa.int64()).to_pylist()
    assert times == sorted(time for file in files for time in file)
    ids = found["id"].to_pylist()
    assert sorted(ids) == sorted(f"{n}-{r}" for n, f in enumerate(files) for r in range(len(f)))
    for number in range(len(files)):  # the order within a file is kept
        mine = [id for id in ids if id.startswith(f"{number}-")]
        assert mine == [f"{number}-{row}" for row in range(len(mine))]
    assert found["later"].null_count == len(found)


def test_no_more_is_in_memory_than_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "_LEAST", 10)
    monkeypatch.setattr(rewrite, "ROW_GROUP", 20)
    files = [file_of(list(range(number, 1000, 2)), number) for number in (0, 1)]
    parts = list(merged(files, SCHEMA, "received_at"))
    assert sum(map(len, parts)) == 1000
    assert max(map(len, parts)) <= 20


def test_a_file_is_read_from_when_its_time_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs come one after the other: of their files few overlap."""
    monkeypatch.setattr(rewrite, "ROW_GROUP", 1)
    begun: list[int] = []
    real = rewrite._Rows

    def rows(*args: Any) -> Any:
        begun.append(len(begun))
        return real(*args)

    monkeypatch.setattr(rewrite, "_Rows", rows)
    files = [file_of([10 * number, 10 * number + 12], number) for number in range(20)]
    parts = merged(files, SCHEMA, "received_at")
    assert len(next(parts)) == 3
    assert len(begun) == 2
    assert sum(map(len, parts)) == 37
    assert len(begun) == 20


def test_where_memory_is_short_some_files_wait_and_no_row_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rewrite, "MOST_BYTES", 1)
    files = [file_of([1, 5, 9], number) for number in range(3)]
    found = pa.concat_tables(merged(files, SCHEMA, "received_at"))
    assert found["id"].to_pylist() == [f"{file}-{row}" for file in range(3) for row in range(3)]


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [
        ([5, 5, 5], [7, 7, 1]),
        ([7], [7]),
        ([14], [7, 7]),
        ([6, 1], [7]),
        ([6, 8, 7], [7, 7, 7]),
        ([6], [6]),
        ([0], []),
        ([], []),
    ],
)
def test_rows_are_cut_into_groups_of_one_size(lengths: list[int], groups: list[int]) -> None:
    rows = pa.table({"n": range(sum(lengths))})
    tables = [rows[sum(lengths[:n]) :][:length] for n, length in enumerate(lengths)]
    found = list(in_groups(iter(tables), 7))
    assert [len(group) for group in found] == groups
    assert pa.concat_tables([rows[:0], *found]) == rows

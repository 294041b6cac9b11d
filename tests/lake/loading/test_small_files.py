"""Small files, as other readers see them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.loading.data_file import FileEncoding
from lake.loading.small_files import SmallFiles
from lake.loading.table_files import SMALL, LargeFiles, TableFiles, table_files
from lake.staging.kernel import compiled

MOMENT, EXACT = pa.timestamp("us", tz="UTC"), pa.decimal128(38, 6)
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): st.text(max_size=20) | st.text("ab", min_size=60, max_size=300),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    MOMENT: st.integers(0, 300_000_000_000).map(lambda s: _FIRST + timedelta(milliseconds=s)),
    EXACT: st.integers(1 - 10**38, 10**38 - 1).map(lambda n: Decimal(f"{n}e-6")),
    pa.bool_(): st.booleans(),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 40))
    columns = {}
    for number in range(draw(st.integers(1, 20))):
        kind = draw(st.sampled_from(list(VALUES)))
        values = st.lists(st.none() | VALUES[kind], min_size=rows, max_size=rows)
        columns[f"column_{number}"] = pa.array(draw(values), kind)
    return pa.table(columns)


def written(files: TableFiles, rows: slice) -> bytes:
    out = BytesIO()
    told = files.write(out, rows)
    assert (told.size, told.end) == (len(out.getvalue()), out.getvalue())
    return out.getvalue()


def small(table: pa.Table) -> SmallFiles:
    [batch] = table.combine_chunks().to_batches()
    return SmallFiles(batch)


@settings(deadline=None)
@given(st.data())
def test_arrow_reads_what_was_written(data: st.DataObject) -> None:
    table = data.draw(tables())
    begin = data.draw(st.integers(0, len(table) - 1))
    table = table.slice(begin)  # columns need not begin at the beginning of their memory
    end = data.draw(st.integers(1, len(table)))
    start = data.draw(st.integers(0, end - 1))
    some = table[start:end]
    file = pq.ParquetFile(BytesIO(written(small(table), slice(start, end))))
    assert file.read() == some
    for number, column in enumerate(some.columns):
        told = file.metadata.row_group(0).column(number).statistics
        values = [value for value in column.to_pylist() if value is not None]
        assert told.null_count == len(some) - len(values)
        if told.has_min_max:
            assert (told.min, told.max) == (min(values), max(values))


@settings(max_examples=25, deadline=None)
@given(table=tables())
def test_duckdb_reads_the_same(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("duckdb") / "file.parquet"
    path.write_bytes(written(small(table), slice(0, len(table))))
    with duckdb.connect() as connection:
        read = connection.read_parquet(str(path)).to_arrow_table()
    for name in table.column_names:
        assert read[name].cast(table[name].type).to_pylist() == table[name].to_pylist()


@pytest.mark.parametrize("count", [1, 14, 15, 200])
def test_a_file_has_the_columns_that_another_writer_would_give_it(count: int) -> None:
    kinds = [*VALUES]
    names = [f"column_{number}_{'x' * number}" for number in range(count)]
    table = pa.table({name: pa.nulls(3, kinds[n % len(kinds)]) for n, name in enumerate(names)})
    ours = pq.read_metadata(BytesIO(written(small(table), slice(0, 3))))
    other = pq.read_metadata(BytesIO(written(large(table), slice(0, 3))))
    assert ours.schema.equals(other.schema)
    assert ours.metadata is None


def large(table: pa.Table) -> LargeFiles:
    return LargeFiles(table, FileEncoding.of(table))


def test_what_can_be_told_of_values_is_told() -> None:
    table = pa.table(
        {
            "text": ["b", "é", None, "a"],
            "number": [3, -5, None, 2**40],
            "moment": pa.array([7, 5, None, 9], MOMENT),
            "long": ["x" * 65, "a", "b", "c"],
            "none": pa.nulls(4, pa.string()),
        }
    )
    group = pq.read_metadata(BytesIO(written(small(table), slice(0, 4)))).row_group(0)
    told = [group.column(number).statistics for number in range(5)]
    assert [one.null_count for one in told] == [1, 1, 1, 0, 4]
    assert (told[0].min, told[0].max) == ("a", "é")
    assert (told[1].min, told[1].max) == (-5, 2**40)
    assert told[2].min == datetime(1970, 1, 1, 0, 0, 0, 5, UTC)
    assert [one.has_min_max for one in told[3:]] == [False, False]


def test_readers_pass_over_files_by_what_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(written(small(pa.table({"number": [1, 2, 3]})), slice(0, 3)))
    assert len(pq.read_table(path, filters=[("number", ">", 2)])) == 1
    [group] = pq.ParquetFile(path).metadata.to_dict()["row_groups"]
    assert group["columns"][0]["statistics"]["max"] == 3


def test_code_that_cannot_be_kept_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "cache_folder", lambda: None)
    files = table_files(pa.table({"number": [1, 2]}), 1)
    assert isinstance(files, LargeFiles)
    assert pq.read_table(BytesIO(written(files, slice(0, 2))))["number"].to_pylist() == [1, 2]


@pytest.mark.parametrize(("rows", "kind"), [(10, SmallFiles), (SMALL // 4, LargeFiles)])
def test_files_are_small_or_large(rows: int, kind: type) -> None:
    table = pa.table({"number": pa.array(range(rows))})
    files = table_files(table, 1)
    assert isinstance(files, kind)
    assert isinstance(table_files(table, rows), SmallFiles)
    assert pq.read_table(BytesIO(written(files, slice(1, rows)))) == table[1:]

"""Files by the kernel, as other readers see them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlake.columnar.parquet import writer
from eventlake.columnar.parquet.data_file import ROW_GROUP
from eventlake.columnar.parquet.pages import REPEATING, TINY
from eventlake.columnar.parquet.writer import PAGE, TableFiles
from eventlake.columnar.typed import SparseColumn, TypedColumns
from tests.support.oracles.parquet_pages import check_chunks, page_at

MOMENT, EXACT = pa.timestamp("us", tz="UTC"), pa.decimal128(38, 6)
LONGEST_BOUND = 64
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): st.text(max_size=20) | st.text("ab", min_size=60, max_size=300),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    MOMENT: st.integers(0, 300_000_000_000).map(lambda s: _FIRST + timedelta(milliseconds=s)),
    EXACT: st.integers(1 - 10**38, 10**38 - 1).map(lambda n: Decimal(f"{n}e-6")),
    pa.bool_(): st.booleans(),
}


@st.composite
def columns(draw: st.DrawFn, rows: int) -> pa.Array:
    """Values of one type, many or few of them, of which any share is null."""
    kind = draw(st.sampled_from(list(VALUES)))
    some = draw(st.lists(VALUES[kind], min_size=1, max_size=min(rows, 30)))
    random = Random(draw(st.integers(0, 2**32)))
    share = draw(st.sampled_from([0, 0.01, 0.1, 0.5, 0.97, 1]))
    if draw(st.booleans()):  # in runs
        some = [value for value in some for _ in range(random.choice([1, 9]))]
        chosen = (some * (rows // len(some) + 1))[:rows]
    else:
        chosen = random.choices(some, k=rows)
    return pa.array([None if random.random() < share else value for value in chosen], kind)


@st.composite
def tables(draw: st.DrawFn, most_columns: int = 6) -> pa.Table:
    rows = draw(st.integers(1, 40) | st.integers(41, 1500))
    count = draw(st.integers(1, most_columns))
    return pa.table({f"column_{number}": draw(columns(rows)) for number in range(count)})


def sparse(column: pa.Array, lead: int = 0) -> SparseColumn:
    """The same without the nulls; its values may begin later in their memory."""
    rows = np.flatnonzero(np.asarray(column.is_valid())).astype(np.int64)
    values = column.drop_null()
    if lead and len(values):
        values = pa.concat_arrays([values[:1]] * lead + [values])[lead:]
    return SparseColumn(rows, values)


@st.composite
def typed(draw: st.DrawFn) -> tuple[pa.Table, TypedColumns]:
    """A table, and its columns of which some are sparse."""
    table = draw(tables())
    # Columns need not begin at the beginning of their memory.
    table = table.slice(draw(st.integers(0, min(70, len(table) - 1))))
    found: dict[str, pa.Array | SparseColumn] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        array = column.chunk(0)
        is_sparse = draw(st.booleans())
        found[name] = sparse(array, draw(st.integers(0, 9))) if is_sparse else array
    return table, TypedColumns(len(table), found)


@st.composite
def encodings(draw: st.DrawFn) -> AbstractContextManager[Any]:
    """Files as they are written when they are large, or have large pages, whatever their size."""
    small, page = (draw(st.sampled_from([0, writer.SMALL])), draw(st.sampled_from([1000, PAGE])))
    return patch.multiple(writer, SMALL=small, PAGE=page)


def written(files: TableFiles, rows: slice) -> bytes:
    data = files.data(rows)
    if data is not None:
        return bytes(data)
    return by_arrow(files, rows)


def by_arrow(files: TableFiles, rows: slice) -> bytes:
    out = BytesIO()
    footer = files.write(out, rows)
    assert footer.equals(pq.read_metadata(BytesIO(out.getvalue())))
    return out.getvalue()


def kernel(table: pa.Table) -> TableFiles:
    return TableFiles(TypedColumns.of(table))


def whole(table: pa.Table) -> bytes:
    """A file of all of its rows."""
    return written(kernel(table), slice(0, len(table)))


def check_statistics(data: bytes, table: pa.Table) -> None:
    group = pq.read_metadata(BytesIO(data)).row_group(0)
    for number, column in enumerate(table.columns):
        told = group.column(number).statistics
        values = [value for value in column.to_pylist() if value is not None]
        assert told.null_count == len(table) - len(values)
        short = all(len(value.encode()) <= LONGEST_BOUND for value in bounds(values) if (
            isinstance(value, str)))  # fmt: skip
        assert told.has_min_max is (bool(values) and short)
        if told.has_min_max:
            assert [told.min, told.max] == bounds(values)


def bounds(values: Sequence[Any]) -> list[Any]:
    """Texts are in the same order by their code points as by their bytes."""
    return [min(values), max(values)] if values else []


@settings(deadline=None)
@given(st.data())
def test_arrow_reads_what_was_written(data: st.DataObject) -> None:
    table, given_columns = data.draw(typed())
    end = data.draw(st.integers(1, len(table)))
    start = data.draw(st.integers(0, end - 1))
    files = TableFiles(given_columns)
    for rows in (slice(start, end), slice(0, len(table))):
        with data.draw(encodings()):
            file = written(files, rows)
        assert pq.read_table(BytesIO(file)) == table[rows]
        check_statistics(file, table[rows])
        check_chunks(file)


@settings(max_examples=40, deadline=None)
@given(given_columns=typed(), encoding=encodings())
def test_duckdb_reads_the_same(
    given_columns: tuple[pa.Table, TypedColumns],
    encoding: AbstractContextManager[Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    table, its_columns = given_columns
    path = tmp_path_factory.mktemp("duckdb") / "file.parquet"
    with encoding:
        path.write_bytes(written(TableFiles(its_columns), slice(0, len(table))))
    assert_duckdb_reads(path, table)


def assert_duckdb_reads(path: Path, table: pa.Table) -> None:
    with duckdb.connect() as connection:
        read = connection.read_parquet(str(path)).to_arrow_table()
    assert read.column_names == table.column_names
    for name in table.column_names:
        assert read[name].cast(table[name].type).to_pylist() == table[name].to_pylist()


@pytest.mark.parametrize("count", [1, 13, 14, 15, 200])
def test_a_file_has_the_columns_that_another_writer_would_give_it(count: int) -> None:
    kinds = [*VALUES]
    names = [f"column_{number}_{'é' * number}" for number in range(count)]
    table = pa.table({name: pa.nulls(3, kinds[n % len(kinds)]) for n, name in enumerate(names)})
    ours, other = (
        pq.read_metadata(BytesIO(file))
        for file in (whole(table), by_arrow(kernel(table), slice(0, 3)))
    )
    assert ours.schema.equals(other.schema)
    assert ours.format_version == other.format_version
    assert ours.metadata is None and other.metadata is None


def test_statistics_are_written_where_they_are_known() -> None:
    table = pa.table(
        {
            "text": ["b", "é", None, "a"],
            "number": [3, -5, None, 2**40],
            "moment": pa.array([7, 5, None, 9], MOMENT),
            "exact": pa.array([Decimal("-0.5"), Decimal(10**30), None, Decimal(7)], EXACT),
            "truth": [True, True, None, False],
            "long": ["x" * 65, "a", "b", "c"],
            "none": pa.nulls(4, pa.string()),
        }
    )
    group = pq.read_metadata(BytesIO(whole(table))).row_group(0)
    told = [group.column(number).statistics for number in range(7)]
    assert [one.null_count for one in told] == [1, 1, 1, 1, 1, 0, 4]
    assert (told[0].min, told[0].max) == ("a", "é")
    assert (told[1].min, told[1].max) == (-5, 2**40)
    assert told[2].min == datetime(1970, 1, 1, 0, 0, 0, 5, UTC)
    assert (told[3].min, told[3].max) == (Decimal("-0.5"), Decimal(10**30))
    assert (told[4].min, told[4].max) == (False, True)
    assert [one.has_min_max for one in told[5:]] == [False, False]


def test_readers_skip_files_by_their_statistics(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(whole(pa.table({"number": [1, 2, 3]})))
    assert len(pq.read_table(path, filters=[("number", ">", 2)])) == 1
    [group] = pq.ParquetFile(path).metadata.to_dict()["row_groups"]
    assert group["columns"][0]["statistics"]["max"] == 3


def ids(count: int) -> list[str]:
    return [f"{number * 0x9E3779B97F4A7C15 % 2**128:032x}" for number in range(count)]


COLUMNS: list[list[Any]] = [
    ["web", "ios"] * 1000,
    ["web", "ios", None] * 1000,
    ["same"] * 1000,
    [2**40, -1, 7] * 1000,
    [Decimal("1.5"), Decimal(10**30)] * 1000,
    [""] * 1000,
    [None] * 1000,
    ["web", "ios"] * 10,
    [True, False] * 10_000,
    [True, False, None, True],
    ids(1000),
    [*ids(900), *([None] * 20)],
    ids(10),
    [*(["same"] * 300), *ids(1000)],  # not judged by its beginning
    [*ids(500), *(["same"] * 500)],
    list(range(1000)),
    [Decimal(n) for n in range(1000)],
    [7],
]


def column(values: list[Any]) -> pa.Array:
    """Values in one of the types that the lake has."""
    array = pa.array(values)
    if pa.types.is_decimal(array.type):
        return array.cast(EXACT)
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


def suitable_encoding(values: list[Any]) -> tuple[str, bool]:
    """Compression and whether there is a dictionary, by the rule: both only for large columns."""
    known = [value for value in values if value is not None]
    is_small = sum(4 + len(str(value)) for value in known) < REPEATING
    if is_small or isinstance(known[0], bool):
        return "SNAPPY", False
    return ("SNAPPY", True) if 2 * len(set(known)) <= len(known) else ("ZSTD", False)


@pytest.mark.parametrize(
    "values", COLUMNS, ids=lambda values: f"{len(values)} like {values[0]!r:.16}"
)
def test_how_a_column_is_encoded_follows_its_values(
    values: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SMALL", 0)
    table = pa.table({"column": column(values)})
    file = whole(table)
    chunk = pq.read_metadata(BytesIO(file)).row_group(0).column(0)
    compression, dictionary = suitable_encoding(values)
    if chunk.total_uncompressed_size <= TINY and not dictionary:
        compression = "UNCOMPRESSED"
    assert chunk.compression == compression
    assert chunk.has_dictionary_page is dictionary
    assert pq.read_table(BytesIO(file)) == table
    check_chunks(file)
    check_statistics(file, table)
    (tmp_path / "file.parquet").write_bytes(file)
    assert_duckdb_reads(tmp_path / "file.parquet", table)


@pytest.mark.parametrize(("distinct", "dictionary"), [(500, True), (501, False)])
def test_a_dictionary_needs_every_value_twice_on_average(distinct: int, dictionary: bool) -> None:
    values = sorted([*ids(distinct), *ids(1000 - distinct)])
    chunk = pq.read_metadata(BytesIO(whole(pa.table({"id": values})))).row_group(0).column(0)
    assert chunk.has_dictionary_page is dictionary


@pytest.mark.parametrize("bits", range(17))  # more than a row group can have
def test_entries_of_a_dictionary_are_numbered_in_as_few_bits_as_they_need(
    bits: int, tmp_path: Path
) -> None:
    entries = (1 << bits >> 1) + 1
    rows = min(max(2 * entries, 100), ROW_GROUP)
    values = np.sort(np.arange(rows) % entries) * 7
    table = pa.table({"number": values, "text": pa.array(values).cast(pa.string())})
    file = whole(table)
    assert pq.read_table(BytesIO(file)) == table
    assert pq.read_metadata(BytesIO(file)).row_group(0).column(0).has_dictionary_page
    check_chunks(file)
    (tmp_path / "file.parquet").write_bytes(file)
    assert_duckdb_reads(tmp_path / "file.parquet", table)


@pytest.mark.parametrize("step", [1, 2, 7, 47, 48, 49, 100, 5000])
def test_sparse_columns_are_the_same_at_every_density(step: int) -> None:
    rows = 5000
    given_rows = np.arange(step // 2, rows, step, dtype=np.int64)
    table = {
        "number": SparseColumn(given_rows, pa.array(given_rows)),
        "text": SparseColumn(given_rows, pa.array(given_rows).cast(pa.string())),
        "truth": SparseColumn(given_rows, pa.array(given_rows % 3 == 0)),
        "none": SparseColumn(given_rows[:0], pa.array([], pa.string())),
    }
    its_columns = TypedColumns(rows, table)
    files = TableFiles(its_columns)
    for some in (slice(0, rows), slice(13, 14), slice(77, 1024), slice(2500, 2501), slice(64, 128)):
        file = written(files, some)
        assert pq.read_table(BytesIO(file)) == its_columns.table()[some]
        check_chunks(file)
        check_statistics(file, its_columns.table()[some])


def test_what_is_too_large_goes_to_another_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LARGEST", 10_000)
    rows = np.arange(1000)
    sparse_rows = SparseColumn(rows, pa.array(rows))
    files = TableFiles(TypedColumns(1000, {"number": pa.array(rows), "few": sparse_rows}))
    for some, maker in ((slice(0, 100), "datalake"), (slice(0, 1000), "parquet-cpp-arrow")):
        file = written(files, some)
        assert pq.read_metadata(BytesIO(file)).created_by.startswith(maker)
        assert pq.read_table(BytesIO(file))["number"].to_pylist() == rows[some].tolist()
        assert pq.read_table(BytesIO(file))["few"].to_pylist() == rows[some].tolist()


def test_a_long_file_has_groups_of_rows_that_readers_can_skip() -> None:
    rows = ROW_GROUP + 1
    truths = pa.table({"truth": pa.array(np.arange(rows) % 2 == 0)})
    file = pq.read_metadata(BytesIO(whole(truths)))
    assert [file.row_group(i).num_rows for i in range(file.num_row_groups)] == [rows - 1, 1]


def test_a_file_may_have_no_rows() -> None:
    table = pa.table({"number": [1, 2], "text": ["a", "b"]})
    assert pq.read_table(BytesIO(written(kernel(table), slice(1, 1)))) == table[:0]
    assert pq.read_table(BytesIO(whole(table[:0]))) == table[:0]


def test_small_files_do_with_snappy() -> None:
    table = pa.table({"id": ids(1000)})
    chunk = pq.read_metadata(BytesIO(whole(table))).row_group(0).column(0)
    assert table.nbytes < writer.SMALL
    assert chunk.compression == "SNAPPY"
    several = pa.table({"id": ids(1000), **{f"other_{n}": ids(1000) for n in range(3)}})
    chunk = pq.read_metadata(BytesIO(whole(several))).row_group(0).column(0)
    assert chunk.compression == "ZSTD"


@pytest.mark.parametrize("nulls", [0, 3])
def test_a_large_column_has_several_pages(nulls: int, tmp_path: Path) -> None:
    values = [None if nulls and n % nulls == 0 else one for n, one in enumerate(ids(100_000))]
    table = pa.table({"id": values, "number": range(100_000)})
    file = whole(table[10:])
    assert pq.read_table(BytesIO(file)) == table[10:]
    check_chunks(file)
    chunk = pq.read_metadata(BytesIO(file)).row_group(0).column(0)
    page = page_at(file, chunk.data_page_offset)
    assert page.values < 50_000
    assert page.unpacked == pytest.approx(PAGE, rel=0.3)
    (tmp_path / "file.parquet").write_bytes(file)
    assert_duckdb_reads(tmp_path / "file.parquet", table[10:])


def test_a_dictionary_is_no_larger_than_a_page() -> None:
    texts = [text * 20 for text in ids(2000) for _ in range(2)]
    file = whole(pa.table({"text": texts}))
    chunk = pq.read_metadata(BytesIO(file)).row_group(0).column(0)
    assert not chunk.has_dictionary_page
    assert pq.read_table(BytesIO(file))["text"].to_pylist() == texts

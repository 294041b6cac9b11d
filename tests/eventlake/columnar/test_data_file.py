"""Data files: their encodings and codecs."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.columnar.parquet.data_file import (
    ROW_GROUP,
    FileEncoding,
    Footer,
    Footers,
    write_data_file,
)


def written(rows: pa.Table, files: int = 1) -> pq.ParquetFile:
    out = BytesIO()
    write_data_file(out, rows.schema, rows.to_batches(), FileEncoding.of(rows, files))
    return pq.ParquetFile(pa.BufferReader(out.getvalue()))


def ids(count: int) -> list[str]:
    return [str(UUID(int=number * 0x9E3779B97F4A7C15 % 2**128)) for number in range(count)]


def test_what_goes_to_many_files_is_small_in_each() -> None:
    rows = pa.table({"id": ids(1000)})
    assert FileEncoding.of(rows, files=1).various == {"id"}
    assert FileEncoding.of(rows, files=100).various == set()


def test_every_reader_sees_the_same_in_a_file() -> None:
    schema = pa.schema(
        [
            ("text", pa.string()),
            ("whole", pa.int64()),
            ("exact", pa.decimal128(38, 6)),
            ("moment", pa.timestamp("us", tz="UTC")),
            ("truth", pa.bool_()),
        ]
    )
    file = written(schema.empty_table())
    assert file.metadata.metadata is None  # nothing of Arrow's own
    assert file.schema_arrow == schema
    assert file.metadata.num_rows == 0


def test_a_long_file_has_groups_of_rows_that_readers_can_skip() -> None:
    rows = pa.table({"number": pa.array(range(ROW_GROUP + 1))})
    groups = written(rows).metadata
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [ROW_GROUP, 1]


class FullDisk(BytesIO):
    def write(self, _: Any) -> int:
        raise OSError(28, "No space left on device")


def test_an_error_of_the_storage_is_raised_unchanged() -> None:
    rows = pa.table({"number": [1]})
    with pytest.raises(OSError, match="No space left") as told:
        write_data_file(FullDisk(), rows.schema, rows.to_batches(), FileEncoding.of(rows))
    assert told.value.errno == 28


def test_so_is_one_of_where_rows_come_from() -> None:
    rows = pa.table({"number": [1]})

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches()
        raise ConnectionError("the network is gone")

    with pytest.raises(ConnectionError, match="the network is gone"):
        write_data_file(BytesIO(), rows.schema, batches(), FileEncoding.of(rows))


class Seen:
    """Says which columns it was shown, and remembers how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, columns: pa.Schema) -> tuple[str, ...]:
        self.times += 1
        return tuple(columns.names)


def file(*columns: str, rows: int) -> bytes:
    out = BytesIO()
    pq.write_table(pa.table({name: pa.array(["x"] * rows, pa.string()) for name in columns}), out)
    return out.getvalue()


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 8191, 8192, 100_000])
def test_footers_of_the_same_columns_are_parsed_once(rows: int) -> None:
    seen = Seen()
    footers = Footers(seen)
    for _ in range(3):
        assert footers.read(file("a", "b", rows=rows), rows) == Footer(rows, ("a", "b"))
    assert footers.read(file("a", "b", rows=7), 7) == Footer(7, ("a", "b"))
    assert seen.times == 1


def test_an_unexpected_error_is_raised_unchanged() -> None:
    footers = Footers(Seen())
    assert footers.read(file("a", rows=5), 5) == Footer(5, ("a",))
    assert footers.read(file("a", rows=4), 5) == Footer(4, ("a",))
    assert footers.read(file("b", rows=5), 5) == Footer(5, ("b",))
    assert footers.read(file("a", "b", rows=5), 5) == Footer(5, ("a", "b"))
    assert footers.read(file("a", rows=5), 5) == Footer(5, ("a",))


def test_of_a_file_only_the_end_is_needed() -> None:
    whole = file("a", rows=10_000)
    size = int.from_bytes(whole[-8:-4], "little")
    assert Footers(Seen()).read(whole[-size - 8 :], 10_000) == Footer(10_000, ("a",))
    assert Footers(Seen()).read(whole[-size - 7 :], 10_000) is None


def test_what_is_no_file_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        Footers(Seen()).read(b"PAR1" + bytes(100) + b"PAR0", 5)

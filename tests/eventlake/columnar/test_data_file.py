"""Files that Arrow writes row group by row group."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.columnar.parquet.data_file import ROW_GROUP, write_data_file


def written(*groups: pa.Table) -> pq.ParquetFile:
    out = BytesIO()
    footer = write_data_file(out, groups[0].schema, groups)
    file = pq.ParquetFile(pa.BufferReader(out.getvalue()))
    assert footer.equals(file.metadata)
    return file


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
    rows = pa.table({"number": pa.array(range(ROW_GROUP))})
    groups = written(rows, rows[:1]).metadata
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [ROW_GROUP, 1]


def test_columns_get_a_dictionary_only_if_their_values_repeat() -> None:
    rows = pa.table({"name": ["web", "ios"] * 500, "number": range(1000)})
    group = written(rows).metadata.row_group(0)
    assert [group.column(n).has_dictionary_page for n in range(2)] == [True, False]


class FullDisk(BytesIO):
    def write(self, _: Any) -> int:
        raise OSError(28, "No space left on device")


def test_an_error_of_the_storage_is_raised_unchanged() -> None:
    rows = pa.table({"number": [1]})
    with pytest.raises(OSError, match="No space left") as told:
        write_data_file(FullDisk(), rows.schema, [rows])
    assert told.value.errno == 28


def test_so_is_one_of_where_rows_come_from() -> None:
    rows = pa.table({"number": [1]})

    def groups() -> Iterator[pa.Table]:
        yield rows
        raise ConnectionError("the network is gone")

    with pytest.raises(ConnectionError, match="the network is gone"):
        write_data_file(BytesIO(), rows.schema, groups())

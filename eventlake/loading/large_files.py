"""Large Parquet files of one table, by a writer that looks at what suits each column."""

from functools import cached_property

import pyarrow as pa

from eventlake.loading.data_file import FileEncoding, WrittenFile, write_data_file
from eventlake.loading.typed_columns import TypedColumns


class LargeFiles:
    """Rows of a table in memory, any of which can be written as a file."""

    def __init__(self, columns: TypedColumns, files: int) -> None:
        self._columns, self._files = columns, files

    def data(self, rows: slice) -> memoryview | None:
        return None

    def write(self, out: pa.NativeFile, rows: slice) -> WrittenFile:
        """A file of some of the rows."""
        some = self._rows[rows]
        return write_data_file(out, some.schema, some.to_batches(), self._encoding)

    @cached_property
    def _rows(self) -> pa.Table:
        return self._columns.table()

    @cached_property
    def _encoding(self) -> FileEncoding:
        return FileEncoding.of(self._rows, self._files)

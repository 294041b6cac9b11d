"""The files of a table that are written together, each of some of its rows."""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lake.loading.data_file import FileEncoding, WrittenFile, write_data_file

SMALL = 128 << 10
"""Bytes of a file in memory: up to that, encoding its values well does not pay."""


class TableFiles(Protocol):
    def write(self, out: pa.NativeFile, rows: slice) -> WrittenFile:
        """A file of some of the rows."""


@dataclass(frozen=True, slots=True)
class LargeFiles:
    """Files by a writer that looks at what suits each column."""

    rows: pa.Table
    encoding: FileEncoding

    def write(self, out: pa.NativeFile, rows: slice) -> WrittenFile:
        some = self.rows[rows]
        return write_data_file(out, some.schema, some.to_batches(), self.encoding)


def table_files(rows: pa.Table, files: int) -> TableFiles:
    """What writes these rows, if they go to so many files."""
    if rows.nbytes <= SMALL * files:
        # Compiled code, which only workers need.
        from lake.loading.small_files import SmallFiles
        from lake.staging.kernel.compiled import cache_folder

        # Where it cannot be kept, compiling it takes longer than it spares.
        if cache_folder() is not None:
            return SmallFiles(rows.combine_chunks().to_batches()[0])
    return LargeFiles(rows, FileEncoding.of(rows, files))

"""The files of a table that are written together, each of some of its rows."""

from typing import Protocol

import pyarrow as pa

from eventlake.loading.data_file import WrittenFile
from eventlake.loading.large_files import LargeFiles
from eventlake.loading.typed_columns import TypedColumns


class TableFiles(Protocol):
    def data(self, rows: slice) -> memoryview | None:
        """A file of some of the rows, until the next is asked for; None: it is too large."""

    def write(self, out: pa.NativeFile, rows: slice) -> WrittenFile:
        """Such a file bit by bit, if it is too large to be made in memory."""


def table_files(columns: TypedColumns, files: int) -> TableFiles:
    """What writes these rows, if they go to so many files."""
    # Compiled code, which only workers need.
    from eventlake.loading.kernel_files import KernelFiles
    from eventlake.staging.kernel.compiled import cache_folder

    # Where it cannot be kept, compiling it takes longer than it spares.
    if cache_folder() is None:
        return LargeFiles(columns, files)
    return KernelFiles(columns, files)

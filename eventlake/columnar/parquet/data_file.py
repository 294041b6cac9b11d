"""Data files by Arrow's writer: row group by row group, for what does not fit into memory."""

from collections.abc import Iterable
from contextlib import suppress
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP = 128 * 1024
"""Rows per row group."""

_SAMPLE = 256  # rows by which a column is judged


def write_data_file(
    out: pa.NativeFile, schema: pa.Schema, groups: Iterable[pa.Table]
) -> pq.FileMetaData:
    """Write a file with a row group for each table; the footer as it was written.

    It is the same to every reader: there is no schema of Arrow's own in it.
    """
    groups = iter(groups)
    first = next(groups, schema.empty_table())
    footers: list[pq.FileMetaData] = []
    writer = pq.ParquetWriter(
        out,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=_repeating(first),
        store_schema=False,
        metadata_collector=footers,
    )
    try:
        for group in chain([first] if len(first) else [], groups):
            writer.write_table(group, ROW_GROUP)
    except BaseException:
        with suppress(Exception):  # otherwise it would write a footer later, to a closed file
            writer.close()
        raise
    writer.close()
    return footers[0]


def _repeating(rows: pa.Table) -> list[str]:
    """The columns with few different values; a dictionary of others makes a file a tenth larger."""
    spread = np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(np.int64)
    sample = rows.take(pa.array(spread))
    columns = zip(sample.column_names, sample.columns, strict=True)
    return [name for name, column in columns if 2 * len(column.unique()) <= len(column)]

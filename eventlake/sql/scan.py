"""Partitions of a table as something DuckDB can scan, with the catalog's columns and types."""

import functools
import operator
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.dataset as ds

from eventlake.catalog.base import CatalogPartition, CatalogTable
from eventlake.catalog.hive_types import arrow_type
from eventlake.sql.json_lines import json_rows
from eventlake.sql.listing import partition_files
from eventlake.storage import Storage


def column_types(table: CatalogTable) -> pa.Schema:
    """The columns as the catalog has them, then the partition keys, which are all strings."""
    keys = table.partition_keys
    columns = [(c.name, arrow_type(c.type)) for c in table.columns if c.name not in keys]
    return pa.schema([*columns, *((key, pa.string()) for key in keys)])


def scan(
    storage: Storage, table: CatalogTable, partitions: Sequence[CatalogPartition]
) -> ds.Dataset | pa.Table:
    """What lies in these partitions; columns that older files lack are null.

    The keys come first, because DuckDB counts rows by the first column, and these cost nothing.
    """
    types = column_types(table)
    depth = len(table.partition_keys)
    schema = pa.schema([*list(types)[-depth:], *list(types)[:-depth]])
    listed = partition_files(storage, table, partitions)
    files = [
        (file, dict(zip(table.partition_keys, partition.values, strict=True)))
        for partition, found in zip(partitions, listed, strict=True)
        for file in found
    ]
    if table.format == "json":
        return json_rows(storage, [(file.path, keys) for file, keys in files], schema)
    parquet, fs = ds.ParquetFileFormat(), storage.fs
    fragments = [
        # With what is known of all its rows, a file that cannot match is not even opened.
        parquet.make_fragment(storage.fs_path(file.path), fs, _all_equal(keys), file_size=file.size)
        for file, keys in files
    ]
    return ds.FileSystemDataset(fragments, schema, parquet, fs)


def _all_equal(keys: dict[str, str]) -> ds.Expression:
    return functools.reduce(operator.and_, (ds.field(k) == v for k, v in keys.items()))

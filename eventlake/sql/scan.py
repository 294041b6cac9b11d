"""Partitions of a table as something DuckDB can scan, with the columns and types of the catalog."""

import functools
import operator
import re
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds

from eventlake.catalog.base import Catalog, CatalogPartition, CatalogTable
from eventlake.catalog.sync_records import LIST
from eventlake.rules import paths
from eventlake.rules.errors import StateError
from eventlake.rules.text import plural
from eventlake.rules.types import LakeType
from eventlake.storage import Storage, StoredFile

_MANY = 50
"""With this many partitions below one folder, listing the whole folder is cheaper."""

_WAITS = (0.1, 0.2, 0.4, 0.8, 1.6, *[2.0] * 10)  # seconds, while types are changing


def snapshot(catalog: Catalog, table: CatalogTable) -> tuple[CatalogTable, list[CatalogPartition]]:
    """A consistent snapshot of columns and partitions: types change together with all files."""
    for wait in _WAITS:
        if table.retyped >= 0:
            partitions = catalog.partitions(table.database, table.name)
            now = catalog.table(table.database, table.name) or table
            if now.retyped == table.retyped:
                return table, partitions
        else:
            time.sleep(wait)
            now = catalog.table(table.database, table.name) or table
        table = now
    raise StateError(
        f"Columns of {table.full_name} are changing their types. Try again in a moment; if the "
        "run that changes them has crashed, `datalake recover` completes it."
    )


def partition_files(
    storage: Storage, table: CatalogTable, partitions: Sequence[CatalogPartition]
) -> list[list[StoredFile]]:
    """The data files of each partition; raises if one has none in its location."""
    depth = len(table.partition_keys)
    roots = {p.location: p.location.rsplit("/", depth)[0] for p in partitions}
    crowds = Counter(roots.values())
    folders = {root if crowds[root] >= _MANY else place for place, root in roots.items()}
    files: dict[str, list[StoredFile]] = {place: [] for place in roots}
    with ThreadPoolExecutor(16) as pool:
        for found in pool.map(storage.files, sorted(folders)):
            for file in found:
                owner = _owner(file, table, files)
                if owner is not None:
                    files[owner].append(file)
    for partition in partitions:
        there = files[partition.location]
        if not there:
            raise _vanished(table, partition)
        if len(there) < partition.files:
            raise _deleted(table, partition, there)
    return [files[partition.location] for partition in partitions]


def _listed_files(
    storage: Storage, partitions: Sequence[CatalogPartition]
) -> list[list[StoredFile]]:
    """The files that partitions list by URI. The lake may have moved since: the end counts."""
    lists = storage.read_many([f"{partition.location}/{LIST}" for partition in partitions])
    named = [(data or b"").decode().split("\n")[0] for data in lists]
    folders = [uri[max(uri.rfind(paths.TRACKED), 0) :].rpartition("/")[0] for uri in named]
    found = storage.each(lambda folder: storage.files(folder, recursive=False), folders)
    return [[file for file in files if file.name.endswith(".parquet")] for files in found]


def _owner(
    file: StoredFile, table: CatalogTable, locations: dict[str, list[StoredFile]]
) -> str | None:
    """The location of the partition of a file; reports are one level deeper, in run folders."""
    if not file.name.endswith(f".{table.format}") or file.name.startswith("_"):
        return None
    folder = file.path.rpartition("/")[0]
    while table.format == "json" and folder and folder not in locations:
        folder = folder.rpartition("/")[0]
    return folder if folder in locations else None


def _vanished(table: CatalogTable, partition: CatalogPartition) -> StateError:
    named = "/".join(map("=".join, zip(table.partition_keys, partition.values, strict=True)))
    return StateError(
        f"The catalog has partition {named} of {table.full_name} in {partition.location}, but "
        f"that folder has no .{table.format} file. If a run has just moved it, try again; "
        "otherwise replay its day to rewrite it."
    )


def _deleted(
    table: CatalogTable, partition: CatalogPartition, there: Sequence[StoredFile]
) -> StateError:
    names = {file.name for file in there}
    missing = next((file.name for file in partition.held if file.name not in names), "")
    return StateError(
        f"{partition.location} has {len(there)} of {plural(partition.files, 'file')} that were "
        f"published for {table.full_name}{f' ({missing} is missing)' if missing else ''}. Replay "
        "that time to write them anew; `datalake audit` lists the rows."
    )


_LINES = msgspec.json.Decoder(dict[str, Any])


def json_rows(
    storage: Storage, files: Sequence[tuple[str, dict[str, str]]], schema: pa.Schema
) -> pa.Table:
    """The objects in some files; partition keys of a file override its values."""
    contents = storage.read_many([path for path, _ in files])
    batches = [
        _batch(path, data or b"", known, schema)
        for (path, known), data in zip(files, contents, strict=True)
    ]
    return pa.Table.from_batches(batches, schema)


def _batch(path: str, data: bytes, known: dict[str, str], schema: pa.Schema) -> pa.RecordBatch:
    try:
        rows = [row | known for row in _LINES.decode_lines(data)]
    except msgspec.MsgspecError as error:
        raise StateError(
            f"{path} does not have one JSON object per line ({error}). It was damaged or edited: "
            "`datalake recover` writes it again."
        ) from None
    columns = [_column([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        # Reports of the original product have nanoseconds; ours are cut to what Parquet keeps.
        exact = pa.array(values, pa.string()).cast(pa.timestamp("ns"))
        return exact.cast(pa.timestamp("us"), safe=False).cast(kind)
    if pa.types.is_nested(kind):
        values = [_plain(value, kind) for value in values]
    return pa.array(values, kind)


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value for Arrow: maps as lists of pairs."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return list(value.items())
    return value


def column_types(table: CatalogTable) -> pa.Schema:
    """The columns in the order of the catalog, then the partition keys, which are strings."""
    keys = table.partition_keys
    columns = [(c.name, arrow_type(c.type)) for c in table.columns if c.name not in keys]
    return pa.schema([*columns, *((key, pa.string()) for key in keys)])


def scan(
    storage: Storage, table: CatalogTable, partitions: Sequence[CatalogPartition]
) -> ds.Dataset | pa.Table:
    """The rows of some partitions; columns that older files lack are null.

    The keys come first: DuckDB counts rows by the first column, and keys need no reading.
    """
    types = column_types(table)
    depth = len(table.partition_keys)
    schema = pa.schema([*list(types)[-depth:], *list(types)[:-depth]])
    if table.format == "symlink":
        listed = _listed_files(storage, partitions)
    else:
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
        # With its partition keys, a file that cannot match is not opened.
        parquet.make_fragment(storage.fs_path(file.path), fs, _all_equal(keys), file_size=file.size)
        for file, keys in files
    ]
    return ds.FileSystemDataset(fragments, schema, parquet, fs)


def _all_equal(keys: dict[str, str]) -> ds.Expression:
    return functools.reduce(operator.and_, (ds.field(k) == v for k, v in keys.items()))


def arrow_type(text: str) -> pa.DataType:
    """The Arrow type of a type of the lake or of Hive, also a nested one."""
    kind, _, inner = text.strip().removesuffix(">").partition("<")
    match kind:
        case "array":
            return pa.list_(arrow_type(inner))
        case "map":
            key, value = _split(inner)
            return pa.map_(arrow_type(key), arrow_type(value))
        case "struct":
            fields = (field.partition(":") for field in _split(inner))
            return pa.struct([pa.field(name.strip(), arrow_type(of)) for name, _, of in fields])
    if found := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(found[1]), int(found[2]))
    try:
        return _OTHERS.get(kind.partition("(")[0]) or LakeType(kind).arrow
    except ValueError:
        known = ", ".join(LakeType)
        raise StateError(
            f"The catalog has a column of type {text!r}; known are {known}, Hive's other plain "
            "types, and array, map and struct of these. Give the column one of them."
        ) from None


_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)", re.ASCII)
# The lake uses none of these, but users add their own columns.
_OTHERS = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "binary": pa.binary(),
    "varchar": pa.string(),
    "char": pa.string(),
}


def _split(text: str) -> list[str]:
    """Cut at the commas that are not inside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts

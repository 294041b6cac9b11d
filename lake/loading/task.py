"""One loading task: the staged batches of a table and partition become a Parquet file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lake.counts import CastCounts, add_casts
from lake.dedup.ids import checksum
from lake.loading.typed_rows import typed_rows
from lake.names import MESSAGE_ID, RESCUED_DATA, Naming
from lake.schema import TableSchema
from lake.staging.blob import Blob, from_ipc
from lake.staging.places import places
from lake.staging.table_rows import FILE, ID, LINE, PAYLOAD, RECEIVED, split_key
from lake.storage import Storage
from lake.tracking.records import BatchType, RecordLog

ROW_GROUP = 128 * 1024


@dataclass(frozen=True)
class LoadJob:
    """What all loading tasks of a unit share."""

    storage: Storage
    schemas: dict[str, TableSchema]
    targets: dict[str, str]  # key of the staged rows → path to write, without ending
    locations: dict[str, str]  # the same key → the folder the file is published in
    duplicates: np.ndarray  # places of the rows to drop, sorted
    raw_files: tuple[str, ...]  # by number
    naming: Naming
    log_folder: str
    operation: str
    wished: dict[str, TableSchema] = field(default_factory=dict)  # in other types, by table
    shadows: dict[str, str] = field(default_factory=dict)  # key → path of the file in these types
    dry: bool = False  # only count; files are named, but not written

    def record_log(self) -> RecordLog:
        return RecordLog(self.storage, self.log_folder, self.operation)


class LoadedFile(msgspec.Struct, frozen=True):
    """A written file, as its own footer tells it, and what happened on the way."""

    table: str
    partition: str
    path: str = ""
    rows: int = 0
    size: int = 0
    dropped: int = 0
    checksum: int = 0
    casts: dict[str, CastCounts] = {}
    rescued_cells: int = 0
    has_rescued: bool = False
    type_problems: tuple[str, ...] = ()
    shadow: "LoadedFile | None" = None  # the same rows in the types wished of the table

    @property
    def written(self) -> "tuple[LoadedFile, ...]":
        """The file, and its shadow if it has one."""
        return (self,) if self.shadow is None else (self, self.shadow)

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "LoadedFile":
        return msgspec.msgpack.decode(data, type=cls)


def load(job: LoadJob, key: str, split: int, blobs: Sequence[Blob], log: RecordLog) -> LoadedFile:
    """Write one file; where every row is a duplicate there is none, and its path is empty."""
    table, partition = split_key(key)
    if key not in job.targets:  # a table that would be new, of nothing but duplicates
        return LoadedFile(table, partition, dropped=sum(blob.rows for blob in blobs))
    schema = job.schemas[table]
    kept = [_without_duplicates(from_ipc(blob.data), job.duplicates) for blob in blobs]
    dropped = sum(blob.rows for blob in blobs) - sum(map(len, kept))
    kept = [part for part in kept if len(part)]
    if not kept:
        return LoadedFile(table, partition, dropped=dropped)
    origins = pa.concat_tables(
        part.select([n for n in (RECEIVED, FILE, LINE, ID, PAYLOAD) if n in part.column_names])
        for part in kept
    )
    order = _by_time(origins)
    origins = origins.take(order)
    ids = checksum(origins[ID].combine_chunks())
    empty = LoadedFile(table, partition, dropped=dropped, checksum=ids)
    path = f"{job.targets[key]}-{split}.parquet"
    rows, file = _write(job, path, kept, order, schema, empty)
    if not job.dry:
        log.add(BatchType.LOADED, _records(job, key, path, rows, origins), origin=key)
    if key in job.shadows:
        beside = f"{job.shadows[key]}-{split}.parquet"
        _, shadow = _write(job, beside, kept, order, job.wished[table], empty)
        file = msgspec.structs.replace(file, shadow=shadow)
    return file


def _write(
    job: LoadJob,
    path: str,
    staged: Sequence[pa.Table],
    order: pa.Array,
    schema: TableSchema,
    empty: LoadedFile,
) -> tuple[pa.Table, LoadedFile]:
    """Staged rows as a file of a table with this schema."""
    typed = [typed_rows(part, schema) for part in staged]
    rows = pa.concat_tables((part.rows for part in typed), promote_options="default").take(order)
    file = msgspec.structs.replace(
        empty,
        path=path,
        rows=len(rows),
        casts=reduce(add_casts, (part.casts for part in typed)),
        rescued_cells=sum(part.rescued_cells for part in typed),
        has_rescued=RESCUED_DATA in rows.column_names,
    )
    if job.dry:
        return rows, file
    with job.storage.open_output(path) as out:
        # Without Arrow's own schema in it the file says the same to every reader.
        pq.write_table(rows, out, compression="zstd", row_group_size=ROW_GROUP, store_schema=False)
    with job.storage.open_input(path) as written:
        footer = pq.read_metadata(written)
        told = msgspec.structs.replace(
            file,
            rows=footer.num_rows,
            size=written.size(),
            type_problems=type_problems(footer.schema.to_arrow_schema(), schema),
        )
    return rows, told


def type_problems(footer: pa.Schema, schema: TableSchema, older: bool = False) -> tuple[str, ...]:
    """Where a file's footer says something else than the table's schema.

    An older file lacks the columns that the table got after it, and is right all the same.
    """
    found = {field.name: field.type for field in footer}
    wanted = {c.name: c.type.arrow for c in schema.columns if c.name in found or not older}
    if RESCUED_DATA in found:
        wanted.setdefault(RESCUED_DATA, pa.string())
    return tuple(
        f"{name}: {found.get(name)} in the file, {wanted.get(name)} in the table"
        for name in dict.fromkeys([*wanted, *found])
        if found.get(name) != wanted.get(name)
    )


def _records(job: LoadJob, key: str, path: str, rows: pa.Table, origins: pa.Table) -> pa.Table:
    """What the record log says of the rows of a file."""
    table, partition = split_key(key)
    columns = {
        "identifier": rows[MESSAGE_ID.name(job.naming)],
        "raw_file": pa.array(job.raw_files, pa.string()).take(origins[FILE].combine_chunks()),
        "raw_line": origins[LINE],
        "table_name": pa.repeat(pa.scalar(job.schemas[table].name), len(rows)),
        "partition": pa.repeat(pa.scalar(partition), len(rows)),
        "data_file": pa.repeat(
            pa.scalar(f"{job.locations[key]}/{path.rsplit('/', 1)[-1]}"), len(rows)
        ),
    }
    if PAYLOAD in origins.column_names:
        columns["record_payload"] = origins[PAYLOAD]
    return pa.table(columns)


def _without_duplicates(staged: pa.Table, duplicates: np.ndarray) -> pa.Table:
    at = places(staged[FILE].to_numpy(), staged[LINE].to_numpy())
    drop = np.isin(at, duplicates, assume_unique=True)
    return staged.filter(pa.array(~drop)) if drop.any() else staged


def _by_time(rows: pa.Table) -> pa.Array:
    """The order of rows in a file: as received, then as they lie in the archive."""
    keys = [rows[name].to_numpy() for name in (LINE, FILE, RECEIVED)]
    return pa.array(np.lexsort(keys))

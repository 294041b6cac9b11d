"""A load task: writes staged batches of a table as Parquet files, one per partition."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.columnar.typed import TypedColumns
from eventlake.load.blobs import Blob, parts_of, split_key, table_of
from eventlake.load.record_log import BatchType, RecordLog
from eventlake.rules.counts import CastCounts
from eventlake.rules.names import MESSAGE_ID, RESCUED_DATA, Naming, event_of_table
from eventlake.rules.paths import is_unpublished, published_name, unique_path
from eventlake.rules.types import TableSchema
from eventlake.storage import Storage
from eventlake.storage.local import unique_name

if TYPE_CHECKING:  # compiled code, which only workers need
    from eventlake.columnar.parquet.writer import TableFiles
    from eventlake.load.staged import StagedTable
    from eventlake.load.typed_rows import TypedRows

T = TypeVar("T")
TaskInput = Mapping[str, Any]
"""The part of a job for one task: values by table or by key of staged rows."""


@dataclass(frozen=True)
class LoadJob:
    """What all loading tasks of a unit share."""

    storage: Storage
    schemas: dict[str, TableSchema]
    targets: dict[str, str]  # key of the staged rows → path to write, without extension
    locations: dict[str, str]  # the same key → the folder the file is published in
    duplicates: np.ndarray  # positions of the rows to drop, sorted
    raw_files: tuple[str, ...]  # by number
    naming: Naming
    log_folder: str
    operation: str
    requested: dict[str, TableSchema] = field(default_factory=dict)  # in requested types, by table
    shadows: dict[str, str] = field(default_factory=dict)  # key → path of the file in these types
    dry: bool = False  # only count; files get names, but are not written

    def record_log(self) -> RecordLog:
        return RecordLog(self.storage, self.log_folder, self.operation)

    def dealt_out(self, tables: Sequence[Collection[str]]) -> "tuple[LoadJob, list[TaskInput]]":
        """The shared part of the job, and the input of each task for the tables that it loads.

        Sending every table to every task is expensive.
        """
        tasks: dict[str, list[int]] = {}
        for task, some in enumerate(tables):
            for table in some:
                tasks.setdefault(table, []).append(task)

        def deal(of_all: Mapping[str, T]) -> list[dict[str, T]]:
            dealt: list[dict[str, T]] = [{} for _ in tables]
            for key, value in of_all.items():
                for task in tasks.get(key.partition("\n")[0], ()):  # a key starts with its table
                    dealt[task][key] = value
            return dealt

        by_table = ("schemas", "targets", "locations", "requested", "shadows")
        dealt = zip(*(deal(getattr(self, name)) for name in by_table), strict=True)
        nothing: TaskInput = {name: {} for name in by_table}
        return replace(self, **nothing), [dict(zip(by_table, own, strict=True)) for own in dealt]

    def for_task(self, given: TaskInput) -> "LoadJob":
        """The job of one task, see `dealt_out`."""
        return replace(self, **given)


class LoadedFile(msgspec.Struct, frozen=True):
    """A written file as described by its footer, with the counts of its casts.

    Of files of a table that were written together, the first has the counts of all.
    """

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
    shadow: "LoadedFile | None" = None  # the same rows in the requested types

    @property
    def written(self) -> "tuple[LoadedFile, ...]":
        """The file, and its shadow if it has one."""
        return (self,) if self.shadow is None else (self, self.shadow)


def encode_files(files: list[LoadedFile]) -> bytes:
    return msgspec.msgpack.encode(files)


def decode_files(data: bytes) -> list[LoadedFile]:
    files: list[LoadedFile] = msgspec.msgpack.decode(data, type=list[LoadedFile])
    return files


def load(job: LoadJob, number: int, blobs: Sequence[Blob], log: RecordLog) -> list[LoadedFile]:
    """Write the rows of a table: one file per partition, with this number.

    If all rows of a partition are duplicates, there is no file and the path is empty.
    """
    from eventlake.load.staged import StagedTable
    from eventlake.load.typed_rows import typed_rows

    table = table_of(blobs[0])
    given = Counter[str]()
    for blob in blobs:
        given.update(parts_of(blob))
    event = event_of_table(table, job.naming)
    # A new table of nothing but duplicates is not created.
    staged = StagedTable.of(blobs, job.duplicates) if table in job.schemas else None
    files = {key: LoadedFile(table, split_key(key)[1], dropped=given[key]) for key in given}
    if staged is not None:
        for key, rows in staged.slices.items():
            dropped = given[key] - (rows.stop - rows.start)
            files[key] = msgspec.structs.replace(files[key], dropped=dropped)
        targets = {key: f"{job.targets[key]}-{number}.parquet" for key in staged.slices}
        typed = typed_rows(staged, job.schemas[table], event)
        files |= _write(job, staged, typed, targets, job.schemas[table], files)
        if not job.dry:
            records = _records(job, staged, typed, targets)
            log.add(BatchType.LOADED, records, origin=min(targets.values()))
    requested = StagedTable.of(blobs, job.duplicates, job.shadows) if job.shadows else None
    if requested is not None:
        targets = {key: f"{job.shadows[key]}-{number}.parquet" for key in requested.slices}
        typed = typed_rows(requested, job.requested[table], event)
        shadows = _write(job, requested, typed, targets, job.requested[table], files)
        for key, shadow in shadows.items():
            files[key] = msgspec.structs.replace(files[key], shadow=shadow)
    return list(files.values())


def _write(
    job: LoadJob,
    staged: "StagedTable",
    typed: "TypedRows",
    targets: Mapping[str, str],
    schema: TableSchema,
    files: Mapping[str, LoadedFile],
) -> dict[str, LoadedFile]:
    """A file for each partition of the staged rows, in the types of a table with this schema."""
    counted: dict[str, Any] = {"casts": typed.casts, "rescued_cells": typed.rescued_cells}
    writer = _Writer(job.storage, typed.rows, schema)
    sums = staged.checksums()
    written: dict[str, LoadedFile] = {}
    for key, path in targets.items():
        rows = staged.slices[key]
        file = msgspec.structs.replace(
            files[key],
            path=path,
            rows=rows.stop - rows.start,
            checksum=sums[key],
            has_rescued=writer.has_rescued(rows),
            **counted,
        )
        counted = {}  # of all rows, reported with the first file
        written[key] = file if job.dry else writer.write(rows, file)
    return written


class _Writer:
    """Writes files of a table; Arrow reads the footer of the first one with the same columns."""

    def __init__(self, storage: Storage, rows: TypedColumns, schema: TableSchema) -> None:
        self._storage, self._rows, self._schema = storage, rows, schema
        self._rescued = rows.whole(RESCUED_DATA) if RESCUED_DATA in rows.columns else None
        self._is_new = RESCUED_DATA not in schema.types()
        self._problems: dict[bool, tuple[str, ...]] = {}  # by whether files have `rescued_data`

    def has_rescued(self, rows: slice) -> bool:
        """Whether a file of these rows has `rescued_data`: the first file that needs it adds the
        column to the table."""
        if self._rescued is None or not self._is_new:
            return self._rescued is not None
        some = self._rescued[rows]
        return bool(some.null_count < len(some))

    def write(self, rows: slice, file: LoadedFile) -> LoadedFile:
        files = self._with_rescued if file.has_rescued else self._without_rescued
        path, data = file.path, files.data(rows)
        footer: pq.FileMetaData | None = None
        if data is None:
            with self._storage.open_output(path) as out:
                footer = files.write(out, rows)
                size = out.tell()
        else:
            size = len(data)
            if file.has_rescued not in self._problems:
                footer = pq.read_metadata(pa.BufferReader(data))
            if is_unpublished(path):
                # Spark may run a task twice at the same time: each writes files of its own.
                path = unique_path(path, unique_name())
                self._storage.write_unique(path, data)
            else:
                with self._storage.open_output(path) as out:
                    out.write(data)
        if footer is not None:
            found = type_problems(footer.schema.to_arrow_schema(), self._schema)
            self._problems[file.has_rescued] = found
        return msgspec.structs.replace(
            file,
            path=path,
            rows=file.rows if footer is None else footer.num_rows,
            size=size,
            type_problems=self._problems[file.has_rescued],
        )

    @cached_property
    def _with_rescued(self) -> "TableFiles":
        return _table_files(self._rows)

    @cached_property
    def _without_rescued(self) -> "TableFiles":
        if self._rescued is None:
            return self._with_rescued
        return _table_files(self._rows.without(RESCUED_DATA))


def type_problems(footer: pa.Schema, schema: TableSchema, older: bool = False) -> tuple[str, ...]:
    """Differences between the footer of a file and the schema of the table.

    Older files may lack newer columns.
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


def _records(
    job: LoadJob, staged: "StagedTable", typed: "TypedRows", targets: Mapping[str, str]
) -> pa.Table:
    """The records of the rows of these files, for the record log."""
    keys = list(targets)
    table = split_key(keys[0])[0]
    sizes = [staged.slices[key].stop - staged.slices[key].start for key in keys]
    file = pa.array(np.repeat(np.arange(len(keys)), sizes))
    names = [f"{job.locations[key]}/{published_name(targets[key])}" for key in keys]
    columns = {
        "identifier": typed.rows.whole(MESSAGE_ID.name(job.naming)),
        "raw_file": pa.array(job.raw_files).take(pa.array(staged.files)),
        "raw_line": pa.array(staged.lines),
        "table_name": pa.repeat(pa.scalar(job.schemas[table].name), len(file)),
        "partition": pa.array([split_key(key)[1] for key in keys]).take(file),
        "data_file": pa.array(names).take(file),
    }
    if typed.payloads is not None:
        columns["record_payload"] = typed.payloads
    return pa.table(columns)


def _table_files(columns: TypedColumns) -> "TableFiles":
    from eventlake.columnar.parquet.writer import TableFiles  # compiled: only workers need it

    return TableFiles(columns)

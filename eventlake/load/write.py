"""A load task: writes staged batches of a table as Parquet files, one per partition."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.columnar.parquet.data_file import ROW_GROUP, write_data_file
from eventlake.columnar.typed import TypedColumns
from eventlake.load.blobs import Blob, parts_of, split_key, table_of
from eventlake.load.record_log import BatchType, RecordLog
from eventlake.load.task_memory import USUAL, TaskMemory
from eventlake.rules.counts import CastCounts, added
from eventlake.rules.names import MESSAGE_ID, RESCUED_DATA, Naming, event_of_table
from eventlake.rules.paths import is_unpublished, published_name, unique_path
from eventlake.rules.types import TableSchema
from eventlake.storage import Storage
from eventlake.storage.local import unique_name

if TYPE_CHECKING:  # compiled code, which only workers need
    from eventlake.columnar.parquet.writer import TableFiles
    from eventlake.load.staged import StagedTable
    from eventlake.load.typed_rows import Casting, TypedRows

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
    memory: TaskMemory = USUAL

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
    table = table_of(blobs[0])
    given = Counter[str]()
    for blob in blobs:
        given.update(parts_of(blob))
    files = {key: LoadedFile(table, split_key(key)[1], dropped=given[key]) for key in given}
    if table in job.schemas:  # a new table of nothing but duplicates is not created
        targets = {key: f"{job.targets[key]}-{number}.parquet" for key in given}
        files |= _written(job, job.schemas[table], blobs, targets, given, log)
    if job.shadows:
        targets = {key: f"{path}-{number}.parquet" for key, path in job.shadows.items()}
        shadows = _written(job, job.requested[table], blobs, targets, given, None)
        for key, shadow in shadows.items():
            files[key] = msgspec.structs.replace(files[key], shadow=shadow)
    return list(files.values())


def _written(
    job: LoadJob,
    schema: TableSchema,
    blobs: Sequence[Blob],
    targets: Mapping[str, str],
    given: Mapping[str, int],
    log: RecordLog | None,
) -> dict[str, LoadedFile]:
    """Write the rows of the partitions that have a target, except duplicates."""
    from eventlake.load.staged import StagedTable
    from eventlake.load.typed_rows import Casting

    staged = StagedTable.of(blobs, job.duplicates, targets)
    if staged is None:
        return {}
    event = event_of_table(table_of(blobs[0]), job.naming)
    casting = Casting.of(staged, schema, event, job.memory.typed_bytes)
    writing = _Writing(job, schema, staged, casting, targets, given, None if job.dry else log)
    writing.write(slice(0, len(staged)))
    return writing.files


@dataclass
class _Writing:
    """Writes the files of a table, in parts if the typed rows exceed the limit of memory."""

    job: LoadJob
    schema: TableSchema
    staged: "StagedTable"
    casting: "Casting"
    targets: Mapping[str, str]
    given: Mapping[str, int]
    log: RecordLog | None
    files: dict[str, LoadedFile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sums = self.staged.checksums()
        self._logged = 0  # rows

    def write(self, rows: slice) -> None:
        """Write the files of a range of whole partitions."""
        typed = self.casting.typed(rows)
        if typed is not None:
            self._write_together(rows, typed)
        elif (middle := self.staged.middle_of(rows)) is not None:
            self.write(slice(rows.start, middle))
            self.write(slice(middle, rows.stop))
        else:
            [key] = self.staged.keys_in(rows)
            self._write_in_parts(key)

    def _write_together(self, rows: slice, typed: "TypedRows") -> None:
        counted: dict[str, Any] = {"casts": typed.casts, "rescued_cells": typed.rescued_cells}
        writer = _Writer(self.job, typed.rows, self.schema)
        for key in self.staged.keys_in(rows):
            own = self.staged.slices[key]
            some = slice(own.start - rows.start, own.stop - rows.start)
            file = self._file(key, has_rescued=writer.has_rescued(some), **counted)
            counted = {}  # of all rows, reported with the first file
            self.files[key] = file if self.job.dry else writer.write(some, file)
        self._log(rows, typed)

    def _write_in_parts(self, key: str) -> None:
        """Write the file of one partition, with row groups for each part."""
        has_rescued = RESCUED_DATA in self.schema.types()
        try:
            self.files[key] = self._in_parts(key, has_rescued)
        except _NeedsRescuedData:
            self.files[key] = self._in_parts(key, has_rescued=True)

    def _in_parts(self, key: str, has_rescued: bool) -> LoadedFile:
        casts: dict[str, CastCounts] = {}
        rescued = 0

        def tables() -> Iterator[pa.Table]:
            nonlocal casts, rescued
            for rows, typed in self.casting.parts(self.staged.slices[key]):
                casts, rescued = added(casts, typed.casts), rescued + typed.rescued_cells
                columns = typed.rows
                if has_rescued and RESCUED_DATA not in columns.columns:
                    nothing = pa.nulls(columns.length, pa.string())
                    columns = columns.with_column(RESCUED_DATA, nothing)
                elif not has_rescued and RESCUED_DATA in columns.columns:
                    raise _NeedsRescuedData
                self._log(rows, typed)
                yield from columns.tables(ROW_GROUP, self.job.memory.typed_bytes)
                del typed, columns  # before the next part is cast
                pa.default_memory_pool().release_unused()

        found = tables()
        first = next(found)
        footer, size = None, 0
        if self.job.dry:
            for _ in found:
                pass
        else:
            with self.job.storage.open_output(self.targets[key]) as out:
                footer = write_data_file(out, first.schema, chain([first], found))
                size = out.tell()
        file = self._file(key, has_rescued=has_rescued, casts=casts, rescued_cells=rescued)
        if footer is None:
            return file
        problems = type_problems(footer.schema.to_arrow_schema(), self.schema)
        return msgspec.structs.replace(
            file, rows=footer.num_rows, size=size, type_problems=problems
        )

    def _file(self, key: str, **facts: Any) -> LoadedFile:
        own = self.staged.slices[key]
        rows = own.stop - own.start
        return LoadedFile(
            *split_key(key),
            path=self.targets[key],
            rows=rows,
            dropped=self.given[key] - rows,
            checksum=self._sums[key],
            **facts,
        )

    def _log(self, rows: slice, typed: "TypedRows") -> None:
        """Log these rows as loaded, unless they were cast before."""
        if self.log is not None and rows.start >= self._logged:
            self._logged = rows.stop
            records = _records(self.job, self.staged, rows, typed, self.targets)
            self.log.add(BatchType.LOADED, records, origin=min(self.targets.values()))


class _NeedsRescuedData(Exception):
    """A part has values for `rescued_data`, which the file does not have."""


class _Writer:
    """Writes files of a table; Arrow reads the footer of the first one with the same columns."""

    def __init__(self, job: LoadJob, rows: TypedColumns, schema: TableSchema) -> None:
        self._storage, self._rows, self._schema = job.storage, rows, schema
        self._memory = job.memory.typed_bytes
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
        return _table_files(self._rows, self._memory)

    @cached_property
    def _without_rescued(self) -> "TableFiles":
        if self._rescued is None:
            return self._with_rescued
        return _table_files(self._rows.without(RESCUED_DATA), self._memory)


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
    job: LoadJob,
    staged: "StagedTable",
    rows: slice,
    typed: "TypedRows",
    targets: Mapping[str, str],
) -> pa.Table:
    """The records of some rows, for the record log."""
    keys = list(staged.slices)
    table = split_key(keys[0])[0]
    ends = [own.stop for own in staged.slices.values()]
    file = pa.array(np.searchsorted(ends, np.arange(rows.start, rows.stop), side="right"))
    names = [f"{job.locations[key]}/{published_name(targets[key])}" for key in keys]
    columns = {
        "identifier": _copied(typed.rows.whole(MESSAGE_ID.name(job.naming))),
        "raw_file": pa.array(job.raw_files).take(pa.array(staged.files[rows])),
        "raw_line": pa.array(staged.lines[rows]),
        "table_name": pa.repeat(pa.scalar(job.schemas[table].name), len(file)),
        "partition": pa.array([split_key(key)[1] for key in keys]).take(file),
        "data_file": pa.array(names).take(file),
    }
    if typed.payloads is not None:
        columns["record_payload"] = _copied(typed.payloads)
    return pa.table(columns)


def _copied(column: pa.Array) -> pa.Array:
    """A column without the memory that it shares with all others."""
    return pa.concat_arrays([column, column[:0]])


def _table_files(columns: TypedColumns, memory: int) -> "TableFiles":
    from eventlake.columnar.parquet.writer import TableFiles  # compiled: only workers need it

    return TableFiles(columns, memory)

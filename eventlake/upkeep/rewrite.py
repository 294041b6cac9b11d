"""Rewrites a partition into few files with the current columns of its table."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.catalog.base import HeldFile
from eventlake.columnar.id_hashes import checksum, hash_id
from eventlake.columnar.parquet.data_file import ROW_GROUP, write_data_file
from eventlake.load.write import type_problems
from eventlake.rules.errors import CheckFailed, LakeError
from eventlake.rules.names import MESSAGE_ID, RECEIVED_AT
from eventlake.rules.types import TableSchema
from eventlake.settings.models import Source
from eventlake.state.manifest import NewFile, PartitionChange
from eventlake.storage import Storage, StoredFile
from eventlake.upkeep.candidates import MOST_FILES, Candidate, file_count

MOST_BYTES = 128 << 20
"""Uncompressed bytes of row groups that are read at the same time; in memory they take about four
times as much."""

_LEAST = 1024
"""Minimum of rows per read of a file."""
_UNKNOWN = -(2**63)


@dataclass
class _Rows:
    """A reader of a file: its next rows, and their timestamps."""

    batches: Iterator[pa.RecordBatch]
    schema: pa.Schema
    received_column: str
    rows: pa.Table = field(init=False)
    received: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.advance()

    def advance(self) -> None:
        """Read the next rows; empty at the end of the file."""
        batch = next((batch for batch in self.batches if len(batch)), None)
        self.rows = self.schema.empty_table() if batch is None else filled(batch, self.schema)
        received = self.rows[self.received_column].cast(pa.int64())
        self.received = received.combine_chunks().to_numpy()

    def take(self, count: int) -> tuple[pa.Table, np.ndarray]:
        """Take the first rows."""
        taken = self.rows[:count], self.received[:count]
        if count == len(self.rows):
            self.advance()
        else:
            self.rows, self.received = self.rows[count:], self.received[count:]
        return taken


def filled(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """The same rows with all columns of a table; newer columns are null."""
    known = set(batch.schema.names)
    columns = [
        batch[field.name] if field.name in known else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class _Input:
    """A file that is not open yet: its earliest time, and the memory needed to read it."""

    file: pq.ParquetFile
    first: int
    bytes: int

    @classmethod
    def of(cls, file: pq.ParquetFile, received_column: str) -> "_Input":
        groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
        column = file.schema_arrow.get_field_index(received_column)
        statistics = [group.column(column).statistics for group in groups]
        known = all(one is not None and one.has_min_max for one in statistics)
        first = min((one.min_raw for one in statistics), default=0) if known else _UNKNOWN
        return cls(file, first, max((group.total_byte_size for group in groups), default=0))


def merged(
    files: Sequence[pq.ParquetFile], schema: pa.Schema, received_column: str
) -> Iterator[pa.Table]:
    """Merge the rows of sorted files by time; equal times in the order of the files.

    A file is opened when its first row is due. If too many files overlap for the memory, some wait,
    and their rows are out of order.
    """
    size = max(_LEAST, ROW_GROUP // max(1, len(files)))
    waiting = [_Input.of(file, received_column) for file in files]
    waiting.sort(key=lambda file: file.first)
    active: list[tuple[_Rows, int]] = []
    while waiting or active:
        while waiting and _has_to_begin(waiting[0], active):
            new = waiting.pop(0)
            rows = _Rows(new.file.iter_batches(size), schema, received_column)
            if len(rows.rows):
                active.append((rows, new.bytes))
        if active:
            yield _earliest([rows for rows, _ in active])
        active = [(rows, size) for rows, size in active if len(rows.rows)]


def _has_to_begin(file: _Input, active: Sequence[tuple[_Rows, int]]) -> bool:
    """Whether it may have rows before the next ones to take, and there is memory for it."""
    if not active:
        return True
    bound = min(rows.received[-1] for rows, _ in active)
    return file.first <= bound and file.bytes + sum(size for _, size in active) <= MOST_BYTES


def _earliest(files: Sequence[_Rows]) -> pa.Table:
    """The rows up to the time up to which all files are in memory."""
    first = min(files, key=lambda file: file.received[-1])
    bound = first.received[-1]
    parts = [
        file.take(
            len(file.rows)
            if file is first
            else int(np.searchsorted(file.received, bound, side="right"))
        )
        for file in files
    ]
    order = np.argsort(np.concatenate([received for _, received in parts]), kind="stable")
    return pa.concat_tables([rows for rows, _ in parts]).take(pa.array(order))


def in_groups(tables: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """The same rows in tables of equal size, except the last."""
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += len(table)
        while count >= size:
            rows = pa.concat_tables(waiting)
            yield rows[:size]
            waiting, count = [rows[size:]], count - size
    if count:
        yield pa.concat_tables(waiting)


@dataclass(frozen=True, slots=True)
class Proof:
    """The number of rows, checksums of ids and times, and null counts by column."""

    rows: int
    ids: int
    received: int
    nulls: dict[str, int]

    def require_same(self, after: "Proof", what: str) -> None:
        """Raise if the written files do not contain what was read."""
        if self == after:
            return
        columns = [name for name, count in self.nulls.items() if after.nulls.get(name) != count]
        raise CheckFailed(
            f"Compaction of {what} wrote something else than it read ({self.rows} rows, then "
            f"{after.rows}; same ids: {self.ids == after.ids}; other columns: "
            f"{', '.join(columns) or 'none'}). Nothing of it was published and the partition is "
            "as it was. Please report this with the run's log."
        )


def prove(
    storage: Storage, source: Source, schema: TableSchema, files: Sequence[StoredFile]
) -> Proof:
    """Read the footers and the two columns that identify the rows."""
    id_column, received_column = (c.name(source.naming) for c in (MESSAGE_ID, RECEIVED_AT))
    rows = ids = received = 0
    nulls = dict.fromkeys(schema.types(), 0)
    for file in files:
        with storage.open_input(file.path) as stream, pq.ParquetFile(stream) as parquet:
            footer = parquet.metadata
            for batch in parquet.iter_batches(ROW_GROUP, columns=[id_column, received_column]):
                ids = (ids + _checksum(batch[id_column])) % 2**64
                times = batch[received_column].cast(pa.int64()).to_numpy().view(np.uint64)
                received = (received + int(np.sum(times, dtype=np.uint64))) % 2**64
        rows += footer.num_rows
        for name, count in _nulls(footer).items():
            nulls[name] = nulls.get(name, 0) + count
        for name in schema.types().keys() - {*footer.schema.to_arrow_schema().names}:
            nulls[name] += footer.num_rows  # a newer column
    return Proof(rows, ids, received, nulls)


def _checksum(ids: pa.Array) -> int:
    return checksum(pa.array([hash_id(text) for text in ids.to_pylist()], pa.binary(16)))


def _nulls(footer: pq.FileMetaData) -> dict[str, int]:
    """Null counts by column, from the statistics of a file."""
    found: dict[str, int] = {}
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            column = footer.row_group(group).column(number)
            statistics = column.statistics
            if statistics is not None and statistics.has_null_count:
                name = column.path_in_schema
                found[name] = found.get(name, 0) + statistics.null_count
    return found


class NotAsPublished(LakeError):
    """The folder of a partition does not match the catalog; it is not compacted."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A rewritten partition that is not published yet."""

    candidate: Candidate
    location: str
    files: tuple[NewFile, ...]
    kept: tuple[StoredFile, ...]  # files that were copied unchanged

    def change(self) -> PartitionChange:
        """The change for the manifest."""
        before = self.candidate.partition
        return PartitionChange(
            table=self.candidate.schema.key,
            values=before.values,
            location=self.location,
            added=self.files,
            rows=before.rows,
            bytes=sum(file.bytes for file in self.files) + sum(file.size for file in self.kept),
            files=len(self.files) + len(self.kept),
            rows_before=before.rows,
            left=before.location,
            kept=tuple(HeldFile(file.name, file.size) for file in self.kept),
        )


def rewrite(
    storage: Storage, source: Source, candidate: Candidate, location: str, stem: str
) -> Rewritten:
    """Rewrite a partition into a folder; file names begin with `stem`."""
    files = _published(storage, candidate)
    # Small originals first; names show the order.
    small = sorted(sorted(files, key=lambda file: file.size)[:MOST_FILES], key=lambda f: f.path)
    kept = tuple(file for file in files if file not in small)
    before = prove(storage, source, candidate.schema, small)
    written = tuple(_written(storage, source, candidate, small, before, f"{location}/{stem}"))
    after = prove(storage, source, candidate.schema, _stored(written))
    before.require_same(after, f"{candidate.schema.key} {'/'.join(candidate.partition.values)}")
    storage.copy_all([(file.path, f"{location}/{file.name}") for file in kept])
    return Rewritten(candidate, location, written, kept)


def _published(storage: Storage, candidate: Candidate) -> list[StoredFile]:
    partition = candidate.partition
    files = storage.files(partition.location, recursive=False)
    there = len(files), sum(file.size for file in files)
    if there != (partition.files, partition.bytes):
        raise NotAsPublished(
            f"{storage.full(partition.location)} holds {there[0]} files, {there[1]:,} bytes; by "
            f"the catalog it is {partition.files} files, {partition.bytes:,} bytes. It is left as "
            "it is: take out what does not belong there, or replay its day."
        )
    return files


def _written(
    storage: Storage,
    source: Source,
    candidate: Candidate,
    files: Sequence[StoredFile],
    before: Proof,
    stem: str,
) -> Iterator[NewFile]:
    schema = candidate.schema.arrow
    size = _rows_of_a_file(before.rows, file_count(sum(file.size for file in files)))
    with _opened(storage, candidate, files) as inputs:
        received = RECEIVED_AT.name(source.naming)
        groups = in_groups(merged(inputs, schema, received), min(ROW_GROUP, size))
        for number in range(-(-before.rows // size)):
            path = f"{stem}-{number}.parquet"
            rows = _write(storage, path, schema, groups, size)
            with storage.open_input(path) as back:
                yield NewFile(path, path, rows, back.size())


def _rows_of_a_file(rows: int, files: int) -> int:
    """Write files of equal size, of whole row groups."""
    size = max(1, -(-rows // files))
    return size if size <= ROW_GROUP else -(-size // ROW_GROUP) * ROW_GROUP


def _write(
    storage: Storage, path: str, schema: pa.Schema, groups: Iterator[pa.Table], most: int
) -> int:
    """Take groups of rows until a file has enough."""
    rows = 0

    def enough() -> Iterator[pa.Table]:
        nonlocal rows
        for group in groups:
            yield group
            rows += len(group)
            if rows >= most:
                break

    with storage.open_output(path) as out:
        write_data_file(out, schema, enough())
    return rows


@contextmanager
def _opened(
    storage: Storage, candidate: Candidate, files: Sequence[StoredFile]
) -> Iterator[list[pq.ParquetFile]]:
    with ExitStack() as stack:
        inputs = []
        for file in files:
            stream = stack.enter_context(storage.open_input(file.path))
            inputs.append(stack.enter_context(pq.ParquetFile(stream)))
            footer = inputs[-1].schema_arrow
            if problems := type_problems(footer, candidate.schema, older=True):
                raise NotAsPublished(
                    f"{storage.full(file.path)} does not go with its table: {problems[0]}. Its "
                    "partition is left as it is; replay its day."
                )
        yield inputs


def _stored(files: Sequence[NewFile]) -> list[StoredFile]:
    return [StoredFile(file.path, file.bytes, "") for file in files]

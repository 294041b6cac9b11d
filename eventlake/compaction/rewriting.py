"""One partition written anew: as few files as sensible, in the table's columns of today."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.columnar.parquet.data_file import ROW_GROUP, FileEncoding, write_data_file
from eventlake.compaction.candidates import MOST_FILES, Candidate, file_count
from eventlake.compaction.merging import in_groups, merged
from eventlake.compaction.proof import Proof, prove
from eventlake.load.write import type_problems
from eventlake.rules.errors import LakeError
from eventlake.rules.names import RECEIVED_AT
from eventlake.settings.models.models import Source
from eventlake.state.manifest import NewFile, PartitionChange
from eventlake.storage import Storage, StoredFile


class NotAsPublished(LakeError):
    """A partition's folder holds something else than the catalog says: it is left alone."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A partition in its new folder, where nobody looks yet."""

    candidate: Candidate
    location: str
    files: tuple[NewFile, ...]
    kept: tuple[StoredFile, ...]  # files that went there as they are

    def change(self) -> PartitionChange:
        """What a manifest says of it."""
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
        )


def rewrite(
    storage: Storage, source: Source, candidate: Candidate, location: str, stem: str
) -> Rewritten:
    """Write a partition anew into a folder, into files whose names begin with a stem."""
    files = _published(storage, candidate)
    # Those that were small from the beginning first; names tell which came before which.
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
    """Files of one size, of whole row groups."""
    size = max(1, -(-rows // files))
    return size if size <= ROW_GROUP else -(-size // ROW_GROUP) * ROW_GROUP


def _write(
    storage: Storage, path: str, schema: pa.Schema, groups: Iterator[pa.Table], most: int
) -> int:
    """Take groups of rows until a file has enough."""
    rows = 0

    def batches(first: pa.Table) -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for group in chain([first], groups):
            yield from group.to_batches()
            rows += len(group)
            if rows >= most:
                break

    first = next(groups, schema.empty_table())
    with storage.open_output(path) as out:
        write_data_file(out, schema, batches(first), FileEncoding.of(first))
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

"""Blobs, the unit of exchange between tasks: a small key and opaque bytes.

A blob has the rows of one partition of a table, or of several partitions in sequence. In that case
the key has the number of rows of each.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from zlib import crc32

import pyarrow as pa


class BlobKind(StrEnum):
    """The content of a blob; it determines which step reads it."""

    ROWS = "rows"  # the rows of one table and partition
    IDS = "ids"  # message ids of one hash bucket
    LINES = "lines"  # raw lines, for the record log
    SEEN = "seen"  # the findings of a task: counts, columns, files


class Blob(NamedTuple):
    """One row of the data flow. Spark moves a few thousand of these and never the events."""

    kind: str
    key: str
    task: int
    rows: int
    data: bytes


# Blobs are copied several times, and JSON of one table compresses to a third. One call for all
# buffers costs less than Arrow's own compression of each, which uses threads.
_PACKING = pa.Codec("lz4_raw")
_SIZE = struct.Struct("<q")
_PLAIN = pa.ipc.IpcWriteOptions(use_threads=False)


def to_ipc(table: pa.Table | pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_PLAIN) as writer:
        writer.write(table)
    return packed(sink.getvalue())


def from_ipc(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(unpacked(data)).read_all()


def packed(plain: pa.Buffer, packing: pa.Codec = _PACKING) -> bytes:
    data: bytes = packing.compress(plain, asbytes=True)
    return _SIZE.pack(plain.size) + data


def unpacked(data: bytes | memoryview, packing: pa.Codec = _PACKING) -> pa.Buffer:
    (size,) = _SIZE.unpack_from(data)
    return packing.decompress(memoryview(data)[_SIZE.size :], decompressed_size=size)


_ROWS = "\t"  # before the number; no name of a table or partition contains it, or a line break


def rows_key(table: str, partition: str) -> str:
    return f"{table}\n{partition}"


def split_key(key: str) -> tuple[str, str]:
    table, partition = key.split("\n")
    return table, partition


def joint_key(table: str, rows: Mapping[str, int]) -> str:
    """The key of a blob: the number of rows of each partition, in order."""
    return "\n".join([table, *(f"{name}{_ROWS}{count}" for name, count in rows.items())])


def table_of(blob: Blob) -> str:
    return blob.key.partition("\n")[0]


def parts_of(blob: Blob) -> dict[str, int]:
    """The partitions of a blob and their numbers of rows, in order."""
    table, *partitions = blob.key.split("\n")
    if _ROWS not in partitions[0]:
        return {blob.key: blob.rows}
    counts = (partition.split(_ROWS) for partition in partitions)
    return {rows_key(table, partition): int(rows) for partition, rows in counts}


def divided(blob: Blob) -> list[Blob]:
    """The same rows, with a blob for each partition."""
    parts = parts_of(blob)
    if len(parts) == 1:
        return [blob]
    from eventlake.load.staged import StagedBatch  # compiled code, which only workers need

    bodies = zip(parts.items(), StagedBatch(blob).divided(), strict=True)
    return [blob._replace(key=key, rows=rows, data=data) for (key, rows), data in bodies]


LARGEST = 64 << 20  # of staged rows cast at once by a task, unless a single partition has more
SMALLEST = 4 << 20
TASKS_PER_SLOT = 4


@dataclass(frozen=True, slots=True)
class Shares:
    """A share has all rows of a small table, because casting and writing have fixed costs. Large
    tables are split by partition, and partitions of several files by the task that staged them."""

    splits: Mapping[str, int] = field(default_factory=dict)  # key of staged rows → files, if many
    groups: Mapping[str, int] = field(default_factory=dict)  # table → groups, if many

    def divides(self, blob: Blob) -> bool:
        """Whether the partitions of a blob may be in different shares."""
        if not self.groups and not self.splits:
            return False
        parts = parts_of(blob)
        if len(parts) == 1:
            return False
        return table_of(blob) in self.groups or not self.splits.keys().isdisjoint(parts)

    def of(self, blob: Blob) -> str:
        """The share of a blob; starts with the number of its file and a line break."""
        if files := self.splits.get(blob.key):
            return f"{blob.task % files}\n{blob.key}"
        table = table_of(blob)
        return f"0\n{table}\n{crc32(blob.key.encode()) % self.groups.get(table, 1)}"


def file_number(share: str) -> int:
    return int(share.split("\n", 1)[0])


def deal_out(staged: Mapping[str, int], splits: Mapping[str, int], slots: int) -> Shares:
    """Shares of staged rows (bytes by key) that keep all slots busy to the end."""
    tables: dict[str, int] = {}
    for key, size in staged.items():
        if key not in splits:
            table, _ = split_key(key)
            tables[table] = tables.get(table, 0) + size
    fair = sum(tables.values()) // (slots * TASKS_PER_SLOT)
    share = min(max(fair, SMALLEST), LARGEST)
    groups = {table: -(-size // share) for table, size in tables.items() if size > share}
    return Shares(splits, groups)

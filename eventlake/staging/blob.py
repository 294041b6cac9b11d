"""The unit that travels between tasks: a small key and a batch of bytes nobody looks into."""

import struct
from collections.abc import Callable, Hashable, Iterable
from enum import StrEnum
from typing import NamedTuple, TypeVar

import pyarrow as pa

G = TypeVar("G", bound=Hashable)


class BlobKind(StrEnum):
    """What a blob holds, and so which step reads it."""

    ROWS = "rows"  # the rows of one table and partition
    IDS = "ids"  # message ids of one hash bucket
    SEEN = "seen"  # what a task saw: counts, columns, files


class Blob(NamedTuple):
    """One row of the data flow. Spark moves a few thousand of these and never the events."""

    kind: str
    key: str
    task: int
    rows: int
    data: bytes


def grouped(
    blobs: Iterable[Blob], kind: BlobKind, group: Callable[[Blob], G]
) -> dict[G, list[Blob]]:
    """The blobs of one kind, by group."""
    groups: dict[G, list[Blob]] = {}
    for blob in blobs:
        if blob.kind == kind:
            groups.setdefault(group(blob), []).append(blob)
    return groups


BLOB_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("key", pa.string()),
        ("task", pa.int32()),
        ("rows", pa.int64()),
        ("data", pa.large_binary()),
    ]
)


# Blobs are copied many times on their way, and JSON of one table is alike: a third is left. One
# stroke over all buffers costs less than Arrow's own compression of each, which takes threads.
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


def packed_message(head: bytes, message: pa.Buffer) -> bytes:
    """The message of a batch (`RecordBatch.serialize`), with what is to be known of it before."""
    return _SIZE.pack(len(head)) + head + packed(message)


def unpacked_message(data: bytes) -> tuple[bytes, pa.Buffer]:
    (size,) = _SIZE.unpack_from(data)
    begin = _SIZE.size + size
    return data[_SIZE.size : begin], unpacked(memoryview(data)[begin:])


def packed(plain: pa.Buffer) -> bytes:
    data: bytes = _PACKING.compress(plain, asbytes=True)
    return _SIZE.pack(plain.size) + data


def unpacked(data: bytes | memoryview) -> pa.Buffer:
    (size,) = _SIZE.unpack_from(data)
    return _PACKING.decompress(memoryview(data)[_SIZE.size :], decompressed_size=size)

"""The unit that travels between tasks: a small key and a batch of bytes nobody looks into."""

from enum import StrEnum
from typing import NamedTuple

import pyarrow as pa


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


BLOB_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("key", pa.string()),
        ("task", pa.int32()),
        ("rows", pa.int64()),
        ("data", pa.large_binary()),
    ]
)


# Blobs are copied many times on their way, and JSON of one table is alike: a third is left.
_PACKED = pa.ipc.IpcWriteOptions(compression="lz4")


def to_ipc(table: pa.Table | pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_PACKED) as writer:
        writer.write(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_ipc(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()

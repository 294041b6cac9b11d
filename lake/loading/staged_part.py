"""Staged rows of one table from one blob, as they lie in memory."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from lake.dedup.ids import ID_BYTES
from lake.staging.blob import Blob, unpacked_message, unpacked_schema
from lake.staging.messages import buffers_of
from lake.staging.rows_blob import (
    FILE,
    ID,
    LINE,
    RARE,
    RECEIVED,
    StagedField,
    parts_of,
    staged_fields,
)

_NUMBERS = {FILE: np.int32, LINE: np.int32, RECEIVED: np.int64}


@dataclass(frozen=True, slots=True)
class StagedHead:
    """What a part says of its columns, and which of its buffers are theirs, from one on."""

    schema: pa.Schema
    fields: list[StagedField]
    buffers: dict[str, int]
    lists: list[str]  # of rare values


@lru_cache(1024)
def _head(packed: bytes) -> StagedHead:
    schema = unpacked_schema(packed)
    buffers: dict[str, int] = {}
    count = 0
    for field in schema:
        buffers[field.name] = count
        count += _buffers(field.type)
    lists = [name for name in schema.names if name.startswith(RARE)]
    return StagedHead(schema, staged_fields(schema), buffers, lists)


def _buffers(type: pa.DataType) -> int:
    """How many buffers a column has."""
    if pa.types.is_list(type):
        return 2 + _buffers(type.value_type)
    if pa.types.is_struct(type):
        return 1 + sum(_buffers(field.type) for field in type)
    return 3 if pa.types.is_string(type) else 2


class StagedPart:
    """Rows of a blob. Arrow is asked for a batch of them only where it has to be."""

    def __init__(self, blob: Blob) -> None:
        head, self._message = unpacked_message(blob.data)
        self.head = _head(head)
        self.partitions = parts_of(blob)
        self.buffers = buffers_of(self._message)
        self._rows = blob.rows

    def __len__(self) -> int:
        return self._rows

    def numbers(self, name: str) -> np.ndarray:
        """File, line or time of receipt of each row."""
        return self._values(name, np.dtype(_NUMBERS[name]))

    def ids(self) -> np.ndarray:
        """The hashes of the rows' ids, as bytes."""
        return self._values(ID, np.dtype((np.void, ID_BYTES)))

    def _values(self, name: str, kind: np.dtype) -> np.ndarray:
        at = self.buffers.item(self.head.buffers[name] + 1, 0) - self._message.address
        return np.frombuffer(self._message, kind, self._rows, at)

    @cached_property
    def batch(self) -> pa.RecordBatch:
        return pa.ipc.read_record_batch(self._message, self.head.schema)

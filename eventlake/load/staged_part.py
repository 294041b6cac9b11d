"""A staged part: rows of one table that were staged together, with columns read on demand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from eventlake.columnar.id_hashes import ID_BYTES
from eventlake.columnar.kinds import ARROW_TYPES, Encoding
from eventlake.columnar.messages import buffers_of
from eventlake.load.blobs import (
    FILE,
    ID,
    LINE,
    ORIGINS,
    PAYLOAD,
    RECEIVED,
    RESCUED,
    Blob,
    StagedHead,
    parts_of,
    unpacked_message,
)

_TEXTS = frozenset(e for e, type in ARROW_TYPES.items() if pa.types.is_string(type))
_NUMBERS = {FILE: np.int32, LINE: np.int32, RECEIVED: np.int64}


@dataclass(frozen=True)
class PartColumns:
    """What a part says of its columns, and which of its buffers are theirs, from one on."""

    head: StagedHead
    buffers: dict[str, int]

    @cached_property
    def schema(self) -> pa.Schema:
        return self.head.schema()


@lru_cache(1024)  # the parts of a table mostly say the same
def _columns(head: bytes) -> PartColumns:
    decoded = StagedHead.decode(head)
    buffers: dict[str, int] = {}
    count = 0
    for name in ORIGINS.names:
        buffers[name] = count
        count += 2
    if decoded.payloads:
        buffers[PAYLOAD] = count
        count += 3
    if decoded.rescued:
        buffers[RESCUED] = count
        count += 5  # of lists two, and three of the texts in them
    for field in decoded.fields:
        buffers[field.pointer] = count
        count += 3 if field.encoding in _TEXTS else 2
    return PartColumns(decoded, buffers)


class StagedPart:
    """Rows of a blob. Arrow is asked for a batch of them only where it has to be."""

    def __init__(self, blob: Blob) -> None:
        head, self._message = unpacked_message(blob.data)
        self.columns = _columns(head)
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
        at = self.buffers.item(self.columns.buffers[name] + 1, 0) - self._message.address
        return np.frombuffer(self._message, kind, self._rows, at)

    @cached_property
    def batch(self) -> pa.RecordBatch:
        return pa.ipc.read_record_batch(self._message, self.columns.schema)


def gathered(
    parts: Sequence[StagedPart], columns: Mapping[str, Encoding], order: np.ndarray
) -> dict[str, pa.Array]:
    """Those of the columns in which a row has a value; rows are counted over all parts."""
    # Compiled code, which only workers need.
    from eventlake.columnar.compiled import cache_folder
    from eventlake.load.gather import gathered_by_kernel

    # Where it cannot be kept, compiling it takes longer than it spares.
    if cache_folder() is None:
        return gathered_by_arrow(parts, columns, order)
    return gathered_by_kernel(parts, columns, order)


def gathered_by_arrow(
    parts: Sequence[StagedPart], columns: Mapping[str, Encoding], order: np.ndarray
) -> dict[str, pa.Array]:
    found: dict[str, pa.Array] = {}
    for name, encoding in columns.items():
        type = ARROW_TYPES[encoding]
        every = pa.concat_arrays(
            part.batch[name] if name in part.columns.buffers else pa.nulls(len(part), type)
            for part in parts
        )
        taken = every.take(pa.array(order))
        if taken.null_count < len(taken):
            found[name] = taken
    return found

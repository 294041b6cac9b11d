"""Columns of several parts as one, in the order in which rows are written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from eventlake.columnar.gather import AS_BIT, AS_TEXT, AS_WORD, TEXTS, VALID, VALUES, gather
from eventlake.columnar.id_hashes import ID_BYTES
from eventlake.columnar.kinds import ARROW_TYPES, Encoding
from eventlake.columnar.layout import aligned
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


_WAYS = {
    Encoding.TEXT: AS_TEXT,
    Encoding.NUMBER: AS_TEXT,
    Encoding.JSON: AS_TEXT,
    Encoding.INT: AS_WORD,
    Encoding.MILLIS: AS_WORD,
    Encoding.BOOL: AS_BIT,
}
_SPARE = 8  # bytes that the kernel may write after bits
_MOST = 2**31 - 1


def gathered_by_kernel(
    parts: Sequence[StagedPart], columns: Mapping[str, Encoding], order: np.ndarray
) -> dict[str, pa.Array]:
    names, ways = list(columns), np.array([_WAYS[e] for e in columns.values()], np.int64)
    is_text = ways == AS_TEXT
    sources, texts = _sources(parts, names)
    texts[~is_text] = 0
    if np.max(texts, initial=0) > _MOST:
        raise OverflowError(
            f"{names[int(np.argmax(texts))]} has more than 2 GB of text in one file. Hours are "
            "divided by raw file: put these events into several of them."
        )
    rows = len(order)
    bits = (rows + 7) // 8 + _SPARE
    fixed = np.where(is_text, 4 * (rows + 1), np.where(ways == AS_BIT, bits, 8 * rows))
    sizes = np.column_stack([np.full(len(names), bits), fixed, texts])
    room = aligned(sizes)
    starts = (np.cumsum(room) - room.ravel()).reshape(room.shape)
    memory = pa.allocate_buffer(int(np.sum(room)))
    told = np.zeros((len(names), 2), np.int64)
    gather(_runs(parts, order), sources, ways, starts + memory.address, rows, told)
    found: dict[str, pa.Array] = {}
    for (name, encoding), (valid, values, text), size, (filled, length) in zip(
        columns.items(), starts.tolist(), fixed.tolist(), told.tolist(), strict=True
    ):
        if filled:
            mask = memory.slice(valid, bits) if filled < rows else None
            buffers = [mask, memory.slice(values, size)]
            if _WAYS[encoding] == AS_TEXT:
                buffers.append(memory.slice(text, length))
            type = ARROW_TYPES[encoding]
            found[name] = pa.Array.from_buffers(type, rows, buffers, rows - filled)
    return found


def _sources(parts: Sequence[StagedPart], names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The addresses of all buffers by column and part, and the bytes of texts by column."""
    found = [[part.columns.buffers.get(name, -1) for name in names] for part in parts]
    first = np.array(found, np.int64)  # there may be no names
    counts = [len(part.buffers) for part in parts]
    before = np.cumsum(counts) - counts
    # Columns without texts may be the last; what is found in place of these is not looked at.
    buffers = np.concatenate([*(part.buffers for part in parts), _NO_BUFFERS])
    at = (first + before[:, None])[:, :, None] + [VALID, VALUES, TEXTS]
    addresses, sizes = buffers[at, 0], buffers[at, 1]
    addresses[sizes[:, :, VALID] == 0, VALID] = 0  # all rows have a value
    missing = first < 0
    addresses[missing] = 0
    sizes[missing] = 0
    return np.ascontiguousarray(addresses.swapaxes(0, 1)), np.sum(sizes[:, :, TEXTS], axis=0)


_NO_BUFFERS = np.zeros((1, 2), np.int64)


def _runs(parts: Sequence[StagedPart], order: np.ndarray) -> np.ndarray:
    """Rows that follow each other in their part, as the kernel wants them."""
    ends = np.cumsum([len(part) for part in parts])
    part = np.searchsorted(ends, order, side="right")
    goes_on = (order[1:] == order[:-1] + 1) & (part[1:] == part[:-1])
    begin = np.concatenate([[0], np.flatnonzero(~goes_on) + 1]) if len(order) else order
    first = order[begin] - (ends - [len(part) for part in parts])[part[begin]]
    return np.column_stack([part[begin], first, np.diff(begin, append=len(order))])


def warm_up() -> None:
    """Have the code of the kernel ready: from its cache or, the first time, by compiling it."""
    none = np.empty((0, 3), np.int64)
    gather(none, none.reshape(0, 0, 3), none[:, 0].copy(), none, 0, none[:, :2].copy())

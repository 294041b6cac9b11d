"""Arrow IPC messages: metadata with the offsets of buffers, then the buffers.

Arrow makes a message of arrays, which takes objects of Python for each of them. The kernel has all
columns of a table in one piece of memory: with some room before them, the message is made there.
"""

import struct
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

_BEGIN = struct.Struct("<ii")  # a mark, and the size of the metadata
_COUNT, _BACK, _SHORT = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")
_WORD = 8
# By their numbers in Arrow's definition of messages (Message.fbs) and batches (RecordBatch).
_HEADER, _BODY = 2, 3
_ROWS, _COLUMNS, _BUFFERS = 0, 1, 2


def body_size(message: pa.Buffer) -> int:
    """How many bytes the buffers of a message have."""
    _, metadata = _BEGIN.unpack_from(message)
    return int(message.size - _BEGIN.size - metadata)


class MessageForm(NamedTuple):
    """What comes before the buffers, as 64-bit numbers, and the places of those that differ from
    one message to the next: of the rows, the bytes of all buffers, the rows and nulls of each
    column, and the place and size of each buffer."""

    numbers: np.ndarray
    rows: int
    body: int
    columns: int
    buffers: int

    @property
    def bytes(self) -> int:
        return int(self.numbers.nbytes)


@lru_cache(4096)
def message_form(texts: int, others: int) -> MessageForm:
    """The form of a message with so many columns of texts, which have three buffers each, and of
    others, which have two; in any order."""
    arrays = [pa.array(["a"])] * texts + [pa.array([1])] * others
    message = pa.RecordBatch.from_arrays(arrays, list(map(str, range(len(arrays))))).serialize()
    _, size = _BEGIN.unpack_from(message)
    metadata = memoryview(message)[: _BEGIN.size + size]
    root = _at(metadata, _BEGIN.size)
    body = _member(metadata, root, _BODY)
    batch = _at(metadata, _member(metadata, root, _HEADER))
    rows = _member(metadata, batch, _ROWS)
    columns, buffers = (_vector(metadata, batch, number) for number in (_COLUMNS, _BUFFERS))
    places = (place // _WORD for place in (rows, body, columns, buffers))
    return MessageForm(np.frombuffer(metadata, np.int64), *places)


def buffers_of(message: pa.Buffer) -> np.ndarray:
    """The address and the size of each buffer."""
    _, size = _BEGIN.unpack_from(message)
    metadata = memoryview(message)[: _BEGIN.size + size]
    batch = _at(metadata, _member(metadata, _at(metadata, _BEGIN.size), _HEADER))
    at = _vector(metadata, batch, _BUFFERS)
    (count,) = _COUNT.unpack_from(metadata, at - _COUNT.size)
    buffers = np.frombuffer(metadata, np.int64, 2 * count, at).reshape(count, 2).copy()
    buffers[:, 0] += message.address + len(metadata)
    return buffers


def _at(metadata: memoryview, place: int) -> int:
    """What the offset at a place leads to."""
    (offset,) = _COUNT.unpack_from(metadata, place)
    return place + int(offset)


def _member(metadata: memoryview, table: int, number: int) -> int:
    """Where a table of Flatbuffers has one of its members."""
    (back,) = _BACK.unpack_from(metadata, table)
    (offset,) = _SHORT.unpack_from(metadata, table - back + 4 + 2 * number)
    return table + int(offset)


def _vector(metadata: memoryview, table: int, number: int) -> int:
    """Where the entries of a vector begin, before which their number stands."""
    return _at(metadata, _member(metadata, table, number)) + _COUNT.size

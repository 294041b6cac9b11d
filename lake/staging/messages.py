"""Rows as Arrow writes them: a message that says where their buffers lie, and then the buffers.

Arrow makes a message of arrays, which takes objects of Python for each of them. The kernel has all
columns of a table in one piece of memory: with some room before them, the message is made there.
"""

import struct
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

_BEGIN = struct.Struct("<ii")  # a mark, and the size of the metadata
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
    metadata = bytes(message[: _BEGIN.size + size])
    root = _at(metadata, _BEGIN.size)
    body = _member(metadata, root, _BODY)
    batch = _at(metadata, _member(metadata, root, _HEADER))
    places = (
        _member(metadata, batch, _ROWS),
        body,
        _at(metadata, _member(metadata, batch, _COLUMNS)) + 4,  # the first four: their number
        _at(metadata, _member(metadata, batch, _BUFFERS)) + 4,
    )
    return MessageForm(np.frombuffer(metadata, np.int64), *(place // _WORD for place in places))


def _at(metadata: bytes, place: int) -> int:
    """What the offset at a place leads to."""
    (offset,) = struct.unpack_from("<I", metadata, place)
    return place + int(offset)


def _member(metadata: bytes, table: int, number: int) -> int:
    """Where a table of Flatbuffers has one of its members."""
    (back,) = struct.unpack_from("<i", metadata, table)
    (offset,) = struct.unpack_from("<H", metadata, table - back + 4 + 2 * number)
    return table + int(offset)

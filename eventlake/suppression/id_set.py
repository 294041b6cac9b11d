"""A set of ids that may be very large, and is asked of every event."""

from bisect import bisect_left
from typing import Any

import numpy as np
import pyarrow as pa

_BITS_PER_ID = 32  # of every thirty other ids, some one has to be looked up
_AT_ONCE = 8_192


class IdSet:
    """Ids in order, as Arrow keeps them, and a bit map that says no to most others at once.

    A million ids take some 45 MB; as a Python set they would take three times as much, in every
    process of a task.
    """

    def __init__(self, ids: pa.Array) -> None:
        """Ids in order, each once."""
        self._ids = ids
        size = 1 << max(3, (len(ids) * _BITS_PER_ID).bit_length())
        self._mask = size - 1
        taken = np.zeros(size, np.bool_)
        for start in range(0, len(ids), _AT_ONCE):
            some = ids.slice(start, _AT_ONCE)
            hashes = np.fromiter(map(hash, some.to_pylist()), np.int64, len(some))
            taken[hashes & self._mask] = True
        self._bits = np.packbits(taken, bitorder="little").tobytes()

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: str) -> bool:
        slot = hash(id) & self._mask
        if not self._bits[slot >> 3] >> (slot & 7) & 1:
            return False
        place = bisect_left(self._ids, id, key=_text)
        return place < len(self._ids) and bool(_text(self._ids[place]) == id)


def _text(scalar: Any) -> Any:
    return scalar.as_py()

"""Whether two events of one id say the same: a hash of all but what their transport stamps on."""

from functools import lru_cache
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np

from eventlake.columnar.memory import address
from eventlake.columnar.payload_hash import path_hash, payload_of
from eventlake.columnar.text import PADDING
from eventlake.rules.flatten import Path, leaves

# They differ between two deliveries of one message; `timestamp` is derived from the others.
STAMPS = ("receivedAt", "sentAt", "timestamp")
_STAMPS = frozenset((stamp,) for stamp in STAMPS)
_encode = msgspec.json.Encoder().encode


def payload_hash(event: dict[str, Any]) -> int:
    """The hash of an event: the same whatever the order of its keys, and with nulls or without.

    It is what the kernel finds for the same event.
    """
    cells = [(path, value) for path, value in leaves(event) if path not in _STAMPS]
    texts = [value.encode() if type(value) is str else _encode(value) for _, value in cells]
    data = np.frombuffer(b"".join(texts) + bytes(PADDING), np.uint8)
    ends = np.array([0, *accumulate(map(len, texts))], np.int64)
    is_text = np.array([type(value) is str for _, value in cells], np.bool_)
    paths = np.array([_path(path) for path, _ in cells], np.uint64)
    return int(payload_of(address(data), ends, is_text, paths))


@lru_cache(100_000)
def _path(path: Path) -> int:
    keys = np.frombuffer(b"".join(key.encode() for key in path) + bytes(PADDING), np.uint8)
    ends = np.array([0, *accumulate(len(key.encode()) for key in path)], np.int64)
    return int(path_hash(address(keys), ends))

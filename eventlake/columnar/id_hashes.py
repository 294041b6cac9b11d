"""Message ids as 128-bit hashes, in buckets that can be processed independently."""

from hashlib import blake2b

import numpy as np
import pyarrow as pa

BUCKETS = 16
"""The number of buckets, by the first four bits of a hash. Part of the index format."""

ID_BYTES = 16


def hash_id(message_id: str) -> bytes:
    return blake2b(message_id.encode(), digest_size=ID_BYTES).digest()


def bucket_numbers(ids: pa.Array) -> np.ndarray:
    return words(ids)[:, 0] >> np.uint64(60)


def words(ids: pa.Array) -> np.ndarray:
    """Hashes as rows of two unsigned 64-bit numbers, which sort as the bytes do."""
    if not len(ids):
        return np.empty((0, 2), dtype=np.uint64)
    data = ids.buffers()[1]
    raw = np.frombuffer(data, dtype=">u8", count=2 * len(ids), offset=ids.offset * ID_BYTES)
    return raw.reshape(-1, 2).astype(np.uint64)


def checksum(ids: pa.Array) -> int:
    """A checksum of a set of ids, independent of their order."""
    total: int = int(np.sum(words(ids)[:, 1], dtype=np.uint64))
    return total


def checksums(ids: pa.Array, groups: np.ndarray) -> dict[int, int]:
    """The checksum of each group of ids, by number."""
    order = np.argsort(groups, kind="stable")
    numbers, starts = np.unique(groups[order], return_index=True)
    if not len(numbers):
        return {}
    sums = np.add.reduceat(words(ids)[order, 1], starts)
    return dict(zip(numbers.tolist(), sums.tolist(), strict=True))

"""What was written onto the disk, and not only into the memory of the system."""

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from ctypes import CDLL, get_errno

from eventlake.storage.base import THREADS

MANY = 500
"""Files from which on it costs less to wait for the whole disk than for each of them."""


def settle_all(files: Sequence[str], folders: Sequence[str], root: str) -> None:
    """Wait until files below a root, and what stands in folders, would outlive a power cut."""
    for begun in _begun.pop(root, []):
        begun.result()
    if len(files) > MANY and sync_all(root):
        return
    every = [*files, *folders]
    if len(every) == 1:
        settle_one(every[0])
        return
    with ThreadPoolExecutor(THREADS) as pool:  # a disk does many of these as one
        list(pool.map(settle_one, every))


def begin_to_settle(files: int, root: str) -> None:
    """Have many files written onto the disk while other work is done.

    Linux tells of what went wrong only once: whoever settles files hears it from this call.
    """
    if files > MANY:
        _begun.setdefault(root, []).append(_ahead.submit(sync_all, root))


_ahead = ThreadPoolExecutor(1)
_begun: dict[str, list[Future[bool]]] = {}  # by root


def sync_all(at: str) -> bool:
    """All that was written to this disk onto it, by one call; False where there is no such call."""
    sync = getattr(CDLL(None, use_errno=True), "syncfs", None)  # Linux has it
    if sync is None:
        return False
    handle = os.open(at, os.O_RDONLY)
    try:
        if sync(handle):
            raise OSError(get_errno(), f"{os.strerror(get_errno())}: {at}")
    finally:
        os.close(handle)
    return True


def settle_one(full: str) -> None:
    """One file, or what stands in one folder."""
    handle = os.open(full, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

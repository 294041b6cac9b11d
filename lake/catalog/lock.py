"""Turns for those who read a file of the embedded catalog, change it and put it back."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow import fs as pafs

from lake.storage import Storage


@contextmanager
def exclusive(storage: Storage, folder: str) -> Iterator[None]:
    """Hold a folder that exists for as long as one change takes, across processes and threads.

    The system frees it when its holder dies. An object store has no such lock: there the lease
    of the source keeps appliers apart, and two who both believe to hold it could lose one
    update. Who needs more on an object store uses a catalog that updates single partitions.
    """
    if not isinstance(storage.fs, pafs.LocalFileSystem):
        yield
        return
    handle = os.open(f"{storage.full(folder)}/.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)

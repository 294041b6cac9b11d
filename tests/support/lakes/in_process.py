"""The passes over the data in this process: tasks one after the other, blobs in memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eventlake.load.blobs import Blob
from eventlake.storage import LocalStorage
from spark_resources.dataflow.blob_store import BlobStore, Fetch
from spark_resources.dataflow.staged import R, StagedDataflow, T


class InMemory(BlobStore):
    """Keeps blobs as they are."""

    def keep(self, blobs: Iterable[Blob]) -> list[Blob]:
        return list(blobs)

    def size(self, kept: Blob) -> int:
        return len(kept.data)

    @contextmanager
    def fetching(self) -> Iterator[Fetch]:
        yield list

    def clear(self) -> None: ...


class OneByOne:
    """Runs tasks without Spark."""

    slots = 1

    def each(self, name: str, work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
        return list(map(work, parts))


class InProcess(StagedDataflow):
    """The same dataflow without Spark: for tests of everything around it."""

    slots: Any = 1

    def __init__(self) -> None:
        super().__init__(OneByOne(), InMemory(LocalStorage("/nowhere"), ""))

"""Staged blobs in a folder and in a bucket."""

from collections.abc import Iterator

import pytest

from eventlake.load.blobs import Blob, BlobKind
from eventlake.storage import Storage
from spark_resources.dataflow.blob_store import BlobStore

ROWS = Blob(BlobKind.ROWS, "page\nday=2026-10-01", 3, 2, b"r" * 10_000)
IDS = Blob(BlobKind.IDS, "7", 3, 2, b"i" * 5_000)


@pytest.fixture
def store(storage: Storage) -> BlobStore:
    return BlobStore(storage, "stage/blobs")


def test_blobs_are_read_back_by_their_ranges(store: BlobStore) -> None:
    first, second = store.keep([ROWS, IDS]), store.keep([IDS])
    kept = [*first, *second]
    assert all(len(blob.data) < 100 for blob in kept)
    assert [store.size(blob) for blob in kept] == [10_000, 5_000, 5_000]
    with store.fetching() as fetch:
        assert fetch(kept[::-1]) == [IDS, IDS, ROWS]
        assert fetch([]) == []


def test_each_attempt_of_a_task_writes_its_own_file(store: BlobStore) -> None:
    def fails() -> Iterator[Blob]:
        yield ROWS
        raise OSError("disk")

    first = store.keep([ROWS])
    with pytest.raises(OSError, match="disk"):
        store.keep(fails())
    again = store.keep([ROWS._replace(data=b"other")])
    assert len(store.storage.files(store.folder)) == 2
    with store.fetching() as fetch:
        assert [fetch(first), fetch(again)[0].data] == [[ROWS], b"other"]


def test_nothing_is_left_when_it_is_cleared(store: BlobStore) -> None:
    store.keep([ROWS])
    store.clear()
    assert store.storage.files("") == []
    store.clear()

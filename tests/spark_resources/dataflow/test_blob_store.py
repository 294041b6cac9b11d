"""Batches lie on the store while where they are travels."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlake.load.blobs import Blob, BlobKind
from spark_resources.dataflow.blob_store import BlobStore, size

ROWS = Blob(BlobKind.ROWS, "page\nday=2026-10-01", 3, 2, b"r" * 10_000)
IDS = Blob(BlobKind.IDS, "7", 3, 2, b"i" * 5_000)


def test_batches_come_back_as_they_were(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path / "store"))
    kept = store.keep([ROWS, IDS])
    assert all(len(blob.data) < 100 for blob in kept)
    assert [size(blob) for blob in kept] == [10_000, 5_000]
    with store.fetching() as fetch:
        assert [fetch(blob) for blob in reversed(kept)] == [IDS, ROWS]


def test_a_task_that_is_tried_again_leaves_the_first_try_alone(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path))

    def breaks_off() -> Iterator[Blob]:
        yield ROWS
        raise OSError("disk")

    [first] = store.keep([ROWS])
    with pytest.raises(OSError, match="disk"):
        store.keep(breaks_off())
    [again] = store.keep([ROWS._replace(data=b"other")])
    with store.fetching() as fetch:
        assert (fetch(first), fetch(again).data) == (ROWS, b"other")


def test_nothing_is_left_when_it_is_cleared(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path / "store"))
    store.keep([ROWS])
    store.clear()
    assert list(tmp_path.iterdir()) == []
    store.clear()

"""Batches lie on the shelf while Spark moves where they are."""

from pathlib import Path

import pytest

from lake.staging.blob import Blob, BlobKind
from spark_resources.jobs.shelf import Shelf

ROWS = Blob(BlobKind.ROWS, "page\nday=2026-10-01", 3, 2, b"r" * 10_000)
IDS = Blob(BlobKind.IDS, "7", 3, 2, b"i" * 5_000)
SEEN = Blob(BlobKind.SEEN, "", 3, 1, b"account")


@pytest.mark.parametrize("on_disk", [True, False], ids=["disk", "as they are"])
def test_batches_come_back_as_they_were(tmp_path: Path, on_disk: bool) -> None:
    shelf = Shelf(str(tmp_path / "shelf") if on_disk else None)
    with shelf.keeping() as keep:
        kept = [keep(blob) for blob in (ROWS, IDS)]
    assert all(len(blob.data) < 100 for blob in kept) is on_disk
    with shelf.fetching() as fetch:
        assert [fetch(blob) for blob in reversed(kept)] == [IDS, ROWS]


def test_the_account_goes_to_the_driver_and_not_on_the_shelf(tmp_path: Path) -> None:
    with Shelf(str(tmp_path)).keeping() as keep:
        assert keep(SEEN) == SEEN


def test_a_task_that_is_tried_again_leaves_the_first_try_alone(tmp_path: Path) -> None:
    shelf = Shelf(str(tmp_path))
    with pytest.raises(OSError, match="disk"), shelf.keeping() as keep:
        first = keep(ROWS)
        raise OSError("disk")
    with shelf.keeping() as keep:
        again = keep(ROWS._replace(data=b"other"))
    with shelf.fetching() as fetch:
        assert (fetch(first), fetch(again).data) == (ROWS, b"other")


def test_nothing_is_left_when_it_is_cleared(tmp_path: Path) -> None:
    shelf = Shelf(str(tmp_path / "shelf"))
    with shelf.keeping() as keep:
        keep(ROWS)
    shelf.clear()
    assert list(tmp_path.iterdir()) == []
    shelf.clear()

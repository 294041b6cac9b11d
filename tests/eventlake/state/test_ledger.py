"""The ledger: which raw files are loaded, a page for each day folder."""

from pathlib import Path

import pytest

from eventlake.rules import paths
from eventlake.state.ledger import LedgerEntry, add_to_ledger, read_ledger
from eventlake.storage import LocalStorage, Storage, StoredFile

FIRST = LedgerEntry("segment-logs/S1/1790812800000/a.gz", 10, "t1", 5, ("2026-10-01T07",))
SECOND = LedgerEntry("segment-logs/S1/1790812800000/b.gz", 20, "t1", 7, ())
OTHER_DAY = LedgerEntry("segment-logs/S1/1790899200000/a.gz", 30, "t1", 9, (), broken="cut")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path))


def test_entries_are_found_by_the_folders_asked_for(storage: Storage) -> None:
    add_to_ledger(storage, "S1", (FIRST, OTHER_DAY))
    add_to_ledger(storage, "S1", (SECOND,))
    assert read_ledger(storage, "S1", ["1790812800000"]) == {
        FIRST.path: FIRST,
        SECOND.path: SECOND,
    }
    assert read_ledger(storage, "S1", ["1790899200000", "0"]) == {OTHER_DAY.path: OTHER_DAY}
    assert read_ledger(storage, "S2", ["1790812800000"]) == {}


def test_adding_the_same_again_writes_nothing(storage: Storage) -> None:
    add_to_ledger(storage, "S1", (FIRST, SECOND))
    [page] = storage.files(paths.source_state("S1"))
    add_to_ledger(storage, "S1", (FIRST,))
    assert storage.files(paths.source_state("S1")) == [page]


@pytest.mark.parametrize(
    ("size", "stamp", "same"), [(10, "t1", True), (11, "t1", False), (10, "t2", False)]
)
def test_a_file_is_the_one_that_was_loaded_by_size_and_stamp(
    size: int, stamp: str, same: bool
) -> None:
    assert FIRST.matches(StoredFile(FIRST.path, size, stamp)) is same

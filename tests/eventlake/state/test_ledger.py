"""The ledger of raw files and the index of message ids."""

from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.columnar.id_hashes import BUCKETS, bucket_numbers, checksum, hash_id, words
from eventlake.rules import paths
from eventlake.state.id_index import ALL, SCHEMA, day_of, read_index, write_index
from eventlake.state.ledger import LedgerEntry, add_to_ledger, read_ledger
from eventlake.state.manifest import IndexFile
from eventlake.storage import LocalStorage, Storage, StoredFile

FIRST = LedgerEntry("segment-logs/S1/1790812800000/a.gz", 10, "t1", 5, ("2026-10-01T07",))
SECOND = LedgerEntry("segment-logs/S1/1790812800000/b.gz", 20, "t1", 7, ())
OTHER_DAY = LedgerEntry("segment-logs/S1/1790899200000/a.gz", 30, "t1", 9, (), broken="cut")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path))


def test_entries_are_found_by_their_folders(storage: Storage) -> None:
    add_to_ledger(storage, "S1", (FIRST, OTHER_DAY))
    add_to_ledger(storage, "S1", (SECOND,))
    assert read_ledger(storage, "S1", ["1790812800000"]) == {FIRST.path: FIRST, SECOND.path: SECOND}
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
def test_files_are_compared_by_size_and_stamp(size: int, stamp: str, same: bool) -> None:
    assert FIRST.matches(StoredFile(FIRST.path, size, stamp)) is same


DAY_US = 86_400_000_000
OCTOBER_1 = 1_790_812_800_000_000


def ids_of(*entries: tuple[str, int]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([hash_id(name) for name, _ in entries], pa.binary(16)),
            "received": pa.array([received for _, received in entries], pa.int64()),
            "payload": pa.array([1] * len(entries), pa.uint32()),
        },
        schema=SCHEMA,
    )


def found(ids: np.ndarray, received: np.ndarray) -> list[tuple[int, int, int]]:
    rows = zip(ids.tolist(), received.tolist(), strict=True)
    return sorted((first, second, at) for (first, second), at in rows)


def expected(*entries: tuple[str, int]) -> list[tuple[int, int, int]]:
    table = ids_of(*entries)
    return found(words(table["id"].combine_chunks()), table["received"].to_numpy())


def test_ids_are_written_by_day_and_found_again(storage: Storage) -> None:
    first = ("m1", OCTOBER_1), ("m2", OCTOBER_1 + DAY_US - 1), ("m1", OCTOBER_1 + 5)
    second = ("m3", OCTOBER_1 + DAY_US), ("m1", OCTOBER_1 + DAY_US)
    files = list(write_index(storage, "S1", "R1-0", ids_of(*first, *second)))
    written = [(file.day, file.ids, file.buckets) for file in files]
    assert written == [("2026-10-01", 3, ALL), ("2026-10-02", 2, ALL)]
    assert found(*read_index(storage, files[:1])[:2]) == expected(*first)
    assert found(*read_index(storage, files)[:2]) == expected(*first, *second)
    assert found(*read_index(storage, [])[:2]) == []
    assert list(write_index(storage, "S2", "R1-0", ids_of())) == []  # a day without ids
    assert storage.files(paths.id_indexes("S2")) == []


@pytest.mark.parametrize(
    ("received", "day"),
    [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (-62_135_596_800_000_000, "0001-01-01"),
        (253_402_300_799_999_999, "9999-12-31"),
    ],
)
def test_days_begin_at_midnight_also_before_1970(received: int, day: str) -> None:
    assert day_of(received) == day


@pytest.mark.parametrize("groups", [1, 2, 4, 16])
def test_separate_ranges_of_buckets_are_the_whole(storage: Storage, groups: int) -> None:
    entries = [(f"m{n}", OCTOBER_1 + n) for n in range(200)]
    ids = ids_of(*entries)
    numbers = bucket_numbers(ids["id"].combine_chunks())
    width = BUCKETS // groups
    files: list[IndexFile] = []
    for group in range(groups):
        buckets = (group * width, (group + 1) * width)
        mine = ids.filter(pa.array((numbers >= buckets[0]) & (numbers < buckets[1])))
        files += write_index(storage, "S1", "R1-0", mine, buckets)
    assert sum(file.ids for file in files) == 200
    assert len({file.path for file in files}) == groups
    assert found(*read_index(storage, files)[:2]) == expected(*entries)
    for readers in (1, 2, 8):
        share = BUCKETS // readers
        ranges = ((n * share, (n + 1) * share) for n in range(readers))
        parts = [found(*read_index(storage, files, range)[:2]) for range in ranges]
        assert sorted(chain.from_iterable(parts)) == expected(*entries)


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=20), st.integers(0, 3))
def test_words_sort_like_bytes_and_buckets_are_a_prefix(hashes: list[bytes], cut: int) -> None:
    array = pa.array([bytes(16)] * cut + hashes, pa.binary(16)).slice(cut)
    as_words = [tuple(row) for row in words(array).tolist()]
    assert sorted(range(len(hashes)), key=lambda n: as_words[n]) == sorted(
        range(len(hashes)), key=lambda n: hashes[n]
    )
    assert bucket_numbers(array).tolist() == [id[0] >> 4 for id in hashes]
    assert checksum(array) == sum(int.from_bytes(id[8:]) for id in hashes) % 2**64

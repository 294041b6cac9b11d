"""Which partitions are compacted, in which order, and how many at once."""

import pytest

from eventlake.catalog.base import CatalogPartition
from eventlake.rules.types import TableSchema
from eventlake.settings.models import Compaction
from eventlake.upkeep.candidates import Candidate, candidates, file_count, units, within

MB = 1_000_000
ORDERS = TableSchema("track_order", "shop", "track_order", "Order", ())
RULE = Compaction()


def partition(day: str, files: int, size: int) -> tuple[str, Candidate]:
    held = CatalogPartition((day, "07"), f"x/{day}", 1, rows=files, bytes=size, files=files)
    return day, Candidate(ORDERS, held)


def chosen(*partitions: tuple[str, Candidate], rule: Compaction = RULE) -> list[str]:
    found = candidates(partitions, rule, last_day="2026-10-02")
    return [one.partition.values[0] for one in found]


@pytest.mark.parametrize(
    ("files", "size", "is_chosen"),
    [
        (3, 3 * MB, True),
        (2, 2 * MB, False),  # not worth it
        (1, 1 * MB, False),
        (3, 3 * 64 * MB, False),  # not small
        (3, 3 * 64 * MB - 1, True),
        (5, 5 * 60 * MB, True),  # two files of 150 MB
        (3, 200, True),
    ],
)
def test_many_small_files_are_chosen(files: int, size: int, is_chosen: bool) -> None:
    assert bool(chosen(partition("2026-10-01", files, size))) is is_chosen


def test_files_that_could_not_be_fewer_are_left() -> None:
    rule = Compaction(min_files=2, below_mb=1_000)
    two = partition("2026-10-01", 2, 500 * MB)
    assert chosen(two, rule=rule) == []
    three = partition("2026-10-01", 3, 500 * MB)
    assert chosen(three, rule=rule) == ["2026-10-01"]


def test_days_that_are_not_past_are_left() -> None:
    days = [partition(f"2026-10-0{n}", 5, 100) for n in (1, 2, 3, 4)]
    assert chosen(*days) == ["2026-10-02", "2026-10-01"]


def test_the_worst_come_first_and_then_the_newest() -> None:
    few, newer = partition("2026-10-01", 3, 100), partition("2026-10-02", 3, 100)
    many = partition("2026-09-01", 9, 100)
    assert chosen(few, newer, many) == ["2026-09-01", "2026-10-02", "2026-10-01"]


@pytest.mark.parametrize(
    ("size", "files"), [(0, 1), (1, 1), (256 << 20, 1), ((256 << 20) + 1, 2), (1 << 30, 4)]
)
def test_no_file_passes_256_mb(size: int, files: int) -> None:
    assert file_count(size) == files


def test_one_run_takes_what_fits_and_the_first_always_does() -> None:
    three = [partition("2026-10-01", 3, size)[1] for size in (50, 30, 30)]
    assert len(list(within(three, 110))) == 3
    assert len(list(within(three, 109))) == 2
    assert len(list(within(three, 1))) == 1


def test_units_are_small_enough_to_be_lost_in_a_race() -> None:
    large = [partition("2026-10-01", 3, 200 << 20)[1] for _ in range(3)]
    assert [len(unit) for unit in units(large)] == [1, 1, 1]
    small = [partition("2026-10-01", 3, 1)[1] for _ in range(450)]
    assert [len(unit) for unit in units(small)] == [200, 200, 50]
    assert list(units([])) == []

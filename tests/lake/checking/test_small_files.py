"""When a partition is cut too small."""

import pytest

from lake.catalog.base import CatalogPartition
from lake.checking.small_files import check_small_files
from lake.work.checks import Severity

MB = 1 << 20


def partition(hr: str, files: int, size: int) -> CatalogPartition:
    return CatalogPartition(("2026-10-01", hr), f"place/{hr}", 1, 10, size, files)


@pytest.mark.parametrize(
    ("files", "size", "passes"),
    [
        (8, 8 * MB, True),  # small, but few
        (9, 9 * MB, False),
        (9, 9 * 32 * MB, True),  # many, but large
        (9, 9 * 32 * MB - 1, False),
        (1, 1, True),
        (0, 0, True),
    ],
)
def test_many_and_small_together_are_too_much(files: int, size: int, passes: bool) -> None:
    assert check_small_files("shop.page", [partition("07", files, size)]).passed is passes


def test_the_numbers_tell_how_bad_it_is() -> None:
    found = [partition("07", 2, 4000), partition("08", 10, 5000), partition("09", 20, 3000)]
    result = check_small_files("shop.page", found)
    assert result.severity is Severity.WARN
    assert {k: v for k, v in result.evidence.items() if k != "what_to_do"} == {
        "problems": 2,
        "partitions": 3,
        "files": 32,
        "most_files_in_a_partition": 20,
        "average_bytes": 375,
        "files_in_cut_partitions": 30,
        "first_problems": (
            "2026-10-01/09: 20 files of 150 bytes on average",
            "2026-10-01/08: 10 files of 500 bytes on average",
        ),
    }

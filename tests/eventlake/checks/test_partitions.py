"""When a partition is cut too small, and compaction should have seen to it."""

from typing import Any

import pytest

from eventlake.catalog.base import CatalogPartition
from eventlake.checks.partitions import check_small_files
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import TableSchema
from eventlake.runs.verify import CheckResult, Severity
from eventlake.settings.models import Source
from tests.support.lakes.runs import utc

MB = 1_000_000
PAGE = TableSchema("page", "shop", "page", "page", ())


def partition(hr: str, files: int, size: int, day: str = "2026-10-01") -> CatalogPartition:
    return CatalogPartition((day, hr), f"place/{hr}", 1, 10, size, files)


def check(*partitions: CatalogPartition, now: str = "2026-10-03", **settings: Any) -> CheckResult:
    source = Source(id="S1", slug="shop", **settings)
    return check_small_files(source, PAGE, DatePartition.DAY_HOUR, partitions, utc(now))


@pytest.mark.parametrize(
    ("files", "size", "passes"),
    [
        (2, 2 * MB, True),  # small, but few
        (3, 3 * MB, False),
        (3, 3 * 64 * MB - 1, False),
        (3, 3 * 64 * MB, True),  # many, but large
        (1, 1, True),
        (0, 0, True),
    ],
)
def test_many_and_small_together_are_too_much(files: int, size: int, passes: bool) -> None:
    assert check(partition("07", files, size)).passed is passes


def test_the_last_days_have_their_turn_still_to_come() -> None:
    assert check(partition("07", 9, 9), now="2026-10-02T23:59").passed
    assert not check(partition("07", 9, 9), now="2026-10-03").passed
    assert check(partition("07", 9, 9), now="2026-10-03", compaction={"after_days": 2}).passed


def test_the_numbers_tell_how_bad_it_is_and_what_to_do() -> None:
    result = check(partition("07", 2, 4000), partition("08", 10, 5000), partition("09", 20, 3000))
    assert result.severity is Severity.WARN
    assert result.evidence.pop("what_to_do").startswith("The job `upkeep_shop` and `datalake upkee")
    assert result.evidence == {
        "problems": 2,
        "partitions": 3,
        "files": 32,
        "most_files_in_a_partition": 20,
        "average_bytes": 375,
        "files_to_save": 28,
        "first_problems": (
            "2026-10-01/09: 20 files of 150 bytes on average",
            "2026-10-01/08: 10 files of 500 bytes on average",
        ),
    }


def test_where_compaction_is_off_that_is_said_first() -> None:
    result = check(partition("07", 9, 9), compaction={"enabled": False})
    assert result.evidence["what_to_do"].startswith("Set `compaction.enabled: true`. ")

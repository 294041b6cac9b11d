"""What is written a second time, in other types, is held to the same checks."""

from eventlake.load.dedup import TableIds
from eventlake.load.write import LoadedFile
from eventlake.rules.counts import TableReport
from eventlake.runs.verify import check_table

REPORT = TableReport("page", "page", rows_in=2, row_count=2)


def verdicts(shadow: LoadedFile | None) -> dict[str, bool]:
    file = LoadedFile("page", "day=2026-10-01", "a.parquet", rows=2, shadow=shadow)
    results = check_table("shop.page", REPORT, [file], TableIds(kept=2), 7)
    return {result.check: result.passed for result in results}


def test_a_shadow_must_have_the_rows_of_its_file_and_the_types_that_are_wished() -> None:
    good = LoadedFile("page", "day=2026-10-01", "b.parquet", rows=2)
    assert verdicts(None) == verdicts(good) == {"dedup": True, "types": True, "conservation": True}
    fewer = LoadedFile("page", "day=2026-10-01", "b.parquet", rows=1)
    assert verdicts(fewer) == {"dedup": True, "types": True, "conservation": False}
    wrong = LoadedFile("page", "day=2026-10-01", "b.parquet", rows=2, type_problems=("n: int64",))
    assert verdicts(wrong) == {"dedup": True, "types": False, "conservation": True}

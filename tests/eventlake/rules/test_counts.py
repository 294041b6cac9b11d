"""Counts of rows: they add up over units, and what does not balance is refused."""

import pytest

from eventlake.rules.counts import CastCounts, NewColumn, TableReport, UnitReport
from eventlake.rules.errors import ConservationError

PAGE = TableReport(
    table="page",
    name="page",
    rows_in=3,
    row_count=2,
    duplicates=1,
    partitions=({"day": "2026-10-01"},),
    day_rows={"2026-10-01": 2},
    new_columns=(NewColumn("a", "bigint"),),
    is_new=True,
    casts={"a": CastCounts(exact=2)},
)
LATER = TableReport(
    table="page",
    name="page",
    rows_in=4,
    row_count=3,
    rejected=1,
    partitions=({"day": "2026-10-01"}, {"day": "2026-10-02"}),
    day_rows={"2026-10-01": 1, "2026-10-02": 2},
    new_columns=(NewColumn("b", "string"),),
    casts={"a": CastCounts(lossy=1), "b": CastCounts(exact=2, failed=1)},
)


def test_two_units_add_up_table_by_table() -> None:
    total = PAGE + LATER
    assert total == TableReport(
        table="page",
        name="page",
        rows_in=7,
        row_count=5,
        duplicates=1,
        rejected=1,
        partitions=({"day": "2026-10-01"}, {"day": "2026-10-02"}),
        day_rows={"2026-10-01": 3, "2026-10-02": 2},
        new_columns=(NewColumn("a", "bigint"), NewColumn("b", "string")),
        is_new=True,
        casts={"a": CastCounts(exact=2, lossy=1), "b": CastCounts(exact=2, failed=1)},
    )
    first = UnitReport({"s.page": PAGE}, rows_in=5, rejected=2, duplicates=1, warnings=("w",))
    second = UnitReport({"s.page": LATER}, rows_in=6, rejected=1, skipped=2, warnings=("w", "x"))
    both = first + second
    assert both.tables == {"s.page": total}
    assert (both.rows_in, both.rejected, both.skipped, both.row_count) == (11, 3, 2, 5)
    assert both.warnings == ("w", "x")
    both.check_balance()


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (UnitReport({"s.page": PAGE}, rows_in=4, duplicates=1), "4 came in, but 2 loaded + 1 dup"),
        (UnitReport({}, rows_in=1, suppressed=2), "1 came in"),
        (
            UnitReport({"s.page": TableReport("page", "page", 3, 2)}, rows_in=2),
            "table page do not balance: 3 came in",
        ),
    ],
)
def test_what_does_not_balance_is_refused(report: UnitReport, words: str) -> None:
    with pytest.raises(ConservationError, match=words.replace("+", r"\+")):
        report.check_balance()

"""Errors, and the counts of a report."""

import re

import pytest

from eventlake.rules import errors
from eventlake.rules.counts import CastCounts, NewColumn, TableReport, UnitReport
from eventlake.rules.errors import (
    ConservationError,
    InsufficientPermissions,
    LakeError,
    Problem,
    SettingsError,
    did_you_mean,
    error_in_trace,
)


def test_the_drawing_shows_every_error_below_its_parent() -> None:
    parents: list[str] = []
    for indent, name in re.findall(r"(?m)^([│├└─ ]*)(\w+) ", errors.__doc__ or ""):
        del parents[len(indent) // 4 :]
        assert not parents or getattr(errors, name).__base__.__name__ == parents[-1]
        parents.append(name)
    drawn = set(re.findall(r"(?m)^[│├└─ ]*(\w+) ", errors.__doc__ or ""))
    classes = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    defined = {name for name, value in classes.items() if issubclass(value, LakeError)}
    assert defined <= drawn


@pytest.mark.parametrize(
    ("name", "exit_code", "error_code"),
    [
        ("LakeError", 1, "Segment.Internal"),
        ("SettingsError", 2, "Segment.InvalidSettings"),
        ("UsageError", 2, "Segment.InvalidSettings"),
        ("UnknownSource", 2, "Segment.InvalidSettings"),
        ("InvalidSetting", 1, "Segment.InvalidSettings"),
        ("InsufficientPermissions", 1, "Segment.InsufficientPermissions"),
        ("ServiceTrouble", 1, "Segment.Internal"),
        ("StateError", 1, "Segment.Internal"),
        ("ConservationError", 1, "Segment.Internal"),
        ("CheckFailed", 1, "Segment.Internal"),
        ("CommitConflict", 1, "Segment.Internal"),
    ],
)
def test_an_error_has_its_codes(name: str, exit_code: int, error_code: str) -> None:
    error = getattr(errors, name)
    assert (error.exit_code, error.error_code) == (exit_code, error_code)


def test_a_settings_error_lists_its_problems() -> None:
    problems = [Problem("lake.yaml:2 storage", "missing", "allowed: a folder"), Problem(*"abc")]
    assert str(SettingsError("lake.yaml cannot be used.", problems)) == (
        "lake.yaml cannot be used.\n  lake.yaml:2 storage: missing; allowed: a folder\n  a: b; c"
    )


def test_only_similar_words_are_suggested() -> None:
    assert did_you_mean("regoin", ["region", "engine"]) == "; did you mean 'region'?"
    assert did_you_mean("colour", ["region", "engine"]) == ""
    tables = ["track_order_completed", "track_order", "track_reorder"]
    assert did_you_mean("Order", tables) == "; did you mean 'track_order'?"
    assert did_you_mean("completed order", tables) == "; did you mean 'track_order_completed'?"


SPARK_4_0 = """\
An error occurred while calling o91.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed \
1 times, most recent failure: Lost task 0.0 in stage 0.0 (TID 0) (127.0.0.1 executor driver): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/spark/worker.py", line 1, in main
OSError: no such thing

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/opt/spark/worker.py", line 2, in main
lake.errors.InsufficientPermissions: No right to read.
Ask for it.

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
Caused by: org.apache.spark.api.python.PythonException: no more
"""


def test_an_error_is_read_from_the_stack_trace_of_a_worker() -> None:
    error = error_in_trace(SPARK_4_0)
    assert type(error) is InsufficientPermissions
    assert str(error) == "No right to read.\nAsk for it."
    for other in ("", "ValueError: 3", "other.Trouble: x", "eventlake.rules.errors.LakeErrors: x"):
        assert error_in_trace(other) is None


PAGE = TableReport(
    *("page", "page", 3, 2),
    duplicates=1,
    partitions=({"day": "2026-10-01"},),
    day_rows={"2026-10-01": 2},
    new_columns=(NewColumn("a", "bigint"),),
    is_new=True,
    casts={"a": CastCounts(exact=2)},
)
LATER = TableReport(
    *("page", "page", 4, 3),
    rejected=1,
    partitions=({"day": "2026-10-01"}, {"day": "2026-10-02"}),
    day_rows={"2026-10-01": 1, "2026-10-02": 2},
    new_columns=(NewColumn("b", "string"),),
    casts={"a": CastCounts(lossy=1), "b": CastCounts(exact=2, failed=1)},
)


def test_two_units_add_up_table_by_table() -> None:
    total = PAGE + LATER
    assert total == TableReport(
        *("page", "page", 7, 5),
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

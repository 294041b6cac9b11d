"""The rules for what is published, in words for people, and how much a breach matters."""

from collections.abc import Sequence
from typing import Any

from eventlake.runs.verify import CheckResult, Severity

TABLE_RULES = {
    "drift": "The catalog entry and the Parquet footers say what the table's schema says: columns, "
    "types, order, location.",
    "partitions": "Every partition that was published is registered, and no other; its files are "
    "there and can be read.",
    "small_files": "No partition of a past day is cut into small files.",
    "schema_change": "No column and no table is new since yesterday.",
}
"""What each check of a table holds."""

SOURCE_RULES = {
    "freshness": "The newest event is not older than is usual for the source.",
}
"""What each check of a source holds."""

# With these a query fails or gives a wrong answer; all else is for a person to look at.
_WRONG_DATA = frozenset({"drift", "partitions"})
_EXAMPLES = 5


def verdict(
    table: str, check: str, problems: Sequence[str], evidence: dict[str, Any], remedy: str
) -> CheckResult:
    """Passed without problems; else the first of them, and what to do about them."""
    told = {"problems": len(problems), **evidence}
    if problems:
        told |= {"first_problems": tuple(problems[:_EXAMPLES]), "what_to_do": remedy}
    severity = Severity.ERROR if check in _WRONG_DATA else Severity.WARN
    return CheckResult(table, check, not problems, told, severity)

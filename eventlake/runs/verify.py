"""The checks before publication: ids, types and row counts of what a unit wrote."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from eventlake.load.dedup import TableIds
from eventlake.load.write import LoadedFile
from eventlake.rules.counts import TableReport
from eventlake.rules.errors import CheckFailed

CHECKS = {
    "dedup": "No message id occurs twice among events received within the dedup window.",
    "types": "The Parquet footers say exactly what the table's schema says.",
    "conservation": "Every row that came in was loaded, or is counted by why it was not.",
}
"""The checks with their descriptions."""


class Severity(StrEnum):
    """The severity of a failed check."""

    ERROR = "error"  # the data is wrong, or cannot be read
    WARN = "warn"  # needs attention


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check of one table, with numbers as evidence."""

    table: str  # its key: database.name
    check: str
    passed: bool
    evidence: dict[str, Any] = field(default_factory=dict)
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        facts = ", ".join(f"{name} {_shown(value)}" for name, value in self.evidence.items())
        return f"{self.check} of {self.table}: {facts}"


def _shown(value: Any) -> str:
    return "; ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


class ChecksFailed(CheckFailed):
    """At least one check failed; carries the results of all."""

    def __init__(self, results: Iterable[CheckResult]) -> None:
        self.results = tuple(results)
        failed = "\n  ".join(str(result) for result in self.results if not result.passed)
        super().__init__(
            f"What was written did not pass its checks, so nothing was published:\n  {failed}\n"
            "The raw files are untouched and the next run tries them again. If it fails alike, "
            "please report it with the run's log."
        )


def check_table(
    key: str, report: TableReport, files: list[LoadedFile], ids: TableIds, window_days: int
) -> list[CheckResult]:
    """All checks of one table, by the footers of its files."""
    written = sum(file.rows for file in files)
    same_ids = sum(file.checksum for file in files) % 2**64 == ids.checksum
    problems = [p for file in files for one in file.written for p in one.type_problems]
    shadows = [file.shadow for file in files if file.shadow is not None]
    alike = all(file.rows == file.shadow.rows for file in files if file.shadow is not None)
    accounted = report.row_count + report.duplicates + report.rejected + report.suppressed
    return [
        CheckResult(
            key,
            "dedup",
            written == ids.kept and same_ids,
            {
                "rows": written,
                "distinct_ids": ids.kept,
                "same_ids": same_ids,
                "duplicates_dropped": ids.duplicates,
                "window_days": window_days,
            },
        ),
        CheckResult(
            key, "types", not problems, {"files": len(files), "problems": "; ".join(problems[:5])}
        ),
        CheckResult(
            key,
            "conservation",
            report.rows_in == accounted and alike,
            {
                "rows_in": report.rows_in,
                "loaded": report.row_count,
                "duplicates": report.duplicates,
                "rejected": report.rejected,
                "suppressed": report.suppressed,
                **({"in_other_types": sum(file.rows for file in shadows)} if shadows else {}),
            },
        ),
    ]

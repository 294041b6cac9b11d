"""Schema changes: columns and tables that came lately, and by which run."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from eventlake.checking.rules import verdict
from eventlake.rules.counts import NewColumn, TableReport
from eventlake.rules.types import TableSchema
from eventlake.runs.verify import CheckResult
from eventlake.state.manifest import Manifest, read_manifest
from eventlake.storage import Storage

LATELY = timedelta(days=1)
"""How long a change is told."""
_REMEDY = (
    "Nothing, if the change is wanted. A column of the wrong type is corrected with "
    "`datalake retype`; events that nobody wants are left out with `skip_events`."
)


@dataclass(frozen=True, slots=True)
class Change:
    """What one run added to one table."""

    run_id: str
    dagster_run_id: str
    at: datetime
    columns: tuple[NewColumn, ...]
    is_new: bool = False  # the table itself

    @classmethod
    def of(cls, manifest: Manifest, report: TableReport) -> "Change":
        run, at = manifest.run, made(manifest)
        return cls(run.run_id, run.dagster_run_id, at, report.new_columns, report.is_new)

    def __str__(self) -> str:
        named = ", ".join(f"{column.name} {column.type}" for column in self.columns)
        what = f"the table is new, with {len(self.columns)} columns" if self.is_new else named
        return f"{what} (run {self.run_id}, {self.at:%Y-%m-%d %H:%M})"


Changes = dict[str, list[Change]]
"""By key of the table, oldest first."""


def changes_of(manifests: Iterable[Manifest], since: datetime, first_run: str | None) -> Changes:
    """What runs added since a moment; what the very first run of a source made is no change."""
    changes: Changes = {}
    last: dict[str, Manifest] = {}  # of each run: it tells of all its units
    for manifest in sorted(manifests, key=lambda one: one.number):
        if made(manifest) >= since and manifest.run_id != first_run:
            last[manifest.run_id] = manifest
    for manifest in last.values():
        for key, report in manifest.report.tables.items():
            if report.new_columns:
                changes.setdefault(key, []).append(Change.of(manifest, report))
    return changes


def check_schema_change(schema: TableSchema, changes: Iterable[Change]) -> CheckResult:
    found = list(changes)
    evidence = {
        "columns": len(schema.columns),
        "new_columns": sum(len(change.columns) for change in found),
        **({"dagster_run": found[-1].dagster_run_id} if found else {}),
    }
    problems = [str(change) for change in found]
    return verdict(schema.key, "schema_change", problems, evidence, _REMEDY)


def first_run(storage: Storage, source_id: str) -> str | None:
    """The run that made the source: all of its tables are new."""
    manifest = read_manifest(storage, source_id, 1)
    return None if manifest is None else manifest.run_id


def made(manifest: Manifest) -> datetime:
    return manifest.made or manifest.run.start_time

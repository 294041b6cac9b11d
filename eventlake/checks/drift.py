"""Checks `drift` (catalog entry and Parquet footers match the schema) and `schema_change`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain

import pyarrow as pa

from eventlake.catalog.base import CatalogTable
from eventlake.checks.view import TableView, verdict
from eventlake.load.write import type_problems
from eventlake.rules.counts import NewColumn, TableReport
from eventlake.rules.types import TableSchema
from eventlake.runs.verify import CheckResult
from eventlake.state.manifest import Manifest

_REMEDY = (
    "The catalog or a file was changed by hand. `datalake recover --catalog` restores the "
    "published entry; a replay of the day rewrites a file."
)


def check_drift(view: TableView) -> CheckResult:
    problems = [*_entry_problems(view), *_file_problems(view)]
    evidence = {
        "columns": len(view.schema.columns),
        "columns_in_catalog": len(view.entry.columns) if view.entry else 0,
        "footers": sum(len(one.files) for one in view.sampled),
    }
    return verdict(view.schema.key, "drift", problems, evidence, _REMEDY)


def _entry_problems(view: TableView) -> Iterator[str]:
    entry = view.entry
    if entry is None:
        yield "the table is not in the catalog"
        return
    yield from column_problems(entry, view.schema)
    if entry.partition_keys != view.layout.keys:
        yield f"partition keys {_list(entry.partition_keys)}, published: {_list(view.layout.keys)}"
    if entry.location != view.location:
        yield f"location {entry.location}, published: {view.location}"
    if entry.format != "parquet":
        yield f"format {entry.format}, published: parquet"


def column_problems(entry: CatalogTable, schema: TableSchema) -> Iterator[str]:
    """Columns of an entry that are missing, unknown, of another type or out of order."""
    found = {column.name: column.type for column in entry.columns}
    wanted = {column.name: column.type.sql for column in schema.columns}
    for name in dict.fromkeys([*wanted, *found]):
        if name not in found:
            yield f"{name} {wanted[name]} is not in the catalog"
        elif name not in wanted:
            yield f"{name} {found[name]} is in the catalog, but not in the schema"
        elif found[name] != wanted[name]:
            yield f"{name} is {found[name]} in the catalog, {wanted[name]} in the schema"
    order = [column.name for column in entry.columns if column.name in wanted]
    if moved := _out_of_order(order, list(wanted)):
        yield f"{moved} has another position in the catalog than in the schema"


def _file_problems(view: TableView) -> Iterator[str]:
    for one in view.sampled:
        for file in one.files:
            if file.columns is not None:
                wrong = type_problems(file.columns, view.schema, older=True)
                for problem in chain(wrong, _order_problems(file.columns, view.schema)):
                    yield f"{view.named(one.partition.values)}/{file.name}: {problem}"


def _order_problems(footer: pa.Schema, schema: TableSchema) -> Iterator[str]:
    known = schema.types()
    order = [name for name in footer.names if name in known]
    if moved := _out_of_order(order, list(known)):
        yield f"{moved} has another position than in the schema"


def _out_of_order(found: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first name that is out of order."""
    there = set(found)
    due = (name for name in wanted if name in there)
    return next((name for name, right in zip(found, due, strict=False) if name != right), None)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


LATELY = timedelta(days=1)
"""How long a change is reported, and how long a table counts as new."""
_CHANGE_REMEDY = (
    "Nothing, if the change is intended. Correct a column of the wrong type with "
    "`datalake retype`; exclude unwanted events with `skip_events`."
)


@dataclass(frozen=True, slots=True)
class Change:
    """The columns that one run added to one table."""

    run_id: str
    dagster_run_id: str
    at: datetime
    columns: tuple[NewColumn, ...]

    @classmethod
    def of(cls, manifest: Manifest, report: TableReport) -> "Change":
        run, at = manifest.run, made(manifest)
        return cls(run.run_id, run.dagster_run_id, at, report.new_columns)

    def __str__(self) -> str:
        named = ", ".join(f"{column.name} {column.type}" for column in self.columns)
        return f"{named} (run {self.run_id}, {self.at:%Y-%m-%d %H:%M})"


Changes = dict[str, list[Change]]
"""By key of the table, oldest first."""


def changes_of(manifests: Iterable[Manifest], since: datetime) -> Changes:
    """Columns that runs added since a timestamp, except to tables that were still new then."""
    changes: Changes = {}
    created: dict[str, datetime] = {}
    # The last manifest of a run reports all its units.
    last = {one.run_id: one for one in sorted(manifests, key=lambda one: one.number)}
    for manifest in last.values():
        at = made(manifest)
        for key, report in manifest.report.tables.items():
            if report.is_new:
                created[key] = at
            is_young = key in created and at - created[key] < LATELY
            if report.new_columns and at >= since and not is_young:
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
    return verdict(schema.key, "schema_change", problems, evidence, _CHANGE_REMEDY)


def made(manifest: Manifest) -> datetime:
    return manifest.made or manifest.run.start_time

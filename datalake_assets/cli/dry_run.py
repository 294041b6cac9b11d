"""`--dry-run` of `sync` and `replay`: shows what a run would change."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from datalake_assets.cli.output import (
    grid,
    not_loaded,
    note,
    number,
    print_json,
    say,
    show,
    warn,
    working,
)
from datalake_assets.preflight import before_run, require
from eventlake.lake import Lake
from eventlake.rules.text import plural
from eventlake.runs.context import Silent
from eventlake.runs.dry_run import PlannedRun, planned_run
from spark_resources.dataflow.job import LakeJob
from spark_resources.engines.base import engine_of

_SHOWN = 20  # rows of each table that is drawn; --json has all
_SHOWN_PARTITIONS = 10
_RARE = ("rejected", "suppressed", "skipped")


def show_planned(job: LakeJob, run: PlannedRun) -> None:
    report, slug = run.report, job.source.slug
    if not run.partitions and not report.rows_in:
        return say(f"{slug}: a {job.kind} would change nothing; there is nothing to load.")
    lost = [plural(report.duplicates, "duplicate")] if report.duplicates else []
    lost += [f"{count:,} {name}" for name in _RARE if (count := getattr(report, name))]
    rest = ", ".join(lost)
    say(
        f"{slug}: a {job.kind} would read {plural(report.rows_in, 'row')} from "
        f"{plural(report.raw_files, 'raw file')} and load {plural(report.row_count, 'row')} into "
        f"{plural(len(report.tables), 'table')}{f' ({rest})' if rest else ''}."
    )
    _show_tables(run)
    _show_partitions(run)
    _show_columns(run)
    _show_casts(run)
    for table, types in run.switches.items():
        requested = ", ".join(f"{column} {type.sql}" for column, type in types.items())
        say(f"{table} would get the requested types: {requested}.")


def _show_tables(run: PlannedRun) -> None:
    found = sorted(run.tables, key=lambda key: (-abs(_change(*run.rows(key))), key))
    rows: list[tuple[object, ...]] = []
    others = not_loaded([run.report])
    for key in found[:_SHOWN]:
        report, marks = run.table(key), [key]
        if report.is_new:
            marks.append(f" new, {plural(len(report.new_columns), 'column')}")
        name = Text.assemble(marks[0], *((mark, "green") for mark in marks[1:]))
        counts = (number(getattr(report, name, 0)) for name in others)
        rows.append((name, *_now_and_then(*run.rows(key)), *counts))
    sums = [run.rows(key) for key in found]
    total = sum(now for now, _ in sums), sum(then for _, then in sums)
    counts = (number(getattr(run.report, name)) for name in others)
    rows.append(("total", *_now_and_then(*total), *counts))
    right = ("rows now", "then", "change", *others)
    _draw(rows, ("table",), right, spare=[*reversed(others)])
    _say_more(len(found), "table")


def _show_partitions(run: PlannedRun) -> None:
    """Partitions whose number of rows would change."""
    changed = [p for p in run.partitions if p.rows_then != p.rows_now]
    changed.sort(key=lambda p: (-abs(_change(p.rows_now, p.rows_then)), p.table, p.values))
    if changed:
        rows = [
            (p.table, "/".join(p.values), *_now_and_then(p.rows_now, p.rows_then))
            for p in changed[:_SHOWN_PARTITIONS]
        ]
        _draw(rows, ("table", "partition"), ("rows now", "then", "change"))
        _say_more(len(changed), "partition", _SHOWN_PARTITIONS)
    if same := len(run.partitions) - len(changed):
        say(f"{plural(same, 'partition')} would be rewritten with as many rows as now.")


def _show_columns(run: PlannedRun) -> None:
    """New columns of existing tables."""
    rows = [
        (key, column.name, column.type)
        for key, table in run.report.tables.items()
        if not table.is_new
        for column in table.new_columns
    ]
    if rows:
        _draw(rows[:_SHOWN], ("table", "new column", "type"))
        _say_more(len(rows), "column")


def _show_casts(run: PlannedRun) -> None:
    losing = sorted(run.losing_casts.items(), key=lambda item: -item[1].failed - item[1].lossy)
    if losing:
        rows = [
            (key, column, number(c.exact), number(c.lossy), number(c.failed))
            for (key, column), c in losing[:_SHOWN]
        ]
        _draw(rows, ("table", "column with casts that lose"), ("exact", "lossy", "failed"))
        _say_more(len(losing), "column")


def _draw(
    rows: Sequence[Sequence[object]],
    left: tuple[str, ...],
    right: tuple[str, ...] = (),
    spare: Sequence[str] = (),
) -> None:
    say("")
    show(grid(rows, left, right, spare))


def _say_more(found: int, noun: str, shown: int = _SHOWN) -> None:
    if found > shown:
        note(f"… and {plural(found - shown, f'more {noun}')}; --json lists all")


def _change(now: int, then: int | None) -> int:
    return (then or 0) - now


def _now_and_then(now: int, then: int | None) -> tuple[object, ...]:
    change = _change(now, then)
    style = "green" if change > 0 else "red" if change < 0 else "dim"
    after = Text("dropped", "red") if then is None else number(then)
    return number(now), after, Text(f"{change:+,}" if change else "0", style)


class _Listener(Silent):
    """Prints the messages of a dry run, and collects its warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def log(self, message: str) -> None:
        note(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)
        warn(message)


def dry_run(lake: Lake, jobs: Sequence[LakeJob], as_json: bool) -> None:
    """Plan each job and show its effect."""
    require(before_run(lake, [job.source for job in jobs]))
    engine, answers = engine_of(lake.settings), list[dict[str, Any]]()
    for job in jobs:
        listener = _Listener()
        with working(f"dry {job.kind} of {job.source.slug}"):
            run = planned_run(engine.run(job, listener))
        answers.append(_as_dict(job, run, listener.warnings))
        if not as_json:
            show_planned(job, run)
    if as_json:
        print_json(answers)
    note("Nothing was changed (--dry-run).")


def _as_dict(job: LakeJob, run: PlannedRun, warnings: list[str]) -> dict[str, Any]:
    report = run.report
    window = dict(zip(("replay_from", "replay_to"), job.window or (), strict=False))
    return {
        "source": job.source.slug,
        "source_id": job.source.id,
        "dry_run": True,
        "replay": job.window is not None,
        **window,
        **_numbers(report, "rows_in", "row_count", "duplicates", *_RARE, "raw_files"),
        "tables": [_table(job, run, key) for key in run.tables],
        "types": {key: {c: t.sql for c, t in types.items()} for key, types in run.switches.items()},
        "warnings": warnings,
    }


def _numbers(report: object, *names: str) -> dict[str, int]:
    return {name: getattr(report, name) for name in names}


def _table(job: LakeJob, run: PlannedRun, key: str) -> dict[str, Any]:
    """The changes of a table; one without new rows has only dropped partitions."""
    report, (now, then) = run.table(key), run.rows(key)
    return {
        "table": key,
        "is_new": report.is_new,
        "rows_now": now,
        "rows_then": then,
        **_numbers(report, "rows_in", "row_count", "duplicates", "rejected", "rescued_cells"),
        "new_columns": report.new_columns,
        "losing_casts": {
            column: counts for (table, column), counts in run.losing_casts.items() if table == key
        },
        "partitions": [
            {
                **dict(zip(job.source.date_partition.keys, partition.values, strict=True)),
                "rows_now": partition.rows_now,
                "rows_then": partition.rows_then,
            }
            for partition in run.partitions
            if partition.table == key
        ],
    }

"""`datalake reports`: the results of syncs and replays."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Annotated

import typer

from datalake_assets.cli.invocation import AsJson, SourceOption, invocation
from datalake_assets.cli.output import (
    fail,
    grid,
    headline,
    moment,
    not_loaded,
    note,
    number,
    print_json,
    say,
    show,
    size,
    span,
)
from eventlake.lake import Lake
from eventlake.rules.errors import UsageError
from eventlake.rules.text import plain, plural
from eventlake.runs.report_history import RunReport, newest_reports, report_of


def reports(
    context: typer.Context,
    source: SourceOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of runs.")] = 20,
    failed: Annotated[bool, typer.Option("--failed", help="Only runs that failed.")] = False,
    run: Annotated[
        str | None, typer.Option(help="The tables of one run: its id or Dagster's, or latest.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what syncs and replays did, newest first.

    \b
    Examples:
      datalake reports
      datalake reports --source ios_prod --failed
      datalake reports --run 1790899200000000000
    """
    lake = invocation(context).lake()
    ids = None if source is None else {lake.settings.source(source).id}
    found = newest_reports(lake, ids)
    if run is not None:
        return _one_run(run, found, as_json)
    runs = list(islice((r for r in found if r.failed or not failed), limit))
    if as_json:
        return print_json([report.source for report in runs])
    if not runs:
        return note(
            "No run has failed." if failed else "No reports yet: `datalake sync` creates one."
        )
    show_reports(lake, runs)
    for report in runs:
        if report.failed or report.damaged:
            fail(f"run {report.run_id}: {headline(report.source.error or '')}")


def show_reports(lake: Lake, runs: Iterable[RunReport]) -> None:
    runs = list(runs)
    others = not_loaded(run.source for run in runs)
    slugs = {source.id: source.slug for source in lake.settings.sources}
    show(
        grid(
            [_row(report, slugs, others) for report in runs],
            left=("started (UTC)", "source", "kind", "status", "new"),
            right=("rows", *others, "time", "run"),
            spare=("time", "duplicates", "kind", "new", *others[1:]),
        )
    )


def _row(report: RunReport, slugs: dict[str, str], others: Sequence[str]) -> tuple[object, ...]:
    line = report.source
    return (
        moment(report.started),
        slugs.get(line.source_id, line.source_id),
        "replay" if report.is_replay else "sync",
        line.status,
        what_is_new(report),
        *(number(getattr(line, name)) for name in ("row_count", *others)),
        span(report.seconds),
        report.run_id,
    )


def what_is_new(report: RunReport) -> str:
    parts: list[str] = []
    if report.new_tables:
        parts.append(plural(len(report.new_tables), "table"))
    if report.new_columns:
        parts.append(plural(len(report.new_columns), "column"))
    return ", ".join(parts)


def _one_run(run: str, found: Iterable[RunReport], as_json: bool) -> None:
    match = report_of(found, run)
    if match is None:
        raise UsageError(
            f"No report has the run id {run!r}. `datalake reports` lists them; a run gets its "
            "report when it ends."
        )
    if as_json:
        return print_json([match.source, *match.tables])
    line = match.source
    kind = "Replay" if match.is_replay else "Sync"
    say(
        f"{kind} {match.run_id} of {plain(line.database)}: {line.status} after "
        f"{span(match.seconds)}, {plural(line.rows_in, 'row')} in, "
        f"{line.row_count:,} loaded, {plural(line.duplicates, 'duplicate')}, "
        f"{line.rejected:,} rejected, {line.suppressed:,} suppressed, {line.skipped:,} skipped, "
        f"{plural(line.raw_files or 0, 'raw file')}"
    )
    if match.failed or match.damaged:
        return fail(f"{line.error_code or ''}: {line.error or ''}")
    others = not_loaded(match.tables)
    rows = [
        (
            table.table_name,
            "table" if table.is_new else "",
            *(number(getattr(table, name)) for name in ("row_count", *others)),
            number(len(table.new_columns or ())),
            number(len(table.partitions or ())),
            size(table.bytes_written),
        )
        for table in sorted(match.tables, key=lambda table: table.table_name)
    ]
    right = ("rows", *others, "new columns", "partitions", "size")
    spare = ("size", "partitions", *reversed(others))
    show(grid(rows, left=("table", "new"), right=right, spare=spare))

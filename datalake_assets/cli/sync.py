"""`datalake sync` and `datalake replay`: runs in this process, through Dagster.

Dagster is imported in functions: it takes a second, in which Spark starts beside it (`prepare`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from datalake_assets.cli.invocation import TO, AsJson, DryRun, RequiredSource, invocation
from datalake_assets.cli.output import (
    fail,
    grid,
    headline,
    not_loaded,
    note,
    number,
    print_json,
    show,
    span,
    working,
)
from datalake_assets.cli.reports import what_is_new
from datalake_assets.preflight import prepare
from eventlake.lake import Lake
from eventlake.rules.clock import parse_range, touched_days
from eventlake.rules.errors import UsageError
from eventlake.runs.report_history import RunReport
from eventlake.runs.unit import Window
from eventlake.settings.models import Source

if TYPE_CHECKING:
    from datalake_assets.launch import Outcome


def sync(
    context: typer.Context,
    source: Annotated[
        str | None, typer.Option(help="Slug or id. Default: every enabled source in turn.")
    ] = None,
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="T", help="Only day folders from this hour on (UTC)."),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="T", help="Only day folders before this hour.")
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Load every raw file that is not in the lake yet.

    Times are hours in UTC, YYYY-MM-DDTHH; --to is exclusive. Dagster's UI shows the run.

    \b
    Examples:
      datalake sync
      datalake sync --source ios_prod --dry-run
      datalake sync --source ios_prod --from 2026-10-01T00 --to 2026-10-03T00
    """
    lake = invocation(context).lake()
    if (first is None) != (end is None):
        raise UsageError("--from and --to go together: give both, or neither.")
    hours = parse_range(first, end) if first and end else None
    settings = lake.settings
    chosen = [settings.source(source)] if source else [s for s in settings.sources if s.enabled]
    if not chosen:
        raise UsageError(
            "No source is enabled. Name one with --source, or set `enabled: true` in lake.yaml."
        )
    if dry_run:
        from datalake_assets.assets.running import new_job
        from datalake_assets.cli.dry_run import dry_run as show_dry_run

        days = touched_days(*hours) if hours else None
        jobs = [new_job(settings, one, "", days=days, dry_run=True) for one in chosen]
        return show_dry_run(lake, jobs, as_json)
    prepare(lake, chosen)
    from datalake_assets.launch import launch_sync

    runs: list[Done] = []
    for one in chosen:
        note(f"Syncing {one.slug}")
        with working(f"syncing {one.slug}"):
            runs.append(reported(lake, one, launch_sync(lake, one, hours)))
    finish(runs, as_json)


def replay(
    context: typer.Context,
    source: RequiredSource,
    first: Annotated[str, typer.Option("--from", metavar="T", help="The first hour (UTC).")],
    end: Annotated[str, TO],
    table: Annotated[
        list[str] | None, typer.Option(help="Only this table; may be repeated. Default: all.")
    ] = None,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes",
            help="Load raw files as they are now, even if changed or removed after loading.",
        ),
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Load a past range again from the raw archive and replace its rows, day by day.

    Times are hours in UTC, YYYY-MM-DDTHH; --to is exclusive. Dagster's UI shows the run. To
    continue an interrupted replay after its last published day, launch it again unchanged.

    \b
    Examples:
      datalake replay --source ios_prod --from 2026-10-01 --to 2026-10-08
      datalake replay --source ios_prod --from 2026-10-01T07 --to 2026-10-01T08 --dry-run
      datalake replay --source web --from 2026-10-01 --to 2026-10-02 --table page
    """
    lake = invocation(context).lake()
    chosen = lake.settings.source(source)
    window = Window(*parse_range(first, end))
    tables = tuple(chosen.own_table(one) for one in table) if table else None
    if not dry_run:
        prepare(lake, [chosen], replay=True)
    from datalake_assets.launch import launch_replay, refuse_replay

    if dry_run:
        from datalake_assets.assets.running import new_job
        from datalake_assets.cli.dry_run import dry_run as show_dry_run

        refuse_replay(lake, chosen, window, tables)
        job = new_job(lake.settings, chosen, "", window=window, tables=tables, dry_run=True)
        return show_dry_run(lake, [job], as_json)
    note(f"Replaying {chosen.slug}, {window}")
    with working(f"replaying {chosen.slug}"):
        outcome = launch_replay(lake, chosen, window, tables, accept_changes)
        done = reported(lake, chosen, outcome)
    finish([done], as_json)


@dataclass(frozen=True, slots=True)
class Done:
    """A run that has ended, with its report if it wrote one."""

    source: Source
    outcome: "Outcome"
    report: RunReport | None

    @property
    def error(self) -> str:
        """The error: in full if it was expected, else one line."""
        error = self.report.source.error if self.report else self.outcome.error
        return headline(error) if "Traceback" in str(error) else str(error)


def reported(lake: Lake, source: Source, outcome: "Outcome") -> Done:
    """Find the report of a run that has ended."""
    from datalake_assets.launch import report_of_run

    return Done(source, outcome, report_of_run(lake, source, outcome))


def finish(runs: Sequence[Done], as_json: bool) -> None:
    """Print the results of the runs; exit with their code."""
    if as_json:
        print_json([run.report.source for run in runs if run.report])
    else:
        show_runs(runs)
    for run in runs:
        if not run.outcome.succeeded:
            fail(f"{run.source.slug}: {run.error}")
    raise typer.Exit(max(exit_code(run.outcome) for run in runs))


def exit_code(outcome: "Outcome") -> int:
    return 0 if outcome.succeeded else outcome.exit_code or 1


def show_runs(runs: Sequence[Done]) -> None:
    others = not_loaded(run.report.source for run in runs if run.report)
    show(
        grid(
            [_row(run, others) for run in runs],
            left=("source", "status", "new"),
            right=("rows", *others, "time", "run"),
            spare=("time", *others),
        )
    )


def _row(run: Done, others: Sequence[str]) -> tuple[object, ...]:
    status = "finished" if run.outcome.succeeded else "failed"
    report, line = run.report, run.report and run.report.source
    if report is None:
        dagster_id = run.outcome.dagster_run_id.split("-")[0]
        return (run.source.slug, status, "", *[number(None)] * (len(others) + 2), dagster_id)
    counts = (number(getattr(line, name)) for name in ("row_count", *others))
    seconds = span(report.seconds)
    return (run.source.slug, status, what_is_new(report), *counts, seconds, report.run_id)

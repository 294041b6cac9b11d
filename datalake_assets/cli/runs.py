"""What `sync` and `replay` share: looking before they leap, and telling how it went."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import typer

from datalake_assets.cli.output import fail, grid, print_json, show
from datalake_assets.cli.reports import what_is_new
from datalake_assets.cli.text import headline, number, span
from datalake_assets.instance.home import ensure_home
from datalake_assets.launch import Outcome
from datalake_assets.preflight import before_run, require
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError
from eventlake.runs.report_history import RunReport, newest_reports
from eventlake.settings.models import Source


@dataclass(frozen=True, slots=True)
class Done:
    """A run that is over, with its report if it came to have one."""

    source: Source
    outcome: Outcome
    report: RunReport | None

    @property
    def error(self) -> str:
        """What went wrong: in full if it was foreseen, else in a line."""
        told = self.report.source.error if self.report else self.outcome.error
        return headline(told) if "Traceback" in str(told) else str(told)


def prepare(lake: Lake, sources: Sequence[Source]) -> None:
    """Refuse what cannot work before anything is written; then give Dagster its home."""
    require(before_run(lake, sources))
    ensure_home(lake.settings)
    # On Ctrl-C py4j would log how its connections break, in three stack traces.
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)


def reported(lake: Lake, source: Source, outcome: Outcome) -> Done:
    """A run that is over, with its own report if that can be read."""
    recent = islice(newest_reports(lake.for_source(source), {source.id}), 100)
    mine = (run for run in recent if run.dagster_run_id == outcome.dagster_run_id)
    try:
        return Done(source, outcome, next(mine, None))
    except (LakeError, OSError):
        if outcome.succeeded:
            raise
        return Done(source, outcome, None)  # what made the run fail is told, not what followed


def tell(runs: Sequence[Done], as_json: bool) -> None:
    """Print what the runs did, and end the program as they ended."""
    if as_json:
        print_json([run.report.source for run in runs if run.report])
    else:
        show_runs(runs)
    for run in runs:
        if not run.outcome.succeeded:
            fail(f"{run.source.slug}: {run.error}")
    raise typer.Exit(max(exit_code(run.outcome) for run in runs))


def exit_code(outcome: Outcome) -> int:
    return 0 if outcome.succeeded else outcome.exit_code or 1


def show_runs(runs: Sequence[Done]) -> None:
    show(
        grid(
            [_row(run) for run in runs],
            left=("source", "status", "new"),
            right=("rows", "duplicates", "rejected", "time", "dagster run"),
            spare=("dagster run", "time", "duplicates", "rejected"),
        )
    )


def _row(run: Done) -> tuple[object, ...]:
    status = "finished" if run.outcome.succeeded else "failed"
    report, dagster_id = run.report, run.outcome.dagster_run_id.split("-")[0]
    if report is None:
        return (run.source.slug, status, "", *[number(None)] * 4, dagster_id)
    line = report.source
    counts = (number(count) for count in (line.row_count, line.duplicates, line.rejected))
    return (run.source.slug, status, what_is_new(report), *counts, span(report.seconds), dagster_id)

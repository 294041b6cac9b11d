"""`datalake replay`: a past range once more from the raw archive."""

from typing import Annotated

import typer

from datalake_assets.assets.running import new_job
from datalake_assets.cli.dry_run import dry_run
from datalake_assets.cli.invocation import TO, AsJson, DryRun, RequiredSource, invocation
from datalake_assets.cli.output import note, working
from datalake_assets.cli.runs import prepare, reported, tell
from datalake_assets.launch import launch_replay, refuse_replay
from eventlake.lake import Lake
from eventlake.rules.clock import parse_range
from eventlake.runs.unit import Window
from eventlake.settings.models import Source


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
            help="Take raw files that were changed or removed after loading as they are now.",
        ),
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Load a past range again from the raw archive and replace its rows, day by day.

    Times are hours of UTC, YYYY-MM-DDTHH; --to is exclusive. Dagster's UI shows the run. One that
    was interrupted goes on after its last published day if it is launched again as it was.

    \b
    Examples:
      datalake replay --source ios_prod --from 2026-10-01 --to 2026-10-08
      datalake replay --source ios_prod --from 2026-10-01T07 --to 2026-10-01T08 --dry-run
      datalake replay --source web --from 2026-10-01 --to 2026-10-02 --table page
    """
    lake = invocation(context).lake()
    chosen = lake.settings.source(source)
    window = Window(*parse_range(first, end))
    tables = tuple(table) if table else None
    if dry_run:
        return _dry_run(lake, chosen, window, tables, as_json)
    prepare(lake, [chosen])
    note(f"Replaying {chosen.slug}, {window}")
    with working(f"replaying {chosen.slug}"):
        outcome = launch_replay(lake, chosen, window, tables, accept_changes)
        done = reported(lake, chosen, outcome)
    tell([done], as_json)


def _dry_run(
    lake: Lake,
    source: Source,
    window: Window,
    tables: tuple[str, ...] | None,
    as_json: bool,
) -> None:
    refuse_replay(lake, source, window, tables)
    job = new_job(lake.settings, source, "", window=window, tables=tables, dry_run=True)
    dry_run(lake, [job], as_json)

"""`datalake sync`: new raw files into the lake, here and now."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from datalake_assets.assets.running import new_job
from datalake_assets.cli.dry_run import dry_run
from datalake_assets.cli.invocation import AsJson, DryRun, invocation
from datalake_assets.cli.output import note, working
from datalake_assets.cli.runs import Done, prepare, reported, tell
from datalake_assets.launch import launch_sync
from eventlake.lake import Lake
from eventlake.rules.clock import parse_range, touched_days
from eventlake.rules.errors import UsageError
from eventlake.settings.models import Source


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

    Times are hours of UTC, YYYY-MM-DDTHH; --to is exclusive. Dagster's UI shows the run.

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
        return _dry_run(lake, chosen, hours, as_json)
    prepare(lake, chosen)
    runs: list[Done] = []
    for one in chosen:
        note(f"Syncing {one.slug}")
        with working(f"syncing {one.slug}"):
            runs.append(reported(lake, one, launch_sync(lake, one, hours)))
    tell(runs, as_json)


def _dry_run(
    lake: Lake,
    sources: Sequence[Source],
    hours: tuple[datetime, datetime] | None,
    as_json: bool,
) -> None:
    days = touched_days(*hours) if hours else None
    dry_run(
        lake, [new_job(lake.settings, s, "", days=days, dry_run=True) for s in sources], as_json
    )

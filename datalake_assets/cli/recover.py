"""`datalake recover`: finish and clear away what runs that died have left."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from datalake_assets.cli.invocation import AsJson, SourceOption, chosen_sources, invocation
from datalake_assets.cli.output import note, print_json, say, warn, working
from datalake_assets.cli.text import plural, size
from eventlake.checks.repair import repair_catalog
from eventlake.lake import Lake
from eventlake.settings.models import Source
from eventlake.upkeep.recovery import Recovery
from eventlake.upkeep.recovery import recover as recover_source


def recover(
    context: typer.Context,
    source: SourceOption = None,
    catalog: Annotated[
        bool, typer.Option("--catalog", help="Put back what somebody changed in the catalog.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Finish the commits of crashed runs, write their reports, remove their leftovers.

    The next run of a source does the same; this is for those who do not want to wait for it.
    Runs that are alive are left alone, and files that were replaced stay for the hours that
    `retention.replaced_hours` says. Doing it twice does no harm.

    With --catalog all tables and partitions are held against all that was ever published, and
    registered as it says: for when a check finds drift, or the catalog was lost.

    \b
    Examples:
      datalake recover
      datalake recover --source ios_prod
      datalake recover --catalog
    """
    lake = invocation(context).lake()
    chosen = chosen_sources(lake, source)
    told: list[dict[str, Any]] = []
    for one in chosen:
        with working(f"recovering {one.slug}"):
            done = recover_source(lake, one, datetime.now(UTC))
        told.append(_as_dict(done))
        if not as_json:
            _tell(done)
        if catalog:
            told[-1] |= _repair_catalog(lake, one, quiet=as_json)
    if as_json:
        print_json(told)


def _repair_catalog(lake: Lake, source: Source, quiet: bool) -> dict[str, Any]:
    with working(f"repairing the catalog of {source.slug}"):
        repaired = repair_catalog(
            lake, source, lambda lease: note(f"{source.slug}: waits for {lease}")
        )
    registered, foreign = sum(repaired.registered.values()), sum(repaired.unregistered.values())
    if not quiet:
        lines = (
            (len(repaired.entries), "restored {} in the catalog.", "table"),
            (registered, "registered {} again.", "partition"),
            (foreign, "took {} out of the catalog that nobody had published.", "partition"),
        )
        for count, line, what in lines:
            if count:
                say(f"{source.slug}: {line.format(plural(count, what))}")
        for table, rows in repaired.lost_rows.items():
            warn(
                f"{table}: partitions with {rows:,} rows are missing in the catalog, and what "
                "published them is no longer known. Replay the days of the table."
            )
        if not repaired:
            say(f"{source.slug}: the catalog is as it was published.")
    return {
        "tables_restored": repaired.entries,
        "partitions_registered": registered,
        "partitions_unregistered": foreign,
        "rows_lost": repaired.lost_rows,
    }


def _tell(done: Recovery) -> None:
    slug = done.source.slug
    for line in _done(done) or ["nothing to do."]:
        say(f"{slug}: {line}")
    if done.at_work:
        note(f"{slug}: at work: {done.at_work}; left alone")


def _done(done: Recovery) -> list[str]:
    cleaned = done.cleaned
    lines: list[str] = []
    if done.applied:
        commits = plural(len(done.applied), "commit")
        lines.append(f"finished {commits} that readers could not see yet.")
    for run_id in done.closed:
        lines.append(f"run {run_id} had died without a report; it now has a failed one.")
    if done.freed:
        lines.append(f"freed the lease that {done.freed} left behind.")
    if cleaned.replaced.files:
        lines.append(f"removed {_files(cleaned.replaced)} that were replaced some time ago.")
    if cleaned.abandoned.files:
        lines.append(f"removed {_files(cleaned.abandoned)} that failed runs had left.")
    if cleaned.staging:
        lines.append(f"cleared the staging of {plural(len(cleaned.staging), 'run')} now over.")
    return lines


def _files(removed: Any) -> str:
    return f"{plural(removed.files, 'file')} ({size(removed.bytes)})"


def _as_dict(done: Recovery) -> dict[str, Any]:
    cleaned = done.cleaned
    return {
        "source": done.source.slug,
        "manifests_applied": done.applied,
        "runs_closed": done.closed,
        "lease_freed": done.freed.run_id if done.freed else None,
        "replaced": {"files": cleaned.replaced.files, "bytes": cleaned.replaced.bytes},
        "abandoned": {"files": cleaned.abandoned.files, "bytes": cleaned.abandoned.bytes},
        "staging_cleared": cleaned.staging,
        "at_work": done.at_work.run_id if done.at_work else None,
    }

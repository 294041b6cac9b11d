"""`datalake recover`: finishes and removes what crashed runs have left."""

from typing import Annotated, Any

import msgspec
import typer

from datalake_assets.cli.invocation import AsJson, SourceOption, chosen_sources, invocation
from datalake_assets.cli.output import note, print_json, say, size, warn, working
from eventlake.checks.repair import repair_catalog
from eventlake.lake import Lake
from eventlake.rules import clock
from eventlake.rules.text import plural
from eventlake.settings.models import Source
from eventlake.upkeep.recovery import Recovery, rebuild
from eventlake.upkeep.recovery import recover as recover_source


def recover(
    context: typer.Context,
    source: SourceOption = None,
    catalog: Annotated[
        bool, typer.Option("--catalog", help="Undo changes that others made to the catalog.")
    ] = False,
    from_data: Annotated[
        bool, typer.Option("--from-data", help="Rebuild a lost state from the data files.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Finish the commits of crashed runs, write their reports, remove their leftovers.

    The next run of a source does the same, so this is for when you do not want to wait. It leaves
    live runs alone, and replaced files until `retention.replaced_hours` have passed. Repeating it
    is safe. Damaged reports are written again from what their runs committed.

    With --catalog, it compares all tables and partitions with everything that was ever published
    and registers them again: use it after a check found drift, or if the catalog was lost.

    With --from-data the state (`segment-data/_state`) is made again: partitions, tables and the id
    index from the data files, reports and the catalog. Use it when the state is lost and there is
    no backup. The next sync then reads all raw files and recognises rows of the lake by their ids;
    set `start` to the first day that was loaded before.

    \b
    Examples:
      datalake recover
      datalake recover --source ios_prod
      datalake recover --catalog
      datalake recover --from-data --source ios_prod
    """
    lake = invocation(context).lake()
    chosen = chosen_sources(lake, source)
    results: list[dict[str, Any]] = []
    for one in chosen:
        rebuilt = _rebuild(lake, one, quiet=as_json) if from_data else {}
        repaired = _repair_catalog(lake, one, quiet=as_json) if catalog else {}
        with working(f"recovering {one.slug}"):
            done = recover_source(lake, one, clock.now())
        results.append(_as_dict(done) | rebuilt | repaired)
        if not as_json:
            _show(done)
    if as_json:
        print_json(results)


def _rebuild(lake: Lake, source: Source, quiet: bool) -> dict[str, Any]:
    with working(f"rebuilding the state of {source.slug}"):
        done = rebuild(lake, source, lambda lease: note(f"{source.slug}: waits for {lease}"))
    if not quiet:
        say(
            f"{source.slug}: the state has {plural(done.tables, 'table')}, "
            f"{plural(done.partitions, 'partition')} and {plural(done.rows, 'row')} from "
            f"{plural(done.files, 'data file')}."
        )
        for folder in done.doubtful:
            warn(f"{folder} may not be the last content of its partition: replay its day.")
        for folder in done.left_out:
            warn(
                f"{folder} is left out: its partition was dropped, is not in the catalog, or has "
                "other types than the table. If rows are missing, replay its day."
            )
    return {"from_data": msgspec.to_builtins(done)}


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
            (foreign, "removed {} from the catalog that no run had published.", "partition"),
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


def _show(done: Recovery) -> None:
    slug = done.source.slug
    for line in _done(done) or ["nothing to do."]:
        say(f"{slug}: {line}")
    if done.at_work:
        note(f"{slug}: running: {done.at_work}; not changed")


def _done(done: Recovery) -> list[str]:
    cleaned = done.cleaned
    lines: list[str] = []
    if done.applied:
        commits = plural(len(done.applied), "commit")
        lines.append(f"finished {commits} that readers could not see yet.")
    for run_id in done.closed:
        lines.append(f"run {run_id} crashed without a report; it now has a failed one.")
    for run_id in done.reports.rewritten:
        lines.append(f"wrote the damaged report of run {run_id} again.")
    for run_id in done.reports.removed:
        lines.append(f"removed the damaged report of run {run_id}: nothing else is known of it.")
    if done.freed:
        lines.append(f"released the lease of {done.freed}.")
    if cleaned.replaced.files:
        lines.append(f"removed {_files(cleaned.replaced)} that were replaced some time ago.")
    if cleaned.abandoned.files:
        lines.append(f"removed {_files(cleaned.abandoned)} of failed runs.")
    if cleaned.staging:
        lines.append(
            f"cleared the staging of {plural(len(cleaned.staging), 'run')} that have ended."
        )
    return lines


def _files(removed: Any) -> str:
    return f"{plural(removed.files, 'file')} ({size(removed.bytes)})"


def _as_dict(done: Recovery) -> dict[str, Any]:
    cleaned = done.cleaned
    return {
        "source": done.source.slug,
        "manifests_applied": done.applied,
        "runs_closed": done.closed,
        "reports_rewritten": done.reports.rewritten,
        "reports_removed": done.reports.removed,
        "lease_freed": done.freed.run_id if done.freed else None,
        "replaced": cleaned.replaced,
        "abandoned": cleaned.abandoned,
        "staging_cleared": cleaned.staging,
        "at_work": done.at_work.run_id if done.at_work else None,
    }

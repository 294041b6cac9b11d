"""`datalake upkeep`: compacts small files and removes what is no longer needed."""

from collections.abc import Sequence
from typing import Any

import msgspec
import typer

from datalake_assets.cli.invocation import AsJson, DryRun, SourceOption, chosen_sources, invocation
from datalake_assets.cli.output import (
    fail,
    grid,
    note,
    number,
    print_json,
    say,
    show,
    size,
    warn,
    working,
)
from datalake_assets.instance.home import ensure_home
from eventlake.lake import Lake
from eventlake.rules.text import plural
from eventlake.runs.context import Silent, now
from eventlake.settings.models import Source
from eventlake.upkeep.upkeep import UpkeepReport, newest_upkeeps, planned_upkeep, upkeep_context


def upkeep(
    context: typer.Context,
    source: SourceOption = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Compact small files and remove what is no longer needed.

    Runs once a day by schedule; readers and syncs need not stop for it. In lake.yaml, `retention`
    sets what is removed and when, `compaction` what is compacted. Dagster's UI shows the run.

    \b
    Examples:
      datalake upkeep --dry-run
      datalake upkeep --source ios_prod
    """
    lake = invocation(context).lake()
    chosen = chosen_sources(lake, source)
    reports, problems = (_planned if dry_run else _done)(lake, chosen)
    if as_json:
        print_json([_as_dict(lake, one) for one in reports])
    else:
        for one in reports:
            _show(lake.settings.source(one.source_id), one)
    for problem in problems:
        fail(problem)
    raise typer.Exit(1 if problems else 0)


Outcome = tuple[list[UpkeepReport], list[str]]


def _planned(lake: Lake, sources: Sequence[Source]) -> Outcome:
    listener = _Quiet()
    return [planned_upkeep(upkeep_context(lake, one, listener), now()) for one in sources], []


def _done(lake: Lake, sources: Sequence[Source]) -> Outcome:
    ensure_home(lake.settings)
    from datalake_assets.launch import launch_upkeep

    reports: list[UpkeepReport] = []
    problems: list[str] = []
    for one in sources:
        with working(f"upkeep of {one.slug}"):
            outcome = launch_upkeep(lake, one)
        if not outcome.succeeded:
            problems.append(f"{one.slug}: {outcome.error}")
        kept = newest_upkeeps(lake.for_source(one).storage, one.id)
        reports += [r for r in kept if r.dagster_run_id == outcome.dagster_run_id][:1]
    return reports, problems


class _Quiet(Silent):
    """A dry run does nothing that is worth a message."""

    def warn(self, message: str) -> None:
        warn(message)


def _show(source: Source, one: UpkeepReport) -> None:
    say(f"{source.slug}{': what an upkeep would do' if one.dry_run else ''}", style="bold")
    before, after = one.before, one.after
    if not one.dry_run:
        rows = [
            (
                area,
                number(before[area].files),
                number(after[area].files),
                size(before[area].bytes),
                size(after[area].bytes),
            )
            for area in before
        ]
        show(grid(rows, left=("kind",), right=("files", "files after", "bytes", "bytes after")))
    for line in _lines(one):
        say(f"  {line}")
    if one.orphans.files:
        note(
            f"  {plural(one.orphans.files, 'file')} ({size(one.orphans.bytes)}) not referenced; "
            f"deleted {plural(source.retention.orphan_days, 'day')} after they were first seen"
        )


def _lines(one: UpkeepReport) -> list[str]:
    would = "would be " if one.dry_run else ""
    lines: list[str] = []
    done = one.compacted
    if done.partitions:
        lines.append(
            f"{plural(done.partitions, 'partition')} {would}compacted: "
            f"{plural(done.files_before, 'file')} to {number(done.files_after)}"
        )
    if one.came_home.files:
        files = f"{plural(one.came_home.files, 'file')}, {size(one.came_home.bytes)}"
        lines.append(f"{would}moved to their documented folders: {files}")
    for reason, gone in one.removed.items():
        if gone.files:
            files = f"{plural(gone.files, 'file')}, {size(gone.bytes)}"
            lines.append(f"{would}removed ({reason}): {files}")
    if one.index_days:
        days = plural(len(one.index_days), "day")
        lines.append(f"{days} {would}dropped from the id index, up to {one.index_days[-1]}")
    return lines or ["nothing to do"]


def _as_dict(lake: Lake, one: UpkeepReport) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(one)
    return {"source": lake.settings.source(one.source_id).slug, **found}

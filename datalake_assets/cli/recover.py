"""`datalake recover`: finish and clear away what runs that died have left."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datalake_assets.cli.invocation import invocation
from datalake_assets.cli.output import note, print_json, say, working
from datalake_assets.cli.text import plural, size

if TYPE_CHECKING:
    from lake.upkeep.recovery import Recovery


def recover(
    context: typer.Context,
    source: Annotated[str | None, typer.Option(help="Slug or id. Default: all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Finish what dead runs had committed, write their reports, clear away what they left.

    The next run of a source does the same; this is for those who do not want to wait for it.
    Runs that are alive are left alone, and files that were replaced stay for the hours that
    `retention.replaced_hours` says. Doing it twice does no harm.

    \b
    Examples:
      datalake recover
      datalake recover --source ios_prod
    """
    from lake.upkeep.recovery import recover as recover_source

    lake = invocation(context).lake()
    chosen = lake.settings.sources if source is None else (lake.settings.source(source),)
    done: list[Recovery] = []
    for one in chosen:
        with working(f"recovering {one.slug}"):
            done.append(recover_source(lake, one, datetime.now(UTC)))
        if not as_json:
            _tell(done[-1])
    if as_json:
        print_json([_as_dict(one) for one in done])


def _tell(done: "Recovery") -> None:
    slug = done.source.slug
    for line in _done(done) or ["nothing to do."]:
        say(f"{slug}: {line}")
    if done.at_work:
        note(f"{slug}: at work: {done.at_work}; left alone")


def _done(done: "Recovery") -> list[str]:
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


def _as_dict(done: "Recovery") -> dict[str, Any]:
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

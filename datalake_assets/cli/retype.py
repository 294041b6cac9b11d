"""`datalake retype`: previews another type for a column, and requests it."""

import sys
from datetime import timedelta
from typing import Annotated, Any

import typer

from datalake_assets.cli.invocation import DryRun, invocation
from datalake_assets.cli.output import grid, note, number, print_json, say, show, working
from eventlake.lake import Lake
from eventlake.retype import (
    PartitionPreview,
    Preview,
    Target,
    days_to_replay,
    find_column,
    parse_type,
    preview,
    record_request,
)
from eventlake.rules.text import plain, plural
from eventlake.rules.types import LakeType
from eventlake.state.lease import Lease

_SHOWN = 20  # partitions; those with losses come first
_COUNTS = ("rows", "exact", "lossy", "failed", "returning")


def retype(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="DB.TABLE.COLUMN")],
    type: Annotated[
        str,
        typer.Argument(metavar="TYPE", help="bigint, boolean, decimal, string or timestamp."),
    ],
    dry_run: DryRun = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Record the request without asking.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; never asks.")] = False,
) -> None:
    """Show the effect of another type for a column, then request it.

    It counts the values in the lake's files: those that fit exactly, lose precision (lossy) or do
    not fit (failed), and those that return from rescued_data, which keeps lossy and failed values.
    Syncs go on with the old type; a replay of all days of the table switches files and catalog
    together. To withdraw a request, request the type that the column has.

    \b
    Examples:
      datalake retype ios_prod.track_order_completed.properties_total decimal --dry-run
      datalake retype ios_prod.track_order_completed.properties_total decimal --yes
    """
    lake = invocation(context).lake()
    into, target = parse_type(type), find_column(lake, name)
    if into is target.column.type:
        return _keep(lake, target, dry_run, as_json)
    with working(f"reading {target.name}"):
        seen = preview(lake, target, into)
    if not as_json:
        _show(target, into, seen)
    recorded = not dry_run and _confirmed(yes, ask=not as_json)
    if recorded and target.requested is not into:
        _record(lake, target, into)
    if as_json:
        return print_json(_as_dict(target, into, seen) | {"recorded": recorded})
    if recorded:
        say(f"Recorded. Syncs keep {target.column.type.sql}. This replay switches the table:")
        say(f"  {_replay(lake, target)}")
    elif dry_run:
        note("Nothing was recorded (--dry-run).")
    else:
        note(f"Nothing was recorded. To do so: datalake retype {target.name} {type} --yes")


def _keep(lake: Lake, target: Target, dry_run: bool, as_json: bool) -> None:
    """The column has that type already: withdraw the request, if there is one."""
    has, requested = target.column.type.sql, target.requested
    if requested is not None and not dry_run:
        _record(lake, target, None)
    if as_json:
        withdrawn = requested is not None and not dry_run
        return print_json({"column": target.name, "type": has, "withdrawn": withdrawn})
    if requested is None:
        say(f"{target.name} is {has} already; nothing to do.")
    elif dry_run:
        say(
            f"{target.name} is {has}; the request for {requested.sql} would be withdrawn "
            "(--dry-run)."
        )
    else:
        say(f"{target.name} stays {has}; the request for {requested.sql} is withdrawn.")


def _record(lake: Lake, target: Target, type: LakeType | None) -> None:
    def waiting(lease: Lease) -> None:
        note(f"Waiting for {lease} on source {target.source.slug}")

    record_request(lake, target, type, waiting)


def _confirmed(yes: bool, ask: bool) -> bool:
    if yes or not ask or not sys.stdin.isatty():
        return yes
    return typer.confirm("Record the request for this type?", err=True)


def _replay(lake: Lake, target: Target) -> str:
    """The replay that applies the request."""
    first, last = days_to_replay(lake, target)
    return (
        f"datalake replay --source {target.source.slug} --from {first} "
        f"--to {last + timedelta(days=1)} --table {target.schema.table}"
    )


def _show(target: Target, into: LakeType, seen: Preview) -> None:
    has = target.column.type.sql
    request = f" (already requested: {target.requested.sql})" if target.requested else ""
    say(f"{target.name}, now {has}, as {into.sql}{request}")
    by_loss = sorted(seen.partitions, key=lambda part: part.casts.lossy + part.casts.failed == 0)
    shown = sorted(by_loss[:_SHOWN], key=lambda part: part.values)
    rows = [("/".join(part.values), *_numbers(part)) for part in shown]
    rows.append(("total", *_numbers(seen.total)))
    show(grid(rows, left=("partition",), right=_COUNTS, spare=("returning", "rows")))
    if hidden := len(seen.partitions) - len(shown):
        note(f"… and {plural(hidden, 'more partition')}; --json lists all")
    for outcome, values in seen.examples.items():
        note(f"{outcome}, for example: {', '.join(plain(value)[:60] for value in values)}")


def _numbers(part: PartitionPreview) -> tuple[str, ...]:
    return tuple(number(count) for count in _counts(part).values())


def _counts(part: PartitionPreview) -> dict[str, int]:
    casts = part.casts
    counts = (part.rows, casts.exact, casts.lossy, casts.failed, part.returning)
    return dict(zip(_COUNTS, counts, strict=True))


def _as_dict(target: Target, into: LakeType, seen: Preview) -> dict[str, Any]:
    keys = target.source.date_partition.keys
    return {
        "column": target.name,
        "source": target.source.slug,
        "type": target.column.type.sql,
        "wished_type": into.sql,
        **_counts(seen.total),
        "partitions": [
            {**dict(zip(keys, part.values, strict=True)), **_counts(part)}
            for part in seen.partitions
        ],
        "examples": seen.examples,
    }

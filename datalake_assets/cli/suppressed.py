"""Who is suppressed, and what of them is in the lake still: the views of `datalake suppress`."""

from typing import TYPE_CHECKING, Annotated

import typer

from datalake_assets.cli.invocation import invocation
from datalake_assets.cli.output import grid, note, print_json, say, show, working
from datalake_assets.cli.text import number

if TYPE_CHECKING:
    from eventlake.people.remaining import ReplayRange
    from eventlake.settings.models import Source

_SHOWN = 50

SourceName = Annotated[
    str | None, typer.Option("--source", help="Slug or id. Default: the whole lake.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def suppressed_people(
    context: typer.Context, source: SourceName = None, as_json: AsJson = False
) -> None:
    """Show who is suppressed, where, and since when; of one source, all who are for it.

    \b
    Examples:
      datalake suppress list
      datalake suppress list --source ios_prod --json
    """
    from eventlake.state.suppression import WHOLE_LAKE, newest

    lake = invocation(context).lake()
    chosen = lake.settings.source(source) if source else None
    slugs = {one.id: one.slug for one in lake.settings.sources} | {WHOLE_LAKE: None}
    found = [
        {
            "kind": row["kind"],
            "id": row["id"],
            "source": slugs.get(str(row["source_id"]), row["source_id"]),
            "since": row["added"],
        }
        for row in newest(lake.storage).entries.rows()
        if chosen is None or row["source_id"] in (WHOLE_LAKE, chosen.id)
    ]
    if as_json:
        return print_json(found)
    if not found:
        return note("Nobody is suppressed. `datalake suppress add` puts people on the lists.")
    left = ("kind", "id", "source", "since (UTC)")
    shown = found[:_SHOWN]
    rows = [
        (r["kind"], r["id"], r["source"] or "(all)", f"{r['since']:%Y-%m-%d %H:%M}") for r in shown
    ]
    show(grid(rows, left))
    if len(found) > _SHOWN:
        note(f"… and {number(len(found) - _SHOWN)} more; --json lists all")


def remaining_rows(
    context: typer.Context, source: SourceName = None, as_json: AsJson = False
) -> None:
    """Show rows of suppressed people that are in the lake still, and the replays that remove them.

    Reads two columns of every file of the event tables. Exit code 1: there are such rows.

    \b
    Examples:
      datalake suppress rows
      datalake suppress rows --source ios_prod --json
    """
    from eventlake.people.remaining import remaining, replay_ranges

    lake = invocation(context).lake()
    sources = lake.settings.sources if source is None else (lake.settings.source(source),)
    with working("looking for rows of suppressed people"):
        found = {one.id: remaining(lake, one) for one in sources}
    commands = [_command(s, span) for s in sources for span in replay_ranges(found[s.id])]
    listed = [
        {"source": s.slug, "table": f"{s.database}.{r.name}", "day": str(r.day), "rows": r.rows}
        for s in sources
        for r in found[s.id]
    ]
    if as_json:
        print_json({"rows": listed, "replays": commands})
    elif listed:
        lines = [(one["table"], one["day"], number(int(str(one["rows"])))) for one in listed]
        show(grid(lines, left=("table", "day"), right=("rows",)))
        say("These replays remove them:")
        for command in commands:
            say(f"  {command}")
    else:
        say("No row of anybody who is suppressed is in the lake.")
    if listed:
        raise typer.Exit(1)


def _command(source: "Source", span: "ReplayRange") -> str:
    tables = "".join(f" --table {table}" for table in span.tables)
    return f"datalake replay --source {source.slug} --from {span.first} --to {span.end}{tables}"

"""`datalake suppress`: people whose events are not loaded."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from datalake_assets.cli.invocation import AsJson, chosen_sources, invocation
from datalake_assets.cli.output import grid, note, number, print_json, say, show, working
from eventlake.lake import Lake
from eventlake.people import ReplayRange, remaining, replay_ranges
from eventlake.rules import clock
from eventlake.rules.errors import UsageError
from eventlake.rules.suppression import IdKind
from eventlake.rules.text import plural
from eventlake.settings.models import Source
from eventlake.state.suppression import WHOLE_LAKE, Entries, Version, change, newest

_SHOWN = 50

SourceName = Annotated[
    str | None, typer.Option("--source", help="Slug or id. Default: the whole lake.")
]


def suppressed_people(
    context: typer.Context, source: SourceName = None, as_json: AsJson = False
) -> None:
    """Show suppressed people: for the whole lake or one source, and since when.

    \b
    Examples:
      datalake suppress list
      datalake suppress list --source ios_prod --json
    """
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
        return note("No people are suppressed. `datalake suppress add` adds them.")
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
    """Show rows of suppressed people that are still in the lake, and the replays that remove them.

    It reads two columns of every file of the event tables. Exit code 1: there are such rows.

    \b
    Examples:
      datalake suppress rows
      datalake suppress rows --source ios_prod --json
    """
    lake = invocation(context).lake()
    sources = chosen_sources(lake, source)
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
        say("The lake has no rows of suppressed people.")
    if listed:
        raise typer.Exit(1)


def _command(source: Source, span: ReplayRange) -> str:
    tables = "".join(f" --table {table}" for table in span.tables)
    return f"datalake replay --source {source.slug} --from {span.first} --to {span.end}{tables}"


suppress = typer.Typer(
    no_args_is_help=True,
    help="Manage people whose events are not loaded: lists by userId and anonymousId.",
)
_CALLED = {"userId": "user id", "anonymousId": "anonymous id"}

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Exactly as in events.")]
File = Annotated[
    Path | None, typer.Option(help="Read ids from a file, one on each line; - reads stdin.")
]
Anonymous = Annotated[
    bool,
    typer.Option("--anonymous-id/--user-id", help="The field of the ids. Default: `userId`."),
]


@suppress.command()
def add(
    context: typer.Context,
    ids: Ids = None,
    file: File = None,
    anonymous: Anonymous = False,
    source: SourceName = None,
    as_json: AsJson = False,
) -> None:
    """Suppress people: from the next run on, their events are dropped and counted.

    Rows that are already in the lake stay until their days are replayed; `datalake suppress rows`
    lists them. The raw archive is never changed.

    \b
    Examples:
      datalake suppress add 97980cfea0067
      datalake suppress add --anonymous-id 507f191e810c --source ios_prod
      datalake suppress add --file forget.txt
    """
    _change(context, ids, file, anonymous, source, as_json, adding=True)


@suppress.command()
def remove(
    context: typer.Context,
    ids: Ids = None,
    file: File = None,
    anonymous: Anonymous = False,
    source: SourceName = None,
    as_json: AsJson = False,
) -> None:
    """Remove people from the lists: from the next run on, their new events are loaded.

    To load events that were dropped, replay their days.

    \b
    Examples:
      datalake suppress remove 97980cfea0067
      datalake suppress remove --anonymous-id 507f191e810c --source ios_prod
    """
    _change(context, ids, file, anonymous, source, as_json, adding=False)


suppress.command("list")(suppressed_people)
suppress.command("rows")(remaining_rows)


def _change(
    context: typer.Context,
    ids: list[str] | None,
    file: Path | None,
    anonymous: bool,
    source: str | None,
    as_json: bool,
    adding: bool,
) -> None:
    lake = invocation(context).lake()
    chosen = lake.settings.source(source) if source else None
    of = chosen.id if chosen else WHOLE_LAKE
    kind = IdKind.ANONYMOUS if anonymous else IdKind.USER
    given, now = _given(ids, file), clock.now()

    def edit(entries: Entries) -> Entries:
        if adding:
            return entries.with_ids(given, kind, of, now)
        return entries.without_ids(given, kind, of)

    before, after = change(lake.storage, edit, now)
    changed = abs(len(after.entries) - len(before.entries))
    if as_json:
        return print_json(_as_dict(after, chosen, kind, len(given), changed, adding))
    where = f"for {chosen.slug}" if chosen else "for the whole lake"
    others = len(given) - changed
    say(
        f"{plural(changed, _CALLED[kind])} {'added' if adding else 'removed'} {where}"
        + (f", {number(others)} {'there already' if adding else 'not there'}" if others else "")
        + f"; {_sizes(after)} suppressed now."
    )
    if changed:
        _explain(lake, adding)


def _explain(lake: Lake, adding: bool) -> None:
    """The effect of the change, and its limits."""
    note("Syncs and replays use these lists from the next run on.")
    if not adding:
        note("To load events that were dropped, replay their days.")
        return
    note(
        "Rows in the lake stay until their days are replayed: `datalake suppress rows` lists "
        "them, with the commands."
    )
    days = max(source.retention.record_log_days for source in lake.settings.sources)
    note(
        "The raw archive is never changed; record logs of earlier runs are deleted after "
        f"{plural(days, 'day')}."
    )


def _sizes(version: Version) -> str:
    kinds = version.entries.table["kind"].to_pylist()
    return " and ".join(plural(kinds.count(kind), _CALLED[kind]) for kind in IdKind)


def _given(ids: list[str] | None, file: Path | None) -> list[str]:
    """The distinct ids of a command."""
    found = list(ids or ())
    if file is not None:
        found += [line.strip() for line in _text(file).splitlines()]
        found = [id for id in found if id]
    if not found or "" in found:
        raise UsageError("No id was given: give ids, or a file with one on each line (--file).")
    try:
        "".join(found).encode()
    except UnicodeEncodeError:
        raise UsageError("An id is not UTF-8, so no event can have it.") from None
    return list(dict.fromkeys(found))


def _text(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text; put one id on each line.") from None


def _as_dict(
    after: Version, source: Source | None, kind: IdKind, given: int, changed: int, added: bool
) -> dict[str, Any]:
    kinds = after.entries.table["kind"].to_pylist()
    return {
        "kind": kind,
        "source": source.slug if source else None,
        "given": given,
        "added" if added else "removed": changed,
        "version": after.number,
        "suppressed": {one.value: kinds.count(one) for one in IdKind},
    }

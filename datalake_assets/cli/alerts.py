"""`datalake alerts`: what is wrong now, and what was told of it; or a test message to everybody."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from datalake_assets.cli.invocation import AsJson, SourceOption, chosen_sources, invocation
from datalake_assets.cli.output import grid, note, print_json, say, show, warn
from datalake_assets.cli.text import moment, span
from eventlake.alerts.delivery import Tried, send_tests
from eventlake.alerts.state import AlertState, Letter, read_alerts
from eventlake.alerts.wording import OpenTrouble, Words, open_troubles
from eventlake.rules.errors import UsageError
from eventlake.settings.models import Source

_SHOWN = 10


def alerts(
    context: typer.Context,
    source: SourceOption = None,
    test: Annotated[
        bool, typer.Option("--test", help="Send a test message to every recipient.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many messages.")] = _SHOWN,
    as_json: AsJson = False,
) -> None:
    """Show open problems and sent messages; or send a test message to the recipients.

    Messages are sent by the sensor `alerts` of Dagster, so its daemon has to run. Who is told, and
    of what, is set under `alerts` in lake.yaml.

    \b
    Examples:
      datalake alerts
      datalake alerts --test
      datalake alerts --source ios_prod --json
    """
    lake = invocation(context).lake()
    chosen = chosen_sources(lake, source)
    if test:
        return _test(chosen, as_json)
    states = [(one, read_alerts(lake.for_source(one).storage, one.id)) for one in chosen]
    if as_json:
        return print_json([_as_dict(one, state) for one, state in states])
    _show_troubles(states)
    _show_letters([letter for _, state in states for letter in state.letters], limit)
    if untold := [one.slug for one in chosen if not one.alerts.has_recipients]:
        note(f"nobody is told of {', '.join(untold)}: `alerts` in lake.yaml names no recipients")


def _show_troubles(states: Sequence[tuple[Source, AlertState]]) -> None:
    now = datetime.now(UTC)
    rows = [
        (trouble.title, moment(trouble.since), span((now - trouble.since).total_seconds()))
        for one, state in states
        for trouble in _troubles(one, state)
    ]
    if rows:
        show(grid(rows, left=("open trouble", "since (UTC)"), right=("for",)))
    else:
        say("No trouble is open.")


def _show_letters(letters: list[Letter], limit: int) -> None:
    newest = sorted(letters, key=lambda letter: letter.message.at, reverse=True)[:limit]
    if newest:
        rows = [(moment(le.message.at), le.message.title, _ways(le)) for le in newest]
        show(grid(rows, left=("told (UTC)", "message", "by")))
    for letter in newest:
        for way, one in letter.due.items():
            if one.error:
                warn(f"{way} has not taken {letter.message.title!r}: {one.error}")
        for way, error in letter.lost.items():
            warn(f"{way} never took {letter.message.title!r}: {error}")


def _ways(letter: Letter) -> str:
    waiting = [f"{way} (waits)" for way in letter.due]
    return ", ".join([*letter.delivered, *waiting, *(f"{way} (lost)" for way in letter.lost)])


def _troubles(one: Source, state: AlertState) -> list[OpenTrouble]:
    return open_troubles(state, Words(one, datetime.now(UTC)))


def _as_dict(one: Source, state: AlertState) -> dict[str, Any]:
    return {
        "source": one.slug,
        "recipients": one.alerts.has_recipients,
        "open": [
            {"kind": trouble.kind, "title": trouble.title, "since": trouble.since}
            for trouble in _troubles(one, state)
        ],
        "messages": [
            {
                "id": letter.message.id,
                "at": letter.message.at,
                "kind": letter.message.kind,
                "over": letter.message.over,
                "title": letter.message.title,
                "text": letter.message.text,
                "fields": letter.message.fields,
                "delivered": letter.delivered,
                "waiting": {w: {"tries": d.tries, "error": d.error} for w, d in letter.due.items()},
                "lost": letter.lost,
            }
            for letter in reversed(state.letters)
        ],
    }


def _test(sources: Sequence[Source], as_json: bool) -> None:
    if not any(source.alerts.has_recipients for source in sources):
        raise UsageError(
            "There is nobody to send a test to. Name recipients under `alerts` in lake.yaml: "
            "`email_to`, `sns_topic_arn` or `webhook`."
        )
    tried = list(send_tests(sources, os.environ, datetime.now(UTC)))
    if as_json:
        print_json([_tried_as_dict(one) for one in tried])
    else:
        for one in tried:
            _tell(one)
    raise typer.Exit(1 if any(one.error for one in tried) else 0)


def _tell(one: Tried) -> None:
    if one.error:
        say(f"✗ {one.way} to {one.address}: {one.error}", style="red")
    else:
        say(f"✓ {one.way} to {one.address}: taken. {one.remark}".rstrip(), style="green")


def _tried_as_dict(one: Tried) -> dict[str, Any]:
    return {
        "way": one.way,
        "address": one.address,
        "source": one.source,
        "taken": not one.error,
        "told": one.error or one.remark,
    }

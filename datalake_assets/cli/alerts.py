"""`datalake alerts`: what is wrong now, and what was told of it; or a test message to everybody."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from datalake_assets.cli.invocation import AsJson, SourceOption, chosen_sources, invocation
from datalake_assets.cli.output import grid, note, print_json, say, show, warn
from datalake_assets.cli.text import moment, span
from eventlake.alerts.delivery import ChannelTest, send_tests
from eventlake.alerts.state import AlertState, Notification, read_alerts
from eventlake.alerts.wording import MessageWriter, OpenTrouble, open_troubles
from eventlake.rules.errors import UsageError
from eventlake.settings.models import Source

_SHOWN = 10


def alerts(
    context: typer.Context,
    source: SourceOption = None,
    test: Annotated[
        bool, typer.Option("--test", help="Send a test message to every recipient.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of messages.")] = _SHOWN,
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
    _show_messages([entry for _, state in states for entry in state.notifications], limit)
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


def _show_messages(notifications: list[Notification], limit: int) -> None:
    newest = sorted(notifications, key=lambda entry: entry.message.at, reverse=True)[:limit]
    if newest:
        rows = [(moment(entry.message.at), entry.message.title, _ways(entry)) for entry in newest]
        show(grid(rows, left=("told (UTC)", "message", "by")))
    for entry in newest:
        for way, one in entry.due.items():
            if one.error:
                warn(f"{way} has not taken {entry.message.title!r}: {one.error}")
        for way, error in entry.lost.items():
            warn(f"{way} never took {entry.message.title!r}: {error}")


def _ways(entry: Notification) -> str:
    waiting = [f"{way} (waits)" for way in entry.due]
    return ", ".join([*entry.delivered, *waiting, *(f"{way} (lost)" for way in entry.lost)])


def _troubles(one: Source, state: AlertState) -> list[OpenTrouble]:
    return open_troubles(state, MessageWriter(one, datetime.now(UTC)))


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
                "id": entry.message.id,
                "at": entry.message.at,
                "kind": entry.message.kind,
                "over": entry.message.over,
                "title": entry.message.title,
                "text": entry.message.text,
                "fields": entry.message.fields,
                "delivered": entry.delivered,
                "waiting": {w: {"tries": d.tries, "error": d.error} for w, d in entry.due.items()},
                "lost": entry.lost,
            }
            for entry in reversed(state.notifications)
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


def _tell(one: ChannelTest) -> None:
    if one.error:
        say(f"✗ {one.channel} to {one.address}: {one.error}", style="red")
    else:
        say(f"✓ {one.channel} to {one.address}: taken. {one.remark}".rstrip(), style="green")


def _tried_as_dict(one: ChannelTest) -> dict[str, Any]:
    return {
        "way": one.channel,
        "address": one.address,
        "source": one.source,
        "taken": not one.error,
        "told": one.error or one.remark,
    }

"""`datalake alerts`: open problems and sent messages; or a test message."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer
from msgspec.structs import asdict

from datalake_assets.cli.invocation import AsJson, SourceOption, chosen_sources, invocation
from datalake_assets.cli.output import grid, moment, note, print_json, say, show, span, warn
from eventlake.alerts.delivery import ChannelTest, send_tests
from eventlake.alerts.history import current_troubles
from eventlake.alerts.state import AlertState, Notification, Trouble, read_alerts
from eventlake.alerts.wording import MessageWriter
from eventlake.lake import Lake
from eventlake.rules import clock
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

    The Dagster sensor `alerts` sends the messages, so Dagster's daemon has to run. Recipients and
    limits are set under `alerts` in lake.yaml.

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
    now = clock.now()
    states = [_AlertsOfSource.of(lake, one, now) for one in chosen]
    if as_json:
        return print_json([one.as_dict() for one in states])
    _show_troubles(states, now)
    _show_messages([entry for one in states for entry in one.state.notifications], limit)
    if silent := [one.slug for one in chosen if not one.alerts.has_recipients]:
        note(f"no alerts for {', '.join(silent)}: `alerts` in lake.yaml names no recipients")


@dataclass(frozen=True)
class _AlertsOfSource:
    """The messages of a source, and its open problems, also those not reported yet."""

    source: Source
    state: AlertState
    troubles: dict[str, Trouble]
    writer: MessageWriter

    @classmethod
    def of(cls, lake: Lake, source: Source, now: datetime) -> "_AlertsOfSource":
        return cls(
            source,
            read_alerts(lake.for_source(source).storage, source.id),
            current_troubles(lake, source, now),
            MessageWriter(source, now),
        )

    def titles(self) -> list[tuple[str, str, datetime]]:
        """Kind, title and begin of each open problem."""
        return [
            (kind, self.writer.title(kind, one), one.since) for kind, one in self.troubles.items()
        ]

    def as_dict(self) -> dict[str, Any]:
        return {
            "source": self.source.slug,
            "recipients": self.source.alerts.has_recipients,
            "open": [
                {"kind": kind, "title": title, "since": since}
                for kind, title, since in self.titles()
            ],
            "messages": [_as_dict(entry) for entry in reversed(self.state.notifications)],
        }


def _show_troubles(states: Sequence[_AlertsOfSource], now: datetime) -> None:
    rows = [
        (title, moment(since), span((now - since).total_seconds()))
        for one in states
        for _, title, since in one.titles()
    ]
    if rows:
        show(grid(rows, left=("open problem", "since (UTC)"), right=("for",)))
    else:
        say("No problem is open.")


def _show_messages(notifications: list[Notification], limit: int) -> None:
    newest = sorted(notifications, key=lambda entry: entry.message.at, reverse=True)[:limit]
    if newest:
        rows = [
            (moment(entry.message.at), entry.message.title, _channels(entry)) for entry in newest
        ]
        show(grid(rows, left=("sent (UTC)", "message", "by")))
    for entry in newest:
        for channel, one in entry.due.items():
            if one.error:
                warn(f"{channel} did not accept {entry.message.title!r} yet: {one.error}")
        for channel, error in entry.lost.items():
            warn(f"{channel} never accepted {entry.message.title!r}: {error}")


def _channels(entry: Notification) -> str:
    waiting = [f"{channel} (waits)" for channel in entry.due]
    lost = [f"{channel} (lost)" for channel in entry.lost]
    return ", ".join([*entry.delivered, *waiting, *lost])


def _as_dict(entry: Notification) -> dict[str, Any]:
    message = asdict(entry.message)
    del message["source"]
    return {**message, "delivered": entry.delivered, "waiting": entry.due, "lost": entry.lost}


def _test(sources: Sequence[Source], as_json: bool) -> None:
    if not any(source.alerts.has_recipients for source in sources):
        raise UsageError(
            "There are no recipients for a test. Name some under `alerts` in lake.yaml: "
            "`email_to`, `sns_topic_arn` or `webhook`."
        )
    tried = list(send_tests(sources, os.environ, clock.now()))
    if as_json:
        print_json([_tried_as_dict(one) for one in tried])
    else:
        for one in tried:
            _show_test(one)
    raise typer.Exit(1 if any(one.error for one in tried) else 0)


def _show_test(one: ChannelTest) -> None:
    if one.error:
        say(f"✗ {one.channel} to {one.address}: {one.error}", style="red")
    else:
        say(f"✓ {one.channel} to {one.address}: accepted. {one.remark}".rstrip(), style="green")


def _tried_as_dict(one: ChannelTest) -> dict[str, Any]:
    return {
        "channel": one.channel,
        "address": one.address,
        "source": one.source,
        "accepted": not one.error,
        "message": one.error or one.remark,
    }

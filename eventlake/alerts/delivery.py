"""Evaluates the alerts of a source and delivers messages, at least once per channel.

Only the sensor `alerts` sends, and Dagster runs one tick of it at a time. If it crashes before it
records a delivery, the next tick sends the message again: duplicates have the same id."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from eventlake.alerts.channels import Channel, NotSent
from eventlake.alerts.channels.email import Email
from eventlake.alerts.channels.sns import SnsTopic
from eventlake.alerts.channels.webhook import WebHook
from eventlake.alerts.history import observe
from eventlake.alerts.rules import state_after
from eventlake.alerts.run_status import CheckRun, EndedRun, StatusLookup, unknown
from eventlake.alerts.state import (
    GIVE_UP,
    AlertState,
    Delivery,
    Message,
    Notification,
    read_alerts,
    update_alerts,
)
from eventlake.alerts.wording import MessageWriter
from eventlake.aws.access import AwsAccess
from eventlake.lake import Lake
from eventlake.settings.models import Source
from eventlake.storage import Storage


def channels_of(source: Source, environ: Mapping[str, str]) -> dict[str, Channel]:
    """The channels in the settings of a source, by name; secrets are read when they are needed."""
    alerts, found = source.alerts, dict[str, Channel]()
    if alerts.email_to:
        found["email"] = Email(alerts, environ)
    if alerts.sns_topic_arn:
        found["sns"] = SnsTopic(alerts.sns_topic_arn, AwsAccess.of(source))
    if alerts.webhook:
        found["webhook"] = WebHook(alerts.webhook, environ)
    return found


_KEPT = 50  # completed notifications


def addressed(state: AlertState, channels: Mapping[str, Channel], now: datetime) -> AlertState:
    """Assign channels to new notifications; give up undeliverable ones and drop old ones."""
    notifications = [_addressed(entry, channels, now) for entry in state.notifications]
    through = [entry for entry in notifications if not entry.due]
    gone = {entry.message.id for entry in through[:-_KEPT]}
    return replace(
        state, notifications=tuple(entry for entry in notifications if entry.message.id not in gone)
    )


def _addressed(entry: Notification, channels: Mapping[str, Channel], now: datetime) -> Notification:
    if not (entry.due or entry.delivered or entry.lost):
        return replace(entry, due=dict.fromkeys(channels, Delivery()))
    if not entry.due:
        return entry
    old = now - entry.message.at > GIVE_UP
    lost = {
        name: one.error or "no longer among the recipients"
        for name, one in entry.due.items()
        if old or name not in channels
    }
    due = {name: one for name, one in entry.due.items() if name not in lost}
    return replace(entry, due=due, lost={**entry.lost, **lost})


@dataclass
class Sending:
    """Sends due messages; a channel that fails is not tried again in this evaluation."""

    storage: Storage
    source_id: str
    now: datetime
    is_time_up: Callable[[], bool]
    refused: set[str]  # addresses of failed channels, of all sources

    def send(self, state: AlertState, channels: Mapping[str, Channel]) -> Iterator[str]:
        """Send in order and record each delivery at once; yields a log line per message."""
        due = [(entry.message, name) for entry in state.notifications for name in entry.due]
        for message, name in due:
            channel = channels[name]
            if channel.address in self.refused or self.is_time_up():
                continue
            try:
                remark = channel.send(message)
            except NotSent as error:
                self.refused.add(channel.address)
                self._note(message.id, name, str(error))
                yield f"{name}: not sent, retried at the next evaluation: {error}"
            else:
                self._note(message.id, name, None)
                yield f"{name}: {message.title}." + (f" {remark}" if remark else "")

    def _note(self, message_id: str, name: str, error: str | None) -> None:
        def noted(entry: Notification) -> Notification:
            if entry.message.id != message_id or name not in entry.due:
                return entry
            if error is not None:
                failed = Delivery(entry.due[name].tries + 1, error)
                return replace(entry, due={**entry.due, name: failed})
            due = {other: kept for other, kept in entry.due.items() if other != name}
            return replace(entry, due=due, delivered={**entry.delivered, name: self.now})

        def changed(state: AlertState) -> AlertState:
            return replace(state, notifications=tuple(map(noted, state.notifications)))

        update_alerts(self.storage, self.source_id, changed)


def never() -> bool:
    return False


@dataclass
class Evaluation:
    """An evaluation of all sources; with the URLs of Dagster's webserver and the console."""

    lake: Lake
    now: datetime
    environ: Mapping[str, str]
    ui: str | None = None
    statuses: StatusLookup = unknown
    is_time_up: Callable[[], bool] = never
    refused: set[str] = field(default_factory=set)
    console: Callable[[Source], str | None] = lambda source: source.alerts.console_url

    def evaluate(
        self,
        source: Source,
        failures: Sequence[EndedRun] = (),
        check_runs: Sequence[CheckRun] = (),
    ) -> list[str]:
        """Evaluate one source and send what is due; returns a log line per message.

        `failures` are the failed runs in Dagster.
        """
        if not source.alerts.has_recipients:
            return []
        lake, channels = self.lake.for_source(source), channels_of(source, self.environ)
        writer = MessageWriter(
            source, self.now, source.alerts.ui_url or self.ui, self.console(source)
        )
        before = read_alerts(lake.storage, source.id)
        observed = observe(lake, source, before, self.now, self.statuses, failures, check_runs)

        def change(state: AlertState) -> AlertState:
            counted = state_after(state, observed, source.alerts, writer)
            return addressed(counted, channels, self.now)

        state = update_alerts(lake.storage, source.id, change)
        sending = Sending(lake.storage, source.id, self.now, self.is_time_up, self.refused)
        return [f"{source.slug}, by {line}" for line in sending.send(state, channels)]


@dataclass(frozen=True, slots=True)
class ChannelTest:
    """The result of a test message to a channel; `source` is the first one that uses it."""

    channel: str
    address: str
    source: str
    error: str = ""
    remark: str = ""


def distinct(
    sources: Iterable[Source], environ: Mapping[str, str]
) -> list[tuple[str, Channel, Source]]:
    """Each channel once, even if several sources share it."""
    found: dict[tuple[str, str], tuple[str, Channel, Source]] = {}
    for source in sources:
        for name, channel in channels_of(source, environ).items():
            found.setdefault((name, channel.address), (name, channel, source))
    return list(found.values())


def send_tests(
    sources: Iterable[Source], environ: Mapping[str, str], now: datetime
) -> Iterator[ChannelTest]:
    for name, channel, source in distinct(sources, environ):
        try:
            remark = channel.send(_message(source, name, now))
        except NotSent as error:
            yield ChannelTest(name, channel.address, source.slug, error=str(error))
        else:
            yield ChannelTest(name, channel.address, source.slug, remark=remark)


def _message(source: Source, name: str, now: datetime) -> Message:
    title = f"{source.slug}: test of alerts by {name}"
    text = (
        f"{title}\nWhat: this is a test by `datalake alerts --test`; nothing is wrong.\n"
        f"Since: {now:%Y-%m-%d %H:%M} UTC\nWhat to do: nothing."
    )
    return Message(f"{source.id}-test", source.slug, "test", title, text, now, over=True)

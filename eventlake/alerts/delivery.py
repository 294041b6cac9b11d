"""Evaluates the alerts of a source and delivers messages, at least once per channel.

A sender claims a message in the lake before it sends it, so concurrent evaluations send it once.
If the sender crashes before recording the delivery, another one sends the message again when the
claim expires: duplicates have the same id."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace

from eventlake.alerts.channels.base import Channel, NotSent
from eventlake.alerts.channels.email import Email
from eventlake.alerts.channels.sns import SnsTopic
from eventlake.alerts.channels.webhook import WebHook
from eventlake.alerts.history import attempts_since, under_way
from eventlake.alerts.rules import Happened, state_after
from eventlake.alerts.run_status import Attempt, CheckRun, Fates, unknown
from eventlake.alerts.state import (
    GIVE_UP,
    AlertState,
    Delivery,
    Letter,
    Message,
    read_alerts,
    update_alerts,
)
from eventlake.alerts.wording import Words
from eventlake.aws.access import AwsAccess
from eventlake.lake import Lake
from eventlake.settings.models import Source
from eventlake.storage import Storage


def channels(source: Source, environ: Mapping[str, str]) -> dict[str, Channel]:
    """By the names under which the state knows them; secrets are read when they are needed."""
    alerts, found = source.alerts, dict[str, Channel]()
    if alerts.email_to:
        found["email"] = Email(alerts, environ)
    if alerts.sns_topic_arn:
        found["sns"] = SnsTopic(alerts.sns_topic_arn, AwsAccess.of(source))
    if alerts.webhook:
        found["webhook"] = WebHook(alerts.webhook, environ)
    return found


CLAIM = timedelta(minutes=5)  # longer than any way takes to accept or refuse a message
_KEPT = 50  # letters that are through


def addressed(state: AlertState, ways: Mapping[str, Channel], now: datetime) -> AlertState:
    """New letters get their ways; those that nobody takes for days, or that are old, go."""
    letters = [_addressed(letter, ways, now) for letter in state.letters]
    through = [letter for letter in letters if not letter.due]
    gone = {letter.message.id for letter in through[:-_KEPT]}
    return replace(state, letters=tuple(le for le in letters if le.message.id not in gone))


def _addressed(letter: Letter, ways: Mapping[str, Channel], now: datetime) -> Letter:
    if not (letter.due or letter.delivered or letter.lost):
        return replace(letter, due=dict.fromkeys(ways, Delivery()))
    if not letter.due:
        return letter
    old = now - letter.message.at > GIVE_UP
    lost = {
        way: one.error or "no longer among the recipients"
        for way, one in letter.due.items()
        if old or way not in ways
    }
    due = {way: one for way, one in letter.due.items() if way not in lost}
    return replace(letter, due=due, lost={**letter.lost, **lost})


def claimed(state: AlertState, by: str, now: datetime) -> AlertState:
    """All that is due and that nobody else is about to send is sent by one."""

    def claim(one: Delivery) -> Delivery:
        return replace(one, claimed_by=by, claimed_until=now + CLAIM) if one.free(now) else one

    letters = tuple(
        replace(letter, due={way: claim(one) for way, one in letter.due.items()})
        if any(one.free(now) for one in letter.due.values())
        else letter
        for letter in state.letters
    )
    return replace(state, letters=letters)


@dataclass
class Sending:
    """Sends what one process has claimed; a way that has refused is left alone from then on."""

    storage: Storage
    source_id: str
    by: str
    now: datetime
    is_time_up: Callable[[], bool]
    refused: set[str]  # addresses of ways, of all sources

    def send(self, state: AlertState, ways: Mapping[str, Channel]) -> Iterator[str]:
        """Send in order, noting each at once; says what was sent and what was not."""
        unsent: list[tuple[str, str]] = []
        for message, way in self._mine(state):
            channel = ways[way]
            if channel.address in self.refused or self.is_time_up():
                unsent.append((message.id, way))
                continue
            try:
                remark = channel.send(message)
            except NotSent as error:
                self.refused.add(channel.address)
                self._note(message.id, way, str(error))
                yield f"{way}: not sent, and tried again at the next look: {error}"
            else:
                self._note(message.id, way, None)
                yield f"{way}: {message.title}." + (f" {remark}" if remark else "")
        if unsent:
            self._release(unsent)

    def _mine(self, state: AlertState) -> list[tuple[Message, str]]:
        return [
            (letter.message, way)
            for letter in state.letters
            for way, one in letter.due.items()
            if one.claimed_by == self.by
        ]

    def _note(self, message_id: str, way: str, error: str | None) -> None:
        def noted(letter: Letter) -> Letter:
            one = letter.due.get(way)
            if one is None:
                return letter  # another has sent it, too, after this one's claim had run out
            if error is not None:
                failed = Delivery(one.tries + 1, error)
                return replace(letter, due={**letter.due, way: failed})
            due = {other: kept for other, kept in letter.due.items() if other != way}
            return replace(letter, due=due, delivered={**letter.delivered, way: self.now})

        self._change({message_id}, noted)

    def _release(self, unsent: list[tuple[str, str]]) -> None:
        def released(letter: Letter) -> Letter:
            ways = {way for message, way in unsent if message == letter.message.id}
            free = {
                way: replace(one, claimed_by="", claimed_until=None)
                if way in ways and one.claimed_by == self.by
                else one
                for way, one in letter.due.items()
            }
            return replace(letter, due=free)

        self._change({message for message, _ in unsent}, released)

    def _change(self, ids: set[str], change: Callable[[Letter], Letter]) -> None:
        def changed(state: AlertState) -> AlertState:
            letters = (change(le) if le.message.id in ids else le for le in state.letters)
            return replace(state, letters=tuple(letters))

        update_alerts(self.storage, self.source_id, changed)


def never() -> bool:
    return False


@dataclass
class Look:
    """What all sources of one look share; `ui` is where people see Dagster's pages."""

    lake: Lake
    now: datetime
    environ: Mapping[str, str]
    ui: str | None = None
    fates: Fates = unknown
    is_time_up: Callable[[], bool] = never
    refused: set[str] = field(default_factory=set)

    def at(
        self,
        source: Source,
        failures: Sequence[Attempt] = (),
        check_runs: Sequence[CheckRun] = (),
    ) -> list[str]:
        """Look at one source; `failures` are those that Dagster knows of. What was sent, or not."""
        if not source.alerts.has_recipients:
            return []
        lake, me = self.lake.for_source(source), uuid.uuid4().hex
        ways = channels(source, self.environ)
        words = Words(source, self.now, source.alerts.ui_url or self.ui)
        # Before the reports: a run that ends meanwhile is then in one of both.
        running = under_way(lake, source)
        before = read_alerts(lake.storage, source.id)
        reported = attempts_since(lake, source, before, self.fates, self.now)
        known = {one.id for one in reported}
        unreported = [one for one in failures if one.id not in known]
        happened = Happened([*reported, *unreported], check_runs, running)

        def change(state: AlertState) -> AlertState:
            counted = state_after(state, happened, source.alerts, words)
            return claimed(addressed(counted, ways, self.now), me, self.now)

        state = update_alerts(lake.storage, source.id, change)
        sending = Sending(lake.storage, source.id, me, self.now, self.is_time_up, self.refused)
        return [f"{source.slug}, by {told}" for told in sending.send(state, ways)]


@dataclass(frozen=True, slots=True)
class Tried:
    """One way, the first source that asks for it, and what became of the try."""

    way: str
    address: str
    source: str
    error: str = ""
    remark: str = ""


def distinct(
    sources: Iterable[Source], environ: Mapping[str, str]
) -> list[tuple[str, Channel, Source]]:
    """Every way once, whatever the number of sources that share it."""
    found: dict[tuple[str, str], tuple[str, Channel, Source]] = {}
    for source in sources:
        for way, channel in channels(source, environ).items():
            found.setdefault((way, channel.address), (way, channel, source))
    return list(found.values())


def send_tests(
    sources: Iterable[Source], environ: Mapping[str, str], now: datetime
) -> Iterator[Tried]:
    for way, channel, source in distinct(sources, environ):
        try:
            remark = channel.send(_message(source, way, now))
        except NotSent as error:
            yield Tried(way, channel.address, source.slug, error=str(error))
        else:
            yield Tried(way, channel.address, source.slug, remark=remark)


def _message(source: Source, way: str, now: datetime) -> Message:
    title = f"{source.slug}: test of alerts by {way}"
    text = (
        f"{title}\nWhat: somebody has called `datalake alerts --test`; nothing is wrong.\n"
        f"Since: {now:%Y-%m-%d %H:%M} UTC\nWhat to do: nothing."
    )
    return Message(f"{source.id}-test", source.slug, "test", title, text, now, over=True)

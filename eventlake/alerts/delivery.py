"""Getting messages out: claimed in the lake, sent, noted; each way by itself.

Who sends has claimed the message before, so that two who look at once send it once. Who dies
between sending and noting leaves the claim, and when that has run out another sends it again: a
message comes at least once, with the same id.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from eventlake.alerts.channels.channel import Channel, NotSent
from eventlake.alerts.message import GIVE_UP, Delivery, Letter, Message
from eventlake.alerts.state import AlertState, update_alerts
from eventlake.storage import Storage

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

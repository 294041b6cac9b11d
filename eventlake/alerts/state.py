"""The alert state of a source, one file in the lake: open problems, and what was reported."""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from eventlake.rules import paths
from eventlake.storage import Storage
from eventlake.storage.documents import decode_note, encode

GIVE_UP = timedelta(days=3)
"""A message is not retried for longer than this."""

REPORTED_FAILURES = (1, 5, 20)
"""The failures in a row that are reported."""

Facts = dict[str, str | int | float]


class Message(msgspec.Struct, frozen=True):
    """An alert; its id is the same on all channels, and when it is sent again."""

    id: str  # "" until it gets its number
    source: str  # its slug
    kind: str
    title: str
    text: str
    at: datetime
    over: bool = False  # the problem is resolved
    fields: Facts = {}


class Delivery(msgspec.Struct, frozen=True):
    """A pending delivery of a message to one channel."""

    tries: int = 0
    error: str = ""


class Notification(msgspec.Struct, frozen=True):
    """A message and its channels: pending, delivered, or given up."""

    message: Message
    due: dict[str, Delivery] = {}
    delivered: dict[str, datetime] = {}
    lost: dict[str, str] = {}


class RunRef(msgspec.Struct, frozen=True):
    """A run that showed a problem, or that it is over."""

    at: datetime
    run_id: str = ""
    dagster_run_id: str = ""
    error_code: str = ""
    error: str = ""


class Trouble(msgspec.Struct, frozen=True):
    """A problem of a source, kept until its end is reported.

    Its points are reported once each: every table that fails a check, and the
    `REPORTED_FAILURES` in a row. Without points it is over.
    """

    since: datetime
    run: RunRef  # the last run that showed it, or the one that ended it
    points: dict[str, str] = {}  # with the evidence
    reported: tuple[str, ...] = ()
    facts: Facts = {}
    works: tuple[str, ...] = ()  # failed runs that are counted

    @property
    def is_news(self) -> bool:
        """Whether there is something to report: a new point, or the end."""
        return bool(self.points.keys() - set(self.reported) if self.points else self.reported)


class AlertState(msgspec.Struct, frozen=True, rename={"notifications": "letters"}):
    """The alert state of a source."""

    evaluated: str = ""  # the day of the last evaluation
    counted: dict[str, str] = {}  # runs, and their day
    watched: dict[str, str] = {}  # runs in progress, and their day
    last_good: dict[str, RunRef] = {}  # the last run without a problem, by its kind
    troubles: dict[str, Trouble] = {}  # by kind
    notifications: tuple[Notification, ...] = ()
    number: int = 0  # of the last message


def read_alerts(storage: Storage, source_id: str) -> AlertState:
    path = paths.alerts(source_id)
    return decode_note(storage.read(path), AlertState, path) or AlertState()


def update_alerts(
    storage: Storage, source_id: str, change: Callable[[AlertState], AlertState]
) -> AlertState:
    """Update the stored state and return it; `change` may be called more than once."""
    path = paths.alerts(source_id)
    made = AlertState()

    def changed(data: bytes | None) -> bytes | None:
        nonlocal made
        before = decode_note(data, AlertState, path) or AlertState()
        made = change(before)
        return None if made == before else encode(made)

    storage.update(path, changed)
    return made

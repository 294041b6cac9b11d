"""The alert state of a source, one file in the lake: open problems, and what was reported."""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from eventlake.rules import paths
from eventlake.storage import Storage
from eventlake.storage.documents import decode, encode

GIVE_UP = timedelta(days=3)
"""A message is not retried for longer than this."""


_FILE_KEYS = {
    "evaluated": "looked",
    "no_data": "silence",
    "notifications": "letters",
    "reported": "told",
}
"""Names in the stored file, where they differ from the names here."""

STAGES = (1, 5, 20)
"""Failures in a row that are reported."""


class Message(msgspec.Struct, frozen=True):
    """An alert; its id is the same on all channels, and when it is sent again."""

    id: str
    source: str  # its slug
    kind: str
    title: str
    text: str
    at: datetime
    over: bool = False  # the problem is resolved
    fields: dict[str, str | int | float] = {}


class Delivery(msgspec.Struct, frozen=True):
    """A pending delivery of a message to one channel."""

    tries: int = 0
    error: str = ""
    claimed_by: str = ""
    claimed_until: datetime | None = None

    def free(self, now: datetime) -> bool:
        return self.claimed_until is None or self.claimed_until <= now


class Notification(msgspec.Struct, frozen=True):
    """A message and its channels: pending, delivered, or given up."""

    message: Message
    due: dict[str, Delivery] = {}
    delivered: dict[str, datetime] = {}
    lost: dict[str, str] = {}


class RunRef(msgspec.Struct, frozen=True):
    """The run that showed a problem, or its end."""

    at: datetime
    run_id: str = ""
    dagster_run_id: str = ""
    error_code: str = ""
    error: str = ""


class Streak(msgspec.Struct, frozen=True, rename=_FILE_KEYS):
    """Failures in a row; `reported` is the last stage that was reported, 0 for none."""

    failures: int = 0
    since: datetime | None = None
    works: tuple[str, ...] = ()
    last: RunRef | None = None
    reported: int = 0
    owed: bool = False  # the recovery of an earlier streak is not reported yet
    overcome: int = 0  # failures before the last success
    succeeded: datetime | None = None


class Trouble(msgspec.Struct, frozen=True, rename=_FILE_KEYS):
    """A problem that is open, or was until now."""

    since: datetime | None = None  # None: it is not open
    reported: datetime | None = None  # `since` as it was reported
    run: RunRef | None = None
    numbers: dict[str, float] = {}
    record: dict[str, str] = {}


class FailedCheck(msgspec.Struct, frozen=True, rename=_FILE_KEYS):
    """The tables that fail a check, with the evidence, and those already reported."""

    since: datetime
    run: RunRef
    failing: dict[str, str] = {}
    reported: tuple[str, ...] = ()
    warning: bool = False
    remedy: str = ""


class AlertState(msgspec.Struct, frozen=True, rename=_FILE_KEYS):
    """The alert state of a source."""

    evaluated: str = ""  # the day of the last evaluation
    seen: dict[str, str] = {}  # counted runs, and their day
    watched: dict[str, str] = {}  # runs in progress, and their day
    judged: tuple[str, ...] = ()  # Dagster runs whose checks are counted
    syncs: Streak = Streak()
    replays: Streak = Streak()
    rows_came: RunRef | None = None
    no_data: Trouble = Trouble()
    rejected: Trouble = Trouble()
    rescued: Trouble = Trouble()
    checks: dict[str, FailedCheck] = {}
    notifications: tuple[Notification, ...] = ()
    number: int = 0  # of the last message


def read_alerts(storage: Storage, source_id: str) -> AlertState:
    path = paths.alerts(source_id)
    data = storage.read(path)
    return AlertState() if data is None else decode(data, AlertState, path)


def update_alerts(
    storage: Storage, source_id: str, change: Callable[[AlertState], AlertState]
) -> AlertState:
    """Update the stored state and return it; `change` may be called more than once."""
    path = paths.alerts(source_id)
    made = AlertState()

    def changed(data: bytes | None) -> bytes | None:
        nonlocal made
        before = AlertState() if data is None else decode(data, AlertState, path)
        made = change(before)
        return None if made == before else encode(made)

    storage.update(path, changed)
    return made

"""What is known of a source's troubles, and what was told of them: one file in the lake."""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from eventlake.rules import paths
from eventlake.storage import Storage
from eventlake.storage.documents import decode, encode

GIVE_UP = timedelta(days=3)
"""After which a message that a way does not take is no longer tried."""


STAGES = (1, 5, 20)
"""Failures in a row that are reported."""


class Message(msgspec.Struct, frozen=True):
    """What is told; its id is the same on all ways, and when it is sent a second time."""

    id: str
    source: str  # its slug
    kind: str
    title: str
    text: str
    at: datetime
    over: bool = False  # it tells that a trouble is over
    fields: dict[str, str | int | float] = {}


class Delivery(msgspec.Struct, frozen=True):
    """One way that a message has still to go."""

    tries: int = 0
    error: str = ""
    claimed_by: str = ""
    claimed_until: datetime | None = None

    def free(self, now: datetime) -> bool:
        return self.claimed_until is None or self.claimed_until <= now


class Letter(msgspec.Struct, frozen=True):
    """A message with the ways it has to go, those it has gone, and those given up."""

    message: Message
    due: dict[str, Delivery] = {}
    delivered: dict[str, datetime] = {}
    lost: dict[str, str] = {}


class Ended(msgspec.Struct, frozen=True):
    """The run that showed a trouble, or that it is over."""

    at: datetime
    run_id: str = ""
    dagster_run_id: str = ""
    error_code: str = ""
    error: str = ""


class Streak(msgspec.Struct, frozen=True):
    """Failures in a row; `told` is the last of them that was told, 0 for none."""

    failures: int = 0
    since: datetime | None = None
    works: tuple[str, ...] = ()
    last: Ended | None = None
    told: int = 0
    owed: bool = False  # an earlier row was told, and that it was over was not
    overcome: int = 0  # failures that the last success ended
    succeeded: datetime | None = None


class Trouble(msgspec.Struct, frozen=True):
    """Something that is wrong, or was until now."""

    since: datetime | None = None  # None: it is not
    told: datetime | None = None  # since when it was, as it was told
    run: Ended | None = None
    numbers: dict[str, float] = {}
    record: dict[str, str] = {}


class FailedCheck(msgspec.Struct, frozen=True):
    """The tables that a check fails for, with its evidence, and those that were told."""

    since: datetime
    run: Ended
    failing: dict[str, str] = {}
    told: tuple[str, ...] = ()
    warning: bool = False
    remedy: str = ""


class AlertState(msgspec.Struct, frozen=True):
    """All that alerts know of a source."""

    looked: str = ""  # the day of the last look
    seen: dict[str, str] = {}  # runs that are counted, and their day
    watched: dict[str, str] = {}  # runs under way, and their day
    judged: tuple[str, ...] = ()  # runs of Dagster whose checks are counted
    syncs: Streak = Streak()
    replays: Streak = Streak()
    rows_came: Ended | None = None
    silence: Trouble = Trouble()
    rejected: Trouble = Trouble()
    rescued: Trouble = Trouble()
    checks: dict[str, FailedCheck] = {}
    letters: tuple[Letter, ...] = ()
    number: int = 0  # of the last letter


def read_alerts(storage: Storage, source_id: str) -> AlertState:
    path = paths.alerts(source_id)
    data = storage.read(path)
    return AlertState() if data is None else decode(data, AlertState, path)


def update_alerts(
    storage: Storage, source_id: str, change: Callable[[AlertState], AlertState]
) -> AlertState:
    """Change the state as it is by now; `change` may be called more than once. The new state."""
    path = paths.alerts(source_id)
    made = AlertState()

    def changed(data: bytes | None) -> bytes | None:
        nonlocal made
        before = AlertState() if data is None else decode(data, AlertState, path)
        made = change(before)
        return None if made == before else encode(made)

    storage.update(path, changed)
    return made

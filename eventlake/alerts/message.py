"""A message, and how far it has come on each of its ways."""

from datetime import datetime, timedelta

import msgspec

GIVE_UP = timedelta(days=3)
"""After which a message that a way does not take is no longer tried."""


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

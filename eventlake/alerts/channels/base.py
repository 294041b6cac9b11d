"""A way to people, whatever it is."""

from typing import Protocol

from eventlake.alerts.state import Message

TIMEOUT = 8  # seconds for each answer of a server: a look at all sources has a minute in all


class NotSent(Exception):
    """A way did not take a message; says why and what to do, without any secret."""


class Channel(Protocol):
    """Takes messages, or says why not."""

    @property
    def address(self) -> str:
        """Where it leads: the same for sources that share it; without any secret."""
        ...

    def send(self, message: Message) -> str:
        """Hand a message over; a remark where it was not taken for all. Raises `NotSent`."""
        ...

    def look(self) -> str:
        """Try as much of it as can be tried without sending. Raises `NotSent`, too."""
        ...

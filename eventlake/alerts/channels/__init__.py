"""Alert channels: e-mail, SNS, webhooks, behind one interface."""

from typing import Protocol

from eventlake.alerts.state import Message

TIMEOUT = 8  # seconds per request; an evaluation of all sources has a minute


class NotSent(Exception):
    """A channel did not accept a message; the text has the reason and the remedy, but no secret."""


class Channel(Protocol):
    """Sends messages."""

    @property
    def address(self) -> str:
        """The destination without secrets; sources that share a channel have the same address."""
        ...

    def send(self, message: Message) -> str:
        """Send a message; returns a remark if some recipients were refused. Raises `NotSent`."""
        ...

    def check(self) -> str:
        """Test the channel without sending. Raises `NotSent`."""
        ...

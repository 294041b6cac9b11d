"""What must be right about an event before anything else is looked at."""

from dataclasses import dataclass
from typing import Any

import msgspec

from eventlake.casts import text_of
from eventlake.dates import parse_timestamp
from eventlake.rejects import Reason, Reject

EVENT_TYPES = ("track", "identify", "page", "screen", "group", "alias")
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Envelope:
    """The type in lower case, the name of a track, the id if there is one, when it was received."""

    type: str
    event: str | None
    message_id: str | None
    received_at: int  # microseconds since 1970


def open_envelope(event: dict[str, Any]) -> Envelope:
    """The envelope of an event; raises `Reject` for one that cannot be loaded."""
    kind = event.get("type")
    event_type = kind.lower() if isinstance(kind, str) else None
    if event_type not in EVENT_TYPES:
        raise Reject(Reason.UNKNOWN_TYPE, _seen(kind))
    name = event_name(event) if event_type == "track" else None
    if event_type == "track" and name is None:
        raise Reject(Reason.NO_EVENT_NAME, _seen(event.get("event")))
    received = event.get("receivedAt")
    moment = parse_timestamp(received) if isinstance(received, str) else None
    if moment is None:
        raise Reject(Reason.NO_RECEIVED_AT, _seen(received))
    return Envelope(event_type, name, message_id(event), moment[0])


def event_name(event: dict[str, Any]) -> str | None:
    """What a track is called: a text that is not blank, or a number as it was written."""
    name = identifying(event.get("event"))
    return name if name and not name.isspace() else None


def message_id(event: dict[str, Any]) -> str | None:
    """The id of a message: a text that is not empty, or a number as it was written."""
    return identifying(event.get("messageId")) or None


def identifying(value: Any) -> str | None:
    """A value as an id or a name: a text, or a number as it was written; None for any other."""
    if isinstance(value, bool) or not isinstance(value, str | int | msgspec.Raw):
        return None
    return text_of(value)


def _seen(value: Any) -> str:
    if value is None:
        return "there is none"
    text = msgspec.json.encode(value).decode()
    return f"it is {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"

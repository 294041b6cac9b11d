"""Events: the envelope, the reasons to reject a line, and flattening."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from eventlake.rules.casts import text_of
from eventlake.rules.dates import parse_timestamp

Event = dict[str, Any]
Path = tuple[str, ...]


class Reason(StrEnum):
    """A cause of rejection; stored in records and reports, so values must not change."""

    NOT_JSON = "not_json"
    BAD_UTF8 = "bad_utf8"
    LONE_SURROGATE = "lone_surrogate"
    NOT_AN_OBJECT = "not_an_object"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    UNKNOWN_TYPE = "unknown_type"
    NO_EVENT_NAME = "no_event_name"
    NO_RECEIVED_AT = "no_received_at"
    NO_MESSAGE_ID = "no_message_id"
    TOO_MANY_COLUMNS = "too_many_columns"
    TOO_MANY_TABLES = "too_many_tables"
    CATALOG_FULL = "catalog_full"
    TOO_MANY_DAYS = "too_many_days"
    CUT_OFF = "cut_off"
    TOO_MANY_REJECTED = "too_many_rejected"

    @property
    def sentence(self) -> str:
        """A description for messages."""
        return _SENTENCES[self]


_SENTENCES = {
    Reason.NOT_JSON: "The line is not JSON",
    Reason.BAD_UTF8: "The line is not UTF-8",
    Reason.LONE_SURROGATE: "A text holds half of a surrogate pair, which is no character",
    Reason.NOT_AN_OBJECT: "The line is JSON, but not an object",
    Reason.TOO_LONG: "The line is longer than the limit `line_bytes`",
    Reason.TOO_DEEP: "The event is nested deeper than the limit `depth`",
    Reason.UNKNOWN_TYPE: "`type` is none of track, identify, page, screen, group, alias",
    Reason.NO_EVENT_NAME: "A track has no event name in `event`",
    Reason.NO_RECEIVED_AT: "`receivedAt` is missing or is no ISO 8601 time",
    Reason.NO_MESSAGE_ID: "`messageId` is missing or empty",
    Reason.TOO_MANY_COLUMNS: "The event needs columns beyond the limit `columns` of a table",
    Reason.TOO_MANY_TABLES: "The event needs a new table beyond the limit `tables`",
    Reason.CATALOG_FULL: "The event needs a new table, but the catalog has reached its limit",
    Reason.TOO_MANY_DAYS: "`receivedAt` is far from its day folder, beyond the limit `days`",
    Reason.CUT_OFF: "The file is broken here; what follows could not be read",
    Reason.TOO_MANY_REJECTED: "The file has more rejected lines than the limit `rejected_lines`",
}


class Reject(Exception):
    """A line that is not loaded; the message includes the value found."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason.sentence}: {detail}." if detail else f"{reason.sentence}.")


EVENT_TYPES = ("track", "identify", "page", "screen", "group", "alias")
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Envelope:
    """Type (lowercase), name of a track event, message id if any, and time of receipt."""

    type: str
    event: str | None
    message_id: str | None
    received_at: int  # microseconds since 1970


def open_envelope(event: dict[str, Any]) -> Envelope:
    """Read the envelope of an event; raise `Reject` if it cannot be loaded."""
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
    """The name of a track event: a nonblank string, or a number as written."""
    name = identifying(event.get("event"))
    return name if name and not name.isspace() else None


def message_id(event: dict[str, Any]) -> str | None:
    """The message id: a nonempty string, or a number as written."""
    return identifying(event.get("messageId")) or None


def identifying(value: Any) -> str | None:
    """A value as an id or name: a string, or a number as written; None for others."""
    if isinstance(value, bool) or not isinstance(value, str | int | msgspec.Raw):
        return None
    return text_of(value)


def _seen(value: Any) -> str:
    if value is None:
        return "there is none"
    text = msgspec.json.encode(value).decode()
    return f"it is {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"


def leaves(event: Event, above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The leaves of an event, in their order."""
    for key, value in event.items():
        if type(value) is dict:
            yield from leaves(value, (*above, key))
        elif value is not None:
            yield (*above, key), value

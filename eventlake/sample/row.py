"""One line of a raw file, with what must become of it."""

from enum import StrEnum
from typing import NamedTuple


class Reason(StrEnum):
    """Why a line is not loaded; spelled as in the lake's reports, to be compared with them."""

    NOT_JSON = "not_json"
    BAD_UTF8 = "bad_utf8"
    LONE_SURROGATE = "lone_surrogate"
    NOT_AN_OBJECT = "not_an_object"
    UNKNOWN_TYPE = "unknown_type"
    NO_EVENT_NAME = "no_event_name"
    NO_RECEIVED_AT = "no_received_at"
    NO_MESSAGE_ID = "no_message_id"
    CUT_OFF = "cut_off"


class Row(NamedTuple):
    """A line: an event for a table, or rejected for a reason, or (neither) blank.

    `message_id` is given where the same id may occur again; of such rows equal `body` means the
    same event, equal `body` and `sending` the same bytes.
    """

    data: bytes
    table: str | None = None
    received: int = 0  # epoch milliseconds
    reason: Reason | None = None
    message_id: str | None = None
    body: int = 0
    sending: int = 0

"""Why a line of the raw archive is not loaded, in words for the record log and the report."""

from enum import StrEnum


class Reason(StrEnum):
    """A cause of rejection; stored in records and reports, so values stay as they are."""

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
    CUT_OFF = "cut_off"

    @property
    def sentence(self) -> str:
        """What is wrong, for a person."""
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
    Reason.CUT_OFF: "The file is broken here; what follows could not be read",
}


class Reject(Exception):
    """A line that is not loaded; the message is a sentence with what was seen."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason.sentence}: {detail}." if detail else f"{reason.sentence}.")

"""Lines that cannot be loaded, each with the reason that must be given, and blank ones."""

from collections.abc import Callable, Iterator

from msgspec import Raw
from msgspec.json import encode

from eventlake.sample.draw import Draw
from eventlake.sample.events import EventFactory
from eventlake.sample.kinds import Fields, Kind
from eventlake.sample.row import Reason, Row
from eventlake.sample.shared_events import DEBUG_PROBE

BLANK_LINES = (b"", b"   ", b"\r", b"\t ")


def blank_rows() -> Iterator[Row]:
    return (Row(line) for line in BLANK_LINES)


def fault_rows(factory: EventFactory, draw: Draw, received: int) -> Iterator[Row]:
    """One of each; only where nothing but the id is missing, the line counts for a table."""

    def event(kind: Kind = DEBUG_PROBE) -> Fields:
        return factory.event(kind, draw, received)

    for data in _not_json(event):
        yield Row(data, reason=Reason.NOT_JSON)
    for data in (b"[1,2,3]", b"42", b'"text"', b"null"):
        yield Row(data, reason=Reason.NOT_AN_OBJECT)
    for wrong, reason in (
        (event() | {"properties": {"half": Raw(b'"\\ud83d"')}}, Reason.LONE_SURROGATE),
        (event() | {"properties": {"city": Raw(b'"Z\xfcrich"')}}, Reason.BAD_UTF8),
        (event() | {"type": "delete"}, Reason.UNKNOWN_TYPE),
        (_without("type", event()), Reason.UNKNOWN_TYPE),
        (event() | {"event": None}, Reason.NO_EVENT_NAME),
        (_without("event", event()), Reason.NO_EVENT_NAME),
        (event() | {"receivedAt": "yesterday"}, Reason.NO_RECEIVED_AT),
        (event() | {"receivedAt": "2026-13-45T25:00:00Z"}, Reason.NO_RECEIVED_AT),
        (event() | {"receivedAt": None}, Reason.NO_RECEIVED_AT),
        (_without("receivedAt", event()), Reason.NO_RECEIVED_AT),
    ):
        yield Row(encode(wrong), reason=reason)
    kind = factory.any_kind(draw)
    for nameless in (event(kind) | {"messageId": None}, _without("messageId", event(kind))):
        yield Row(encode(nameless), kind.table, reason=Reason.NO_MESSAGE_ID)


def _not_json(event: Callable[[], Fields]) -> Iterator[bytes]:
    yield b"<html><body><h1>502 Bad Gateway</h1></body></html>"
    yield encode(event()).partition(b'"receivedAt"')[0]
    yield encode(event()) + b" and more"
    yield encode(event()) + encode(event())
    yield encode(event() | {"properties": {"ratio": Raw(b"NaN")}})


def _without(key: str, event: Fields) -> Fields:
    return {name: value for name, value in event.items() if name != key}

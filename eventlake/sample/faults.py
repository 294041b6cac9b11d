"""Lines that cannot be loaded, each with the reason that must be given, and blank ones."""

from collections.abc import Callable, Iterator

from msgspec import Raw
from msgspec.json import encode

from eventlake.sample.account import Reason, Row
from eventlake.sample.event_types import DEBUG_PROBE
from eventlake.sample.events import EventFactory
from eventlake.sample.spec import HOUR, Draw, Fields, Kind, iso

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


_STRANGE_PROPERTIES: tuple[dict[str, object], ...] = (
    {"note": "a\u0000b"},
    {"note": "one\u2028line\u0085still"},  # characters at which str.splitlines() would cut
    {"exponent": Raw(b"1e3"), "tenth": Raw(b"0.10"), "zero": Raw(b"-0")},
    {"huge": 2**64, "precise": Raw(b"12345678901234567890.123456"), "tiny": Raw(b"1e-9")},
    {"iOS": True, "i_os": False, "emptied": "", "nothing": None, "open": {}},
    {"deep": {"er": {"and": {"deeper": [[1, 2.50], [{"x": None}]]}}}},
)


def odd_rows(factory: EventFactory, draw: Draw, received: int) -> Iterator[Row]:
    """One of each, all received at the given moment, all of one table."""

    def probe() -> Fields:
        return factory.event(DEBUG_PROBE, draw, received)

    def row(data: bytes) -> Row:
        return Row(data, DEBUG_PROBE.table, received)

    for strange in _STRANGE_PROPERTIES:
        yield row(encode({**probe(), "properties": strange}))
    yield row(encode({**probe(), "properties": Raw(b'{"plan":"old","plan":"new"}')}))
    yield row(encode({**probe(), "type": "TRACK"}))
    yield row(encode({**probe(), "messageId": 1 + draw.bits(60), "userId": draw.below(10**6)}))
    yield row(b"  " + encode(probe()) + b" \r")
    elsewhere = iso(received + 2 * HOUR).replace("Z", "+02:00")
    yield row(encode({**probe(), "receivedAt": elsewhere}))

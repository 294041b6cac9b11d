"""Lines that look wrong and must be loaded all the same."""

from collections.abc import Iterator

from msgspec import Raw
from msgspec.json import encode

from eventlake.sample.clock import HOUR, iso
from eventlake.sample.draw import Draw
from eventlake.sample.events import EventFactory
from eventlake.sample.kinds import Fields
from eventlake.sample.row import Row
from eventlake.sample.shared_events import DEBUG_PROBE

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

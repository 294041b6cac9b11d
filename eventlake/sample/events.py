"""Whole events: a kind, a person, a moment."""

from bisect import bisect
from itertools import accumulate

from msgspec import Raw
from msgspec.json import encode

from eventlake.sample.browsers import page_context
from eventlake.sample.catalogue import kinds_of
from eventlake.sample.clock import HOUR, SECOND, iso
from eventlake.sample.draw import Draw
from eventlake.sample.kinds import Fields, Kind
from eventlake.sample.people import Person, people_of
from eventlake.sample.phones import network_context
from eventlake.sample.spec import SampleSource, SampleSpec

_INTEGRATIONS = (
    Raw(b"{}"),
    Raw(b'{"Amplitude":{"session_id":1759276800123}}'),
    Raw(b'{"All":true,"Braze":false}'),
)
_METADATA = tuple(
    Raw(encode({"bundled": bundled, "unbundled": unbundled}))
    for bundled, unbundled in (
        (["Amplitude", "Segment.io"], []),
        (["Segment.io"], ["Braze"]),
    )
)
_VERSION = 2


class EventFactory:
    """Makes the events of one source; what is random comes from the caller's stream."""

    def __init__(self, spec: SampleSpec, source: SampleSource) -> None:
        self._spec, self._source = spec, source
        self._people: tuple[Person, ...] = people_of(source, spec.seed)
        self._web = source.platform == "web"
        self._weights: dict[int, list[int]] = {}

    def kinds(self, day: int) -> tuple[Kind, ...]:
        return kinds_of(self._source, day, self._spec.extra_events)

    def any_kind(self, draw: Draw) -> Kind:
        weights = self._weights.get(draw.day)
        if weights is None:
            weights = list(accumulate(kind.weight for kind in self.kinds(draw.day)))
            self._weights[draw.day] = weights
        return self.kinds(draw.day)[bisect(weights, draw.random() * weights[-1])]

    def event(self, kind: Kind, draw: Draw, received: int) -> Fields:
        """An event as a dict whose encoding is its raw line."""
        random = draw.random
        person = self._people[int(random() * random() * len(self._people))]
        waited = int(random() * 5 * SECOND)
        if not self._web and random() < 0.05:  # the phone was offline for up to two days
            waited += int(random() * 48 * HOUR)
        sent = received - 20 - int(random() * SECOND)
        changing = page_context(draw) if self._web else network_context(draw)
        event: Fields = {
            "_metadata": draw.pick(_METADATA),
            "anonymousId": person.anonymous_id,
            "channel": "client" if self._web else "mobile",
            "context": {**person.context, **changing},
            "integrations": draw.pick(_INTEGRATIONS),
            "messageId": self._message_id(draw, sent),
            "originalTimestamp": iso(sent - waited),
            "projectId": self._source.id,
            "receivedAt": iso(received),
            "sentAt": iso(sent),
            "timestamp": iso(received - waited),
            "type": kind.call,
            "userId": person.user_id,
            "version": _VERSION,
        }
        _fill(event, kind, draw)
        return event

    def _message_id(self, draw: Draw, sent: int) -> str:
        return f"ajs-next-{sent}-{draw.uuid()}" if self._web else draw.uuid().upper()


def _fill(event: Fields, kind: Kind, draw: Draw) -> None:
    """What is different from call to call."""
    fields = kind.fields(draw)
    match kind.call:
        case "track":
            event["event"] = draw.pick(kind.names)
            event["properties"] = fields
        case "page" | "screen":
            event["name"] = draw.pick(kind.names)
            event["category"] = None
            event["properties"] = fields
        case "identify":
            event["traits"] = fields
        case "group":
            event["groupId"] = f"g{draw.between(100, 199)}"
            event["traits"] = fields
        case "alias":
            event["previousId"] = event["anonymousId"]
            event["userId"] = f"u{draw.between(10_000, 99_999)}"

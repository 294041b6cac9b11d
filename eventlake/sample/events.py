"""Complete events: a kind, a person, a time."""

from bisect import bisect
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from msgspec import Raw
from msgspec.json import encode

from eventlake.sample.event_types import (
    APP_EVENTS,
    CITIES,
    PRODUCTS,
    SHARED_EVENTS,
    SHOP_EVENTS,
    STREETS,
)
from eventlake.sample.spec import HOUR, SECOND, Draw, Fields, Kind, SampleSource, SampleSpec, iso


def person_traits(draw: Draw) -> Fields:
    city, country, _, _ = draw.pick(CITIES)
    traits: Fields = {
        "email": f"{draw.code('user')}@example.com",
        "firstName": draw.pick(("Zoë", "Jürgen", "李雷", "Søren", "Anna", "Łukasz", "João")),
        "birthday": f"19{draw.between(60, 99)}-0{draw.between(1, 9)}-1{draw.below(10)}",
        "age": draw.between(18, 80),
        "createdAt": f"202{draw.below(6)}-03-0{draw.between(1, 9)}T10:20:30.456Z",
        "address": {"street": draw.pick(STREETS), "city": city, "country": country},
        "interests": draw.some(("hiking", "Kochen", "サーフィン"), 3),
        "vip": draw.chance(0.05),
    }
    if draw.day > 1:
        traits["marketing"] = {"consent": draw.chance(0.6), "channel": "email"}
    return traits


def company_traits(draw: Draw) -> Fields:
    return {
        "name": draw.pick(("Müller & Söhne", "Initech", "株式会社テスト")),
        "employees": "50-100" if draw.odd(0.2) else draw.between(1, 5000),
        "annual_revenue": draw.money(900_000),
    }


def page_seen(draw: Draw) -> Fields:
    return {"scroll_depth": draw.below(1000) / 1000, "logged_in": draw.chance(0.4)}


def nothing(draw: Draw) -> Fields:
    return {}


IDENTIFY = Kind("identify", 40, person_traits, call="identify")
GROUP = Kind("group", 6, company_traits, call="group")
ALIAS = Kind("alias", 6, nothing, call="alias")
PAGE = Kind("page", 160, page_seen, call="page", names=("Home", "Product", "Kasse", "Über uns"))
SCREEN = Kind("screen", 160, page_seen, call="screen", names=("Home", "Product", "Profil", "検索"))


_BY_PLATFORM = {
    "web": (PAGE, IDENTIFY, GROUP, ALIAS, *SHARED_EVENTS, *SHOP_EVENTS),
    "ios": (SCREEN, IDENTIFY, GROUP, ALIAS, *SHARED_EVENTS, *APP_EVENTS),
}


@cache
def kinds_of(source: SampleSource, day: int, extra_events: int = 0) -> tuple[Kind, ...]:
    """The event types of a source on a day (from 1), synthetic ones last."""
    known = (kind for kind in _BY_PLATFORM[source.platform] if kind.since <= day)
    return (*known, *(_synthetic(number) for number in range(1, extra_events + 1)))


def _synthetic(number: int) -> Kind:
    def fields(draw: Draw) -> Fields:
        return {
            "label": draw.code("label"),
            "count": draw.below(1_000_000),
            "amount": draw.money(1_000),
            "done": draw.chance(0.5),
            f"only_{number % 7}": {"depth": draw.between(1, 9), "when": "2026-10-01T00:00:00Z"},
        }

    return Kind(f"track_event_{number:04d}", 20, fields, names=(f"Event {number:04d}",))


_USER_AGENTS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/129.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.0 Safari/605.1.15",
    "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0",
)
_REFERRERS = ("", "https://www.google.com/", "https://duckduckgo.com/", "https://news.example.org/")
_LOCALES = (("de-DE", "Europe/Berlin"), ("en-US", "America/New_York"), ("ja-JP", "Asia/Tokyo"))
_SCREENS = ((1920, 1080, 1), (1440, 900, 2), (2560, 1440, 1.5))
_CAMPAIGN = {"name": "Herbst-Aktion 2026", "source": "newsletter", "medium": "email"}

LIBRARY = {"name": "analytics.js", "version": "npm:next-1.70.0"}


def browser(draw: Draw) -> Fields:
    """The constant context of a visitor."""
    locale, timezone = draw.pick(_LOCALES)
    width, height, density = draw.pick(_SCREENS)
    return {
        "ip": f"203.0.{draw.below(256)}.{draw.between(1, 254)}",
        "library": Raw(encode(LIBRARY)),
        "locale": locale,
        "timezone": timezone,
        "userAgent": draw.pick(_USER_AGENTS),
        "screen": Raw(encode({"width": width, "height": height, "density": density})),
    }


def page_context(draw: Draw) -> Fields:
    """The context that depends on the page."""
    context: Fields = {"page": draw.pick(_PAGES)}
    if draw.random() < 0.25:
        context["campaign"] = _CAMPAIGNS[draw.below(2)]
    if draw.day > 1:
        context["consent"] = _CONSENT
    return context


def _page(number: int) -> Raw:
    product = PRODUCTS[number]
    path = f"/p/{product['product_id']}" if number % 3 else "/"
    search = f"?color={number % 5}&utm_source=newsletter" if number % 4 == 0 else ""
    page = {
        "path": path,
        "referrer": _REFERRERS[number % len(_REFERRERS)],
        "search": search,
        "title": f"{product['name']} · Söll & Töchter",
        "url": f"https://shop.example.com{path}{search}",
    }
    return Raw(encode(page))


_PAGES = tuple(_page(number) for number in range(len(PRODUCTS)))
_CAMPAIGNS = (Raw(encode(_CAMPAIGN)), Raw(encode({**_CAMPAIGN, "term": "regenjacke"})))
_CONSENT = Raw(encode({"categoryPreferences": {"Analytics": True, "Advertising": False}}))


_MODELS = (("iPhone17,1", 402, 874, 3), ("iPhone14,5", 390, 844, 3), ("iPad13,4", 834, 1194, 2))
_OS_VERSIONS = ("18.0", "17.6.1", "26.1")
_NAMES = ("iPhone", "Zoës iPhone", "李雷的iPhone", "Tablet (Küche)")
_CARRIERS = ("Telekom.de", "Swisscom", "NTT DOCOMO", "--")

PHONE_LIBRARY = {"name": "analytics-swift", "version": "1.6.2"}
APP = {"name": "Söll", "namespace": "com.example.soell", "version": "4.12.0", "build": "4121"}


def phone(draw: Draw) -> Fields:
    """The constant context of a phone."""
    model, width, height, density = draw.pick(_MODELS)
    device: Fields = {
        "adTrackingEnabled": draw.chance(0.3),
        "id": draw.uuid().upper(),
        "manufacturer": "Apple",
        "model": model,
        "name": draw.pick(_NAMES),
        "type": "ios",
    }
    if device["adTrackingEnabled"]:
        device["advertisingId"] = draw.uuid().upper()
    return {
        "app": Raw(encode(APP)),
        "device": device,
        "ip": f"198.51.{draw.below(256)}.{draw.between(1, 254)}",
        "library": Raw(encode(PHONE_LIBRARY)),
        "locale": draw.pick(("de_DE", "en_US", "ja_JP")),
        "os": {"name": "iOS", "version": draw.pick(_OS_VERSIONS)},
        "screen": Raw(encode({"width": width, "height": height, "density": density})),
        "timezone": draw.pick(("Europe/Berlin", "America/Sao_Paulo", "Asia/Tokyo")),
    }


def network_context(draw: Draw) -> Fields:
    """The context that depends on the network."""
    context: Fields = {"network": draw.pick(_NETWORKS)}
    if draw.day > 1:
        context["instanceId"] = draw.code("inst")
    return context


_NETWORKS = tuple(
    Raw(encode({"bluetooth": False, "carrier": carrier, "cellular": not wifi, "wifi": wifi}))
    for carrier in _CARRIERS
    for wifi in (True, False)
)


PEOPLE = 2_000


@dataclass(frozen=True, slots=True)
class Person:
    """A visitor, known (with a user id) or not."""

    anonymous_id: str
    user_id: str | None
    context: Fields


def people_of(source: SampleSource, seed: int) -> tuple[Person, ...]:
    """The same people every day."""
    draw = Draw(f"{seed}/{source.slug}/people")
    device = browser if source.platform == "web" else phone
    return tuple(_person(draw, device(draw)) for _ in range(PEOPLE))


def _person(draw: Draw, context: Fields) -> Person:
    user_id = f"u{draw.between(10_000, 99_999)}" if draw.chance(0.6) else None
    if user_id:
        context["traits"] = {"email": f"{user_id}@example.com", "plan": draw.pick(("free", "plus"))}
    return Person(draw.uuid(), user_id, context)


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
    """Creates the events of one source; random values come from the caller's stream."""

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
    """Add the fields that depend on the call."""
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

"""The `context` of events from the web shop."""

from msgspec import Raw
from msgspec.json import encode

from eventlake.sample.draw import Draw
from eventlake.sample.goods import PRODUCTS
from eventlake.sample.kinds import Fields

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
    """What stays the same from event to event of one visitor."""
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
    """What changes with the page that is open."""
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

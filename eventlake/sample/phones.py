"""The `context` of events from the iOS app."""

from msgspec import Raw
from msgspec.json import encode

from eventlake.sample.draw import Draw
from eventlake.sample.kinds import Fields

_MODELS = (("iPhone17,1", 402, 874, 3), ("iPhone14,5", 390, 844, 3), ("iPad13,4", 834, 1194, 2))
_OS_VERSIONS = ("18.0", "17.6.1", "26.1")
_NAMES = ("iPhone", "Zoës iPhone", "李雷的iPhone", "Tablet (Küche)")
_CARRIERS = ("Telekom.de", "Swisscom", "NTT DOCOMO", "--")

LIBRARY = {"name": "analytics-swift", "version": "1.6.2"}
APP = {"name": "Söll", "namespace": "com.example.soell", "version": "4.12.0", "build": "4121"}


def phone(draw: Draw) -> Fields:
    """What stays the same from event to event of one phone."""
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
        "library": Raw(encode(LIBRARY)),
        "locale": draw.pick(("de_DE", "en_US", "ja_JP")),
        "os": {"name": "iOS", "version": draw.pick(_OS_VERSIONS)},
        "screen": Raw(encode({"width": width, "height": height, "density": density})),
        "timezone": draw.pick(("Europe/Berlin", "America/Sao_Paulo", "Asia/Tokyo")),
    }


def network_context(draw: Draw) -> Fields:
    """What changes as the phone moves about."""
    context: Fields = {"network": draw.pick(_NETWORKS)}
    if draw.day > 1:
        context["instanceId"] = draw.code("inst")
    return context


_NETWORKS = tuple(
    Raw(encode({"bluetooth": False, "carrier": carrier, "cellular": not wifi, "wifi": wifi}))
    for carrier in _CARRIERS
    for wifi in (True, False)
)

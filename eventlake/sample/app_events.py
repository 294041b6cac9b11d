"""Events that only the iOS app sends."""

from eventlake.sample.draw import Draw
from eventlake.sample.goods import CITIES
from eventlake.sample.kinds import Fields, Kind


def application_opened(draw: Draw) -> Fields:
    fields: Fields = {
        "from_background": draw.chance(0.7),
        "version": "4.12.0",
        "build": str(draw.between(4100, 4130)),
        "session": {"number": draw.between(1, 300), "seconds_since_last": draw.below(90_000)},
    }
    if draw.day > 1:
        fields["session_replay"] = draw.chance(0.1)
    return fields


def application_installed(draw: Draw) -> Fields:
    return {
        "version": "4.12.0",
        "build": str(draw.between(4100, 4130)),
        "organic": draw.chance(0.6),
    }


def application_backgrounded(draw: Draw) -> Fields:
    return {"seconds_in_foreground": draw.below(900_000) / 1000}


def push_received(draw: Draw) -> Fields:
    return {
        "campaign": {"name": draw.pick(("Herbst", "Back in stock 🎉")), "medium": "push"},
        "message_title": draw.pick(("Dein Paket ist da 📦", "Only today: 20 % off, für dich")),
        "badge": draw.below(10),
    }


def push_tapped(draw: Draw) -> Fields:
    return {**push_received(draw), "action": draw.pick(("Accept", "Später"))}


def deep_link_opened(draw: Draw) -> Fields:
    return {
        "url": f"shop://p/{draw.below(300):05d}?utm_source=mail",
        "provider": draw.pick(("branch", "universal link")),
        "params": {"utm_source": "mail", "$fallback": None},
    }


def barcode_scanned(draw: Draw) -> Fields:
    return {
        "symbology": draw.pick(("EAN-13", "QR")),
        "code": draw.between(4_000_000_000_000, 4_999_999_999_999),
        "found": draw.chance(0.8),
        "milliseconds": draw.below(4_000_000) / 1000,
    }


def location_shared(draw: Draw) -> Fields:
    city, _, latitude, longitude = draw.pick(CITIES)
    return {
        "city": city,
        "coords": {
            "lat": draw.degrees(latitude),
            "lng": draw.degrees(longitude),
            "accuracy": draw.money(60),
        },
    }


def permission_granted(draw: Draw) -> Fields:
    return {"permission": draw.pick(("camera", "location", "notifications")), "iOSPrompt": True}


def widget_added(draw: Draw) -> Fields:
    return {"size": draw.pick(("small", "large")), "addedAt": f"2026-10-0{draw.between(2, 9)}"}


APP_EVENTS = (
    Kind("track_application_opened", 90, application_opened, names=("Application Opened",)),
    Kind("track_application_installed", 6, application_installed, names=("Application Installed",)),
    Kind(
        "track_application_backgrounded",
        80,
        application_backgrounded,
        names=("Application Backgrounded",),
    ),
    Kind(
        "track_push_notification_received",
        40,
        push_received,
        names=("Push Notification Received",),
    ),
    Kind("track_push_notification_tapped", 12, push_tapped, names=("Push Notification Tapped",)),
    Kind("track_deep_link_opened", 15, deep_link_opened, names=("Deep Link Opened",)),
    Kind("track_barcode_scanned", 10, barcode_scanned, names=("Barcode Scanned",)),
    Kind("track_location_shared", 20, location_shared, names=("Location Shared",)),
    Kind("track_i_os_permission_granted", 6, permission_granted, names=("iOS Permission Granted",)),
    Kind("track_widget_added", 10, widget_added, names=("Widget Added",), since=2),
)

"""Events that both the shop and the app send."""

from msgspec import Raw
from msgspec.json import encode

from eventlake.sample.spec import Draw, Fields, Kind

CURRENCIES = ("EUR", "USD", "GBP", "JPY", "CHF")
COUPONS = ("HERBST26", "WELCOME10", "été-2026", "FREE SHIPPING", "双十一")
CITIES = (
    ("Berlin", "DE", 52.52000659, 13.40495399),
    ("Zürich", "CH", 47.37688751, 8.54169402),
    ("São Paulo", "BR", -23.55052085, -46.63330936),
    ("東京", "JP", 35.68948739, 139.69170636),
    ("Kraków", "PL", 50.06465009, 19.94497990),
    ("New York", "US", 40.71277601, -74.00597312),
)
STREETS = ("Hauptstraße 5", "Rue de l'Église 12", "Elm Street 1428", "渋谷1丁目2-3", "Calle Ñuño 8")
SEARCHES = ("rain jacket", "Wanderschuhe", "sac à dos", "帐篷", "Zelt 2 Personen", 'tent 6"', "🏕️")
REVIEWS = (
    "Keeps the rain out. Would buy again.",
    "Très léger, mais la fermeture éclair coince un peu.",
    "Größe fällt klein aus; lieber eine Nummer größer bestellen!",
    "很好。孩子们很喜欢。",
    'The "waterproof" pockets\nare not.\tStill fine.',
    "Perfect 👌🏽",
)

_ADJECTIVES = ("Alpine", "Nordic", "Ultralight", "Classic", "Söll", "Yukon", "Trail", "Polar")
_NOUNS = ("Jacket", "Tent", "Backpack", "Boots", "Mütze", "Sleeping Bag", "Stove", "Thermos", "傘")
_CATEGORIES = ("Outdoor", "Camping", "Schuhe", "Accessories", "Kids & Family")
_BRANDS = ("Fjällräven", "Ortlieb", "Kōyō", "Peak&Pine", "O'Hare")


def _product(number: int) -> dict[str, object]:
    noun = _NOUNS[number % len(_NOUNS)]
    name = f"{_ADJECTIVES[number * 5 % len(_ADJECTIVES)]} {noun}"
    cents = 499 + number * 7_919 % 39_900
    price = b"%d.%02d" % divmod(cents, 100)
    return {
        "product_id": f"p-{number:05d}",
        "sku": f"SKU-{number * 31 % 9_973:04d}-{'SMLX'[number % 4]}",
        "name": name,
        "brand": _BRANDS[number * 3 % len(_BRANDS)],
        "category": _CATEGORIES[number % len(_CATEGORIES)],
        "variant": ("black", "forest green", "blå", None)[number % 4],
        "price": Raw(price[:-1] if price.endswith(b"0") and number % 2 else price),
        "image_url": f"https://cdn.example.com/i/{number:05d}.jpg?w={number % 3}00&q=80",
    }


PRODUCTS = tuple(_product(number) for number in range(300))
# For arrays: encoded once, since hundreds of thousands of events carry them.
CART_ITEMS = tuple(
    Raw(
        encode(
            {
                **{k: product[k] for k in ("product_id", "sku", "name", "price")},
                "quantity": 1 + n % 3,
            }
        )
    )
    for n, product in enumerate(PRODUCTS)
)


def product_viewed(draw: Draw) -> Fields:
    fields: Fields = {
        **draw.pick(PRODUCTS),
        "currency": draw.pick(CURRENCIES),
        "position": draw.between(1, 40),
        "coupon": draw.pick(COUPONS) if draw.chance(0.1) else None,
        "options": {},
    }
    if draw.day > 1:
        fields["inStock"] = draw.chance(0.9)
        fields["delivery"] = {"days": draw.between(1, 9), "express": draw.chance(0.3)}
    return fields


def product_added(draw: Draw) -> Fields:
    quantity: object = draw.between(1, 4)
    if draw.day > 1 and draw.odd(0.3):  # an integer on the first day, anything afterwards
        quantity = draw.pick((1.5, "2 pcs", "3", 2.0))
    product = draw.pick(PRODUCTS)
    return {
        "cart_id": draw.code("cart"),
        "product_id": product["product_id"],
        "name": product["name"],
        "price": product["price"],
        "quantity": quantity,
        "currency": draw.pick(CURRENCIES),
        "tags": draw.some(("sale", "new", "öko", "last chance"), 3),
    }


def products_searched(draw: Draw) -> Fields:
    return {
        "query": draw.pick(SEARCHES),
        "results": draw.pick(("none", "1000+")) if draw.odd(0.2) else draw.below(400),
        "filters": [
            {"type": "price", "value": ["under", draw.between(10, 90)]},
            {"type": "brand", "value": draw.pick(PRODUCTS)["brand"]},
        ],
        "sorted": {"by": draw.pick(("price", "rating", "newest")), "descending": draw.chance(0.5)},
    }


def order_completed(draw: Draw) -> Fields:
    city, country, latitude, longitude = draw.pick(CITIES)
    ordered = draw.day % 28
    asap = draw.day > 1 and draw.odd(0.1)
    fields: Fields = {
        "order_id": draw.code("ord"),
        "checkout_id": draw.code("chk"),
        "total": draw.money(400),
        "revenue": draw.money(350),
        "shipping": draw.money(20),
        "tax": draw.money(60),
        "discount": draw.money(15) if draw.chance(0.2) else 0,
        "currency": draw.pick(CURRENCIES),
        "coupon": draw.pick(COUPONS) if draw.chance(0.2) else "",
        "delivery_date": "as soon as possible" if asap else f"2026-11-{ordered + 1:02d}",
        "shipping_address": {
            "street": draw.pick(STREETS),
            "city": city,
            "country": country,
            "location": {"lat": draw.degrees(latitude), "lng": draw.degrees(longitude)},
        },
        "products": draw.some(CART_ITEMS, 2),
    }
    if draw.day > 1:
        fields["loyalty"] = {
            "tier": draw.pick(("silver", "gold")),
            "points": draw.below(9_000),
            "memberSince": f"20{draw.between(10, 25)}-0{draw.between(1, 9)}-15T08:30:00+02:00",
        }
    return fields


def a_b_test(draw: Draw) -> Fields:
    return {
        "experiment_id": f"exp-{draw.between(1, 12)}",
        "experiment_name": draw.pick(("Checkout: one page", "Größenberater", "Sticky cart")),
        "variation": draw.pick(("control", "A", "B")),
        "ratio": draw.pick((0.5, 0.25, 0.1)),
        "first": draw.chance(0.4),
    }


def two_factor_enabled(draw: Draw) -> Fields:
    return {"method": draw.pick(("totp", "sms", "passkey")), "backup_codes": draw.between(5, 10)}


def registered(draw: Draw) -> Fields:
    return {
        "渠道": draw.pick(("微信", "邮箱", "手机")),
        "plan": "free",
        "newsletter": draw.chance(0.5),
    }


def product_reviewed(draw: Draw) -> Fields:
    return {
        "product_id": draw.pick(PRODUCTS)["product_id"],
        "rating": "five stars" if draw.odd(0.1) else draw.between(1, 5),
        "review_body": draw.pick(REVIEWS),
        "pictures": [],
    }


def debug_probe(draw: Draw) -> Fields:
    return {"probe": draw.code("probe"), "build": draw.between(100, 999)}


DEBUG_PROBE = Kind("track_debug_probe", 1, debug_probe, names=("Debug Probe",))

SHARED_EVENTS = (
    Kind("track_product_viewed", 120, product_viewed, names=("Product Viewed",)),
    Kind("track_product_added", 50, product_added, names=("Product Added",)),
    Kind("track_products_searched", 60, products_searched, names=("Products Searched",)),
    Kind(
        "track_order_completed",
        25,
        order_completed,
        names=("Order Completed", "Order Completed", "order_completed", "OrderCompleted"),
    ),
    Kind("track_a_b_test", 30, a_b_test, names=("A/B Test",)),
    Kind("track_2fa_enabled", 3, two_factor_enabled, names=("2FA Enabled",)),
    Kind("track_x_c4fb6220", 6, registered, names=("注册",)),
    Kind("track_product_reviewed", 8, product_reviewed, names=("Product Reviewed",)),
    DEBUG_PROBE,
)


def product_list_viewed(draw: Draw) -> Fields:
    product = draw.pick(PRODUCTS)
    return {
        "list_id": f"list-{draw.between(1, 30)}",
        "category": product["category"],
        "page": draw.between(1, 5),
        "products": draw.some(CART_ITEMS, 2),
    }


def product_clicked(draw: Draw) -> Fields:
    product = draw.pick(PRODUCTS)
    fields: Fields = {"productID": product["product_id"], "position": draw.between(1, 24)}
    if draw.odd(0.2):  # two keys that meet in one column
        fields["product_id"] = f"legacy-{draw.below(1000)}"
    return fields


def product_removed(draw: Draw) -> Fields:
    return {
        "cart_id": draw.code("cart"),
        "product_id": draw.pick(PRODUCTS)["product_id"],
        "quantity": draw.between(1, 3),
        "reason": draw.pick(("too expensive", "falsche Größe", None)),
    }


def cart_viewed(draw: Draw) -> Fields:
    return {
        "cart_id": draw.code("cart"),
        "value": draw.money(500),
        "currency": draw.pick(CURRENCIES),
        "products": draw.some(CART_ITEMS, 2),
    }


def checkout_started(draw: Draw) -> Fields:
    return {
        "order_id": draw.code("ord"),
        "value": draw.money(400),
        "shipping": draw.money(20),
        "tax": draw.money(60),
        "coupon": draw.pick(COUPONS) if draw.chance(0.2) else "",
        "products": draw.some(CART_ITEMS, 2),
    }


def checkout_step_viewed(draw: Draw) -> Fields:
    step: object = draw.between(1, 4)
    if draw.day > 1 and draw.odd(0.3):
        step = draw.pick(("shipping", "payment", 2.5))
    return {"checkout_id": draw.code("chk"), "step": step, "shipping_method": "DHL Päckchen"}


def payment_info_entered(draw: Draw) -> Fields:
    return {
        "checkout_id": draw.code("chk"),
        "payment_method": draw.pick(("visa", "paypal", "twint", "rechnung")),
        "saved": draw.chance(0.4),
        "expires": f"20{draw.between(27, 31)}-0{draw.between(1, 9)}-01",
    }


def order_refunded(draw: Draw) -> Fields:
    return {
        "order_id": draw.code("ord"),
        "total": draw.money(200),
        "currency": draw.pick(CURRENCIES),
        "refunded_at": f"2026-10-{draw.between(1, 28):02d} 1{draw.below(10)}:05:00",
    }


def coupon_applied(draw: Draw) -> Fields:
    return {"coupon_id": draw.pick(COUPONS), "discount": draw.money(30), "stackable": False}


def promotion_viewed(draw: Draw) -> Fields:
    # `position` is a number in the events about products.
    return {
        "promotion_id": f"promo-{draw.between(1, 9)}",
        "creative": draw.pick(("hero_banner", "Fußzeile")),
        "position": draw.pick(("home_top", "home_bottom", "sidebar")),
    }


def store_located(draw: Draw) -> Fields:
    city, country, latitude, longitude = draw.pick(CITIES)
    return {
        "city": city,
        "country": country,
        "coordinates": {"latitude": draw.degrees(latitude), "longitude": draw.degrees(longitude)},
        "bounds": [draw.degrees(latitude), draw.degrees(longitude)],
        "opening": {"weekdays": ["Mo", "Di", "Mi"], "sunday": None},
    }


def gift_card_redeemed(draw: Draw) -> Fields:
    return {
        "card": draw.code("gift"),
        "amount": draw.money(100),
        "currency": draw.pick(CURRENCIES),
        "valid_until": f"2027-0{draw.between(1, 9)}-30",
    }


SHOP_EVENTS = (
    Kind("track_product_list_viewed", 80, product_list_viewed, names=("Product List Viewed",)),
    Kind("track_product_clicked", 70, product_clicked, names=("Product Clicked",)),
    Kind("track_product_removed", 15, product_removed, names=("Product Removed",)),
    Kind("track_cart_viewed", 40, cart_viewed, names=("Cart Viewed",)),
    Kind("track_checkout_started", 30, checkout_started, names=("Checkout Started",)),
    Kind("track_checkout_step_viewed", 45, checkout_step_viewed, names=("Checkout Step Viewed",)),
    Kind("track_payment_info_entered", 26, payment_info_entered, names=("Payment Info Entered",)),
    Kind("track_order_refunded", 4, order_refunded, names=("Order Refunded",)),
    Kind("track_coupon_applied", 8, coupon_applied, names=("Coupon Applied",)),
    Kind("track_promotion_viewed", 40, promotion_viewed, names=("Promotion Viewed",)),
    Kind("track_store_located", 10, store_located, names=("Store Located",)),
    Kind(
        "track_gift_card_redeemed", 10, gift_card_redeemed, names=("Gift Card Redeemed",), since=2
    ),
)


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

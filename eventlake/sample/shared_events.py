"""Events that both the shop and the app send."""

from eventlake.sample.draw import Draw
from eventlake.sample.goods import (
    CART_ITEMS,
    CITIES,
    COUPONS,
    CURRENCIES,
    PRODUCTS,
    REVIEWS,
    SEARCHES,
    STREETS,
)
from eventlake.sample.kinds import Fields, Kind


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

"""Events that only the web shop sends."""

from eventlake.sample.draw import Draw
from eventlake.sample.goods import CART_ITEMS, CITIES, COUPONS, CURRENCIES, PRODUCTS
from eventlake.sample.kinds import Fields, Kind


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

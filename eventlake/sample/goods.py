"""What the shop sells and says: the pools that events draw from."""

from msgspec import Raw
from msgspec.json import encode

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

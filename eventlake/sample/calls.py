"""The five calls that are not track: identify, page, screen, group, alias."""

from eventlake.sample.draw import Draw
from eventlake.sample.goods import CITIES, STREETS
from eventlake.sample.kinds import Fields, Kind


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

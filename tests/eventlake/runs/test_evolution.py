"""Schemas: how new columns and tables are resolved, alone and across runs."""

from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest
from msgspec import Raw

from eventlake.load.seen import RawPosition, SeenColumn, SeenTable
from eventlake.rules.casts import text_of
from eventlake.rules.inference import Kind
from eventlake.rules.names import RESCUED_DATA, Naming
from eventlake.rules.parse import parse_value
from eventlake.rules.types import Column, LakeType, TableSchema
from eventlake.runs.resolve import RESCUED, resolve, standard_columns
from eventlake.settings.models import Source
from tests.support.lakes.archive import order
from tests.support.lakes.runs import Row, Runs

MONDAY, TUESDAY, WEDNESDAY, THURSDAY = (f"2026-10-{day:02}" for day in (5, 6, 7, 8))
INTEGER, TEXT, OBJECT, ARRAY = 38, "large", {"eu": 38, "us": Raw("7.50")}, [38, Raw("7.50")]


def bring(runs: Runs, day: str, size: Any) -> None:
    """One event of the day, and a sync."""
    runs.load(day, order(day, f"{day}T07:00", size=size))


def held(runs: Runs) -> dict[str, Row]:
    """By day, the cells of the property and below it, and what was rescued."""
    names = [name for name, _, _ in runs.columns("track_order")[16:]]
    return {
        row["day"]: {name: row[name] for name in names if row.get(name) is not None}
        for row in runs.rows("track_order")
    }


def test_integer_then_text_then_object_then_array(runs: Runs) -> None:
    size = ("properties_size", "bigint", "/properties/size")
    rescued_data = ("rescued_data", "string", "")
    eu = ("properties_size_eu", "bigint", "/properties/size/eu")
    us = ("properties_size_us", "decimal(38,6)", "/properties/size/us")

    bring(runs, MONDAY, INTEGER)
    on_monday = {MONDAY: {"properties_size": 38}}
    assert runs.columns("track_order")[16:] == [size]
    assert held(runs) == on_monday

    bring(runs, TUESDAY, TEXT)
    on_tuesday = on_monday | {TUESDAY: {"rescued_data": '{"/properties/size":"large"}'}}
    assert runs.columns("track_order")[16:] == [size, rescued_data]
    assert held(runs) == on_tuesday

    bring(runs, WEDNESDAY, OBJECT)
    on_wednesday = on_tuesday | {
        WEDNESDAY: {"properties_size_eu": 38, "properties_size_us": Decimal("7.500000")}
    }
    assert runs.columns("track_order")[16:] == [size, rescued_data, eu, us]
    assert held(runs) == on_wednesday

    bring(runs, THURSDAY, ARRAY)
    on_thursday = on_wednesday | {THURSDAY: {"rescued_data": '{"/properties/size":[38,7.50]}'}}
    assert runs.columns("track_order")[16:] == [size, rescued_data, eu, us]
    assert held(runs) == on_thursday

    # Types stay also where the very data that would make others are loaded again.
    runs.replay("2026-10-05", "2026-10-09")
    assert runs.columns("track_order")[16:] == [size, rescued_data, eu, us]
    assert held(runs) == on_thursday


def leaves(value: Any, pointer: str = "/properties/size") -> dict[str, Any]:
    """A value by pointers: one of its own, or one for each member of an object."""
    if not isinstance(value, dict):
        return {pointer: value}
    return {f"{pointer}/{key}": inner for key, inner in value.items()}


def found_again(runs: Runs, day: str) -> dict[str, Any]:
    """What a reader gets back of a day's event: what was rescued, else the cells, by pointer."""
    [row] = [row for row in runs.rows("track_order") if row["day"] == day]
    cells = {
        pointer: row[name]
        for name, _, pointer in runs.columns("track_order")[16:]
        if pointer and row.get(name) is not None
    }
    return cells | (parse_value(row[RESCUED_DATA]) if row.get(RESCUED_DATA) else {})


def is_same(cell: Any, value: Any) -> bool:
    """Numbers by what they amount to, all else by its text."""
    if isinstance(cell, int | Decimal):
        return cell == Decimal(text_of(value))
    return text_of(cell) == text_of(value)


def assert_nothing_is_lost(runs: Runs, sent: dict[str, Any]) -> None:
    for day, value in sent.items():
        found, wanted = found_again(runs, day), leaves(value)
        assert found.keys() == wanted.keys(), (day, value, found)
        assert all(is_same(found[at], wanted[at]) for at in wanted), (day, value, found)


@pytest.mark.parametrize(
    "values",
    list(permutations([INTEGER, TEXT, OBJECT, ARRAY])),
    ids=lambda values: "-".join(type(value).__name__ for value in values),
)
def test_nothing_is_lost_in_any_order(runs: Runs, values: tuple[Any, ...]) -> None:
    sent: dict[str, Any] = {}
    columns: list[Any] = []
    for day, value in zip((MONDAY, TUESDAY, WEDNESDAY, THURSDAY), values, strict=True):
        bring(runs, day, value)
        sent[day] = value
        assert_nothing_is_lost(runs, sent)
        # What was there stays as it was, and in its place.
        assert runs.columns("track_order")[: len(columns)] == columns
        columns = runs.columns("track_order")


def test_all_of_them_in_one_sync_make_a_text_column(runs: Runs) -> None:
    sent = {MONDAY: INTEGER, TUESDAY: TEXT, WEDNESDAY: OBJECT, THURSDAY: ARRAY}
    runs.load(THURSDAY, *(order(day, f"{day}T07:00", size=value) for day, value in sent.items()))
    assert runs.columns("track_order")[16:] == [
        ("properties_size", "string", "/properties/size"),
        ("properties_size_eu", "bigint", "/properties/size/eu"),
        ("properties_size_us", "decimal(38,6)", "/properties/size/us"),
    ]
    assert held(runs) == {
        MONDAY: {"properties_size": "38"},
        TUESDAY: {"properties_size": "large"},
        WEDNESDAY: {"properties_size_eu": 38, "properties_size_us": Decimal("7.500000")},
        THURSDAY: {"properties_size": "[38,7.50]"},
    }
    assert_nothing_is_lost(runs, sent)


STANDARD = standard_columns(Naming.NATIVE)


def source(**settings: Any) -> Source:
    return Source.model_validate({"id": "S1", "slug": "shop", **settings})


def seen(
    first: RawPosition, *columns: tuple[str, str, RawPosition, set[Kind]], table: str = "page"
) -> SeenTable:
    found = [SeenColumn(at, name, place, frozenset(kinds)) for name, at, place, kinds in columns]
    return SeenTable(table, "Page", first, found)


def test_a_new_table_has_the_standard_columns_and_then_those_discovered() -> None:
    second = ("b", "/b", (1, 1, 1), {Kind.INT64}), ("c", "/C", (1, 2, 1), {Kind.DATE})
    first = ("a", "/a", (0, 5, 2), {Kind.BOOL}), ("c", "/c", (0, 9, 1), {Kind.DATE})
    page = resolve(source(), {}, [seen((1, 1, 0), *second), seen((0, 5, 0), *first)])["page"]
    assert page.is_new
    assert page.schema.columns == page.new_columns
    assert page.new_columns == (
        *STANDARD,
        Column("a", LakeType.BOOLEAN, "/a"),
        Column("c", LakeType.TIMESTAMP, "/c"),
        Column("b", LakeType.BIGINT, "/b"),
    )
    assert (page.schema.key, page.schema.original) == ("shop.page", "Page")


def test_a_column_is_typed_by_what_all_tasks_saw_of_it() -> None:
    parts = [
        seen((0, 1, 0), ("n", "/n", (0, 1, 1), {Kind.INT64})),
        seen((1, 1, 0), ("n", "/n", (1, 1, 1), {Kind.NUMBER})),
        seen((2, 1, 0), ("t", "/t", (2, 1, 1), {Kind.DATE})),
        seen((3, 1, 0), ("t", "/t", (3, 1, 1), {Kind.TEXT})),
    ]
    types = resolve(source(), {}, parts)["page"].schema.types()
    assert (types["n"], types["t"]) == (LakeType.DECIMAL, LakeType.STRING)


def test_a_known_table_keeps_its_types_and_grows_at_the_end() -> None:
    before = TableSchema(
        "page", "shop", "page", "Seite", (*STANDARD, Column("n", LakeType.BIGINT, "/n"), RESCUED)
    )
    columns = [
        ("n", "/n", (0, 1, 1), {Kind.TEXT}),
        ("new", "/new", (0, 1, 2), {Kind.TEXT}),
        ("event", "/event", (0, 1, 3), {Kind.INT64}),
    ]
    page = resolve(source(), {"shop.page": before}, [seen((0, 1, 0), *columns)])["page"]
    added = Column("new", LakeType.STRING, "/new")
    assert not page.is_new
    assert page.new_columns == (added,)
    assert page.schema.columns == (*before.columns, added)
    assert page.schema.original == "Seite"


def test_rescued_data_is_a_column_the_first_time_only() -> None:
    page = resolve(source(), {}, [seen((0, 1, 0))])["page"]
    once = page.with_column(RESCUED)
    assert once.schema.columns[-1] == once.new_columns[-1] == RESCUED
    assert once.with_column(RESCUED) == once


def test_the_same_table_in_another_place_shares_the_folder_it_does_not_own() -> None:
    old = TableSchema("page", "shop", "page", "Page", STANDARD)
    known = {"shop.page": old}
    elsewhere = resolve(source(database="new"), known, [seen((0, 1, 0))])["page"]
    assert elsewhere.is_new
    assert (elsewhere.schema.key, elsewhere.schema.owns_folder) == ("new.page", False)
    assert resolve(source(), known, [seen((0, 1, 0))])["page"].schema.owns_folder
    prefixed = resolve(source(table_prefix="web"), {}, [seen((0, 1, 0))])["page"]
    assert (prefixed.schema.key, prefixed.schema.owns_folder) == ("shop.web_page", True)

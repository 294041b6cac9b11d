"""From what tasks saw to schemas: order of discovery, types by all kinds."""

from typing import Any

from eventlake.columnar.kinds import Kind
from eventlake.load.seen import Place, SeenColumn, SeenTable
from eventlake.rules.names import Naming
from eventlake.rules.types import Column, LakeType, TableSchema
from eventlake.runs.resolve import RESCUED, resolve, standard_columns
from eventlake.settings.models import Source

STANDARD = standard_columns(Naming.NATIVE)


def source(**settings: Any) -> Source:
    return Source.model_validate({"id": "S1", "slug": "shop", **settings})


def seen(
    first: Place, *columns: tuple[str, str, Place, set[Kind]], table: str = "page"
) -> SeenTable:
    found = [SeenColumn(at, name, place, frozenset(kinds)) for name, at, place, kinds in columns]
    return SeenTable(table, "Page", first, found)


def test_a_new_table_has_the_standard_columns_and_then_those_discovered() -> None:
    resolved = resolve(
        source(),
        {},
        [
            seen(
                (1, 1, 0), ("b", "/b", (1, 1, 1), {Kind.INT64}), ("c", "/C", (1, 2, 1), {Kind.DATE})
            ),
            seen(
                (0, 5, 0), ("a", "/a", (0, 5, 2), {Kind.BOOL}), ("c", "/c", (0, 9, 1), {Kind.DATE})
            ),
        ],
    )
    page = resolved["page"]
    assert page.is_new
    assert (
        page.schema.columns
        == page.new_columns
        == (
            *STANDARD,
            Column("a", LakeType.BOOLEAN, "/a"),
            Column("c", LakeType.TIMESTAMP, "/c"),
            Column("b", LakeType.BIGINT, "/b"),
        )
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

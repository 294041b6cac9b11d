"""Events taken apart: which field goes to which column, who wins one, and what is rescued."""

from typing import Any

import msgspec
import pytest

from lake.names import Naming, pointer
from lake.staging.fields import Fields

DAY_HOUR = ("day", "hr")


def taken_apart(*events: dict[str, Any], naming: Naming = Naming.NATIVE) -> Fields:
    fields = Fields(naming, DAY_HOUR)
    for row, event in enumerate(events):
        fields.add(event, row)
    return fields


def columns(fields: Fields) -> list[tuple[str | None, str, dict[int, Any]]]:
    """Column, pointer and values by row, in order of discovery."""
    return [
        (f.column, pointer(f.path), dict(zip(f.rows, f.cells, strict=True)))
        for f in fields.columns()
    ]


def rescued(event: dict[str, Any], naming: Naming = Naming.NATIVE) -> dict[str, Any] | None:
    return Fields(naming, DAY_HOUR).add(event, 0)


def test_objects_are_flattened_and_arrays_are_values() -> None:
    event = {
        "messageId": "m",
        "properties": {"a": {"bC": 1}, "tags": ["x", {"y": 1}]},
        "context": {"ip": "::1"},
    }
    assert columns(taken_apart(event)) == [
        ("message_id", "/messageId", {0: "m"}),
        ("properties_a_b_c", "/properties/a/bC", {0: 1}),
        ("properties_tags", "/properties/tags", {0: ["x", {"y": 1}]}),
        ("context_ip", "/context/ip", {0: "::1"}),
    ]


def test_null_and_empty_objects_make_no_column_and_empty_texts_and_arrays_do() -> None:
    event: dict[str, Any] = {
        "a": None,
        "b": {},
        "c": {"d": {}, "e": None},
        "f": "",
        "g": [],
        "h": False,
        "i": 0,
    }
    assert columns(taken_apart(event)) == [
        ("f", "/f", {0: ""}),
        ("g", "/g", {0: []}),
        ("h", "/h", {0: False}),
        ("i", "/i", {0: 0}),
    ]


def test_columns_are_in_order_of_discovery() -> None:
    events = ({"b": 1}, {"a": 1, "b": 2, "c": 3}, {"d": 4, "a": 5})
    assert [name for name, _, _ in columns(taken_apart(*events))] == ["b", "a", "c", "d"]


def test_a_field_may_be_an_object_in_one_event_and_a_value_in_another() -> None:
    fields = taken_apart({"a": {"b": 1}}, {"a": 2}, {"a": {"b": 3}})
    assert columns(fields) == [("a_b", "/a/b", {0: 1, 2: 3}), ("a", "/a", {1: 2})]


@pytest.mark.parametrize(
    ("event", "winner", "loser"),
    [
        ({"itemID": 1, "item_id": 2}, "/item_id", {"/itemID": 1}),
        ({"item_id": 2, "itemID": 1}, "/item_id", {"/itemID": 1}),
        ({"itemID": 1, "Item Id": 2}, "/itemID", {"/Item Id": 2}),
        ({"Item Id": 2, "itemID": 1}, "/Item Id", {"/itemID": 1}),
        # Both read like the column, so that the first has it.
        ({"a": {"b_c": 1}, "a_b": {"c": 2}}, "/a/b_c", {"/a_b/c": 2}),
        ({"a_b": {"c": 2}, "a": {"b_c": 1}}, "/a_b/c", {"/a/b_c": 1}),
        ({"user_id": 1, "userId": 2}, "/user_id", {"/userId": 2}),
        ({"X": 1, "x": [2], "x ": 3}, "/x", {"/X": 1, "/x ": 3}),
    ],
)
def test_of_fields_that_meet_the_one_spelled_like_the_column_wins_else_the_first(
    event: dict[str, Any], winner: str, loser: dict[str, Any]
) -> None:
    fields = Fields(Naming.NATIVE, DAY_HOUR)
    assert fields.add(event, 0) == loser
    assert [at for _, at, _ in columns(fields)] == [winner]


def test_fields_that_meet_in_different_events_share_the_column() -> None:
    fields = taken_apart({"itemID": 1}, {"item_id": 2}, {"itemID": 3, "item_id": 4}, {"itemID": 5})
    assert columns(fields) == [
        ("item_id", "/itemID", {0: 1, 3: 5}),
        ("item_id", "/item_id", {1: 2, 2: 4}),
    ]


def test_a_field_that_never_won_is_discovered_when_it_first_does() -> None:
    fields = taken_apart({"itemID": 1, "item_id": 2, "z": 0}, {"y": 1}, {"itemID": 3})
    assert columns(fields) == [
        ("item_id", "/item_id", {0: 2}),
        ("z", "/z", {0: 0}),
        ("y", "/y", {1: 1}),
        ("item_id", "/itemID", {2: 3}),
    ]


@pytest.mark.parametrize("key", ["day", "hr", "Day", "rescuedData", "Message ID", "received_at"])
def test_names_that_are_taken_are_no_columns(key: str) -> None:
    assert rescued({key: 1, "messageId": "m"}) == {f"/{key}": 1}


def test_keys_of_other_layouts_are_columns_like_any() -> None:
    assert [name for name, _, _ in columns(taken_apart({"year": 1, "month": 2}))] == [
        "year",
        "month",
    ]


def test_in_warehouse_naming_properties_stand_bare_and_cannot_hide_standard_columns() -> None:
    event = {
        "messageId": "m",
        "properties": {"plan": "pro", "id": 7, "timestamp": "x", "userId": 1, "sent": {"at": 2}},
        "context": {"ip": "::1"},
        "timestamp": "2026-10-01",
    }
    fields = Fields(Naming.WAREHOUSE, DAY_HOUR)
    assert fields.add(event, 0) == {
        "/properties/id": 7,
        "/properties/timestamp": "x",
        "/properties/userId": 1,
        "/properties/sent/at": 2,
    }
    assert [(name, at) for name, at, _ in columns(fields)] == [
        ("id", "/messageId"),
        ("plan", "/properties/plan"),
        ("context_ip", "/context/ip"),
        ("timestamp", "/timestamp"),
    ]


def test_rescued_values_keep_numbers_as_they_were_written() -> None:
    event = {"x": 0, "X": msgspec.Raw("1.50"), "x!": [msgspec.Raw("1e3"), 2**70]}
    found = rescued(event)
    assert found is not None
    assert msgspec.json.encode(found) == (b'{"/X":1.50,"/x!":[1e3,' + str(2**70).encode() + b"]}")


def test_pointers_escape_what_separates_them() -> None:
    assert rescued({"x": 0, "X/~": {"y": 1}, "X": {"": 2}, "x_y": 3}) == {"/X~1~0/y": 1}


def test_cleared_fields_begin_again_and_still_know_who_meets_whom() -> None:
    fields = taken_apart({"b": 1, "itemID": 1}, {"item_id": 2})
    fields.clear()
    assert columns(fields) == []
    assert fields.add({"itemID": 3, "item_id": 4, "b": 5}, 0) == {"/itemID": 3}
    assert columns(fields) == [("item_id", "/item_id", {0: 4}), ("b", "/b", {0: 5})]


def test_columns_with_an_event_are_those_there_are_and_its_own() -> None:
    fields = taken_apart({"a": 1, "day": 2})
    assert fields.columns_with({"a": 1, "b": {"c": 2, "d": None}, "hr": 3}) == {"a", "b_c"}
    assert fields.columns_with({}) == {"a"}


def test_long_names_are_cut_at_the_length_that_is_set() -> None:
    fields = Fields(Naming.NATIVE, DAY_HOUR, name_length=40)
    fields.add({"a" * 41: 1, "a" * 42: 2, "b" * 40: 3}, 0)
    names = [name for name, _, _ in columns(fields)]
    assert [len(name or "") for name in names] == [40, 40, 40]
    assert len(set(names)) == 3
    assert names[2] == "b" * 40

"""Events taken apart: which field goes to which column, who wins one, and what is rescued."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.load.careful_reader import Refused, TableColumns, TakenApart
from eventlake.rules.events import Reason, leaves
from eventlake.rules.names import Naming, pointer
from eventlake.settings.models import Limits
from tests.support.oracles.leaves import ANY, json_of

DAY_HOUR = ("day", "hr")

Event = dict[str, Any]


def new_columns(naming: Naming = Naming.NATIVE, **limits: int) -> TableColumns:
    return TableColumns(naming, DAY_HOUR, Limits.model_validate(limits))


def taken_apart(
    *events: Event, of: TableColumns | None = None, naming: Naming = Naming.NATIVE
) -> TakenApart:
    taken = (of or new_columns(naming)).take_apart(events)
    assert isinstance(taken, TakenApart)
    return taken


def columns(
    *events: Event, naming: Naming = Naming.NATIVE
) -> list[tuple[str | None, str, dict[int, Any]]]:
    """Column, pointer and values by row, in order of discovery."""
    table = new_columns(naming)
    taken = taken_apart(*events, of=table)
    return [
        (table.column(path), pointer(path), present(taken.values[path]))
        for path in sorted(taken.first, key=taken.first.__getitem__)
    ]


def present(values: list[Any]) -> dict[int, Any]:
    return {row: value for row, value in enumerate(values) if value is not None}


def rescued(event: Event, naming: Naming = Naming.NATIVE) -> str:
    return ",".join(taken_apart(event, naming=naming).rescued.get(0, []))


def test_objects_are_flattened_and_arrays_are_values() -> None:
    event = {
        "messageId": "m",
        "properties": {"a": {"bC": 1}, "tags": ["x", {"y": 1}]},
        "context": {"ip": "::1"},
    }
    assert columns(event) == [
        ("message_id", "/messageId", {0: "m"}),
        ("properties_a_b_c", "/properties/a/bC", {0: 1}),
        ("properties_tags", "/properties/tags", {0: ["x", {"y": 1}]}),
        ("context_ip", "/context/ip", {0: "::1"}),
    ]


def test_null_and_empty_objects_make_no_column_and_empty_texts_and_arrays_do() -> None:
    event: Event = {
        "a": None,
        "b": {},
        "c": {"d": {}, "e": None},
        "f": "",
        "g": [],
        "h": False,
        "i": 0,
    }
    assert columns(event) == [
        ("f", "/f", {0: ""}),
        ("g", "/g", {0: []}),
        ("h", "/h", {0: False}),
        ("i", "/i", {0: 0}),
    ]


def test_columns_are_in_order_of_discovery() -> None:
    found = columns({"b": 1}, {"a": 1, "b": 2, "c": 3}, {"d": 4, "a": 5})
    assert [name for name, _, _ in found] == ["b", "a", "c", "d"]


def test_a_field_is_discovered_where_it_first_has_a_value() -> None:
    found = columns({"b": None, "a": None, "z": 1}, {"a": 1, "b": {"c": 2}})
    assert [name for name, _, _ in found] == ["z", "a", "b_c"]


def test_a_field_may_be_an_object_in_one_event_and_a_value_in_another() -> None:
    assert columns({"a": {"b": 1}}, {"a": 2}, {"a": {"b": 3}}) == [
        ("a_b", "/a/b", {0: 1, 2: 3}),
        ("a", "/a", {1: 2}),
    ]
    assert columns({"a": 2}, {"a": {"b": 1}}, {"a": [3]}) == [
        ("a", "/a", {0: 2, 2: [3]}),
        ("a_b", "/a/b", {1: 1}),
    ]


@pytest.mark.parametrize(
    ("event", "winner", "loser"),
    [
        ({"itemID": 1, "item_id": 2}, "/item_id", '"/itemID":1'),
        ({"item_id": 2, "itemID": 1}, "/item_id", '"/itemID":1'),
        ({"itemID": 1, "Item Id": 2}, "/itemID", '"/Item Id":2'),
        ({"Item Id": 2, "itemID": 1}, "/Item Id", '"/itemID":1'),
        # Both read like the column, so that the first has it.
        ({"a": {"b_c": 1}, "a_b": {"c": 2}}, "/a/b_c", '"/a_b/c":2'),
        ({"a_b": {"c": 2}, "a": {"b_c": 1}}, "/a_b/c", '"/a/b_c":1'),
        ({"user_id": 1, "userId": 2}, "/user_id", '"/userId":2'),
        ({"X": 1, "x": [2], "x ": 3}, "/x", '"/X":1,"/x ":3'),
    ],
)
def test_of_fields_that_meet_the_one_spelled_like_the_column_wins_else_the_first(
    event: Event, winner: str, loser: str
) -> None:
    assert rescued(event) == loser
    assert [at for _, at, _ in columns(event)] == [winner]


def test_fields_that_meet_in_different_events_share_the_column() -> None:
    found = columns({"itemID": 1}, {"item_id": 2}, {"itemID": 3, "item_id": 4}, {"itemID": 5})
    assert found == [("item_id", "/itemID", {0: 1, 3: 5}), ("item_id", "/item_id", {1: 2, 2: 4})]


def test_a_field_that_never_won_is_discovered_when_it_first_does() -> None:
    found = columns({"itemID": 1, "item_id": 2, "z": 0}, {"y": 1}, {"itemID": 3})
    assert found == [
        ("item_id", "/item_id", {0: 2}),
        ("z", "/z", {0: 0}),
        ("y", "/y", {1: 1}),
        ("item_id", "/itemID", {2: 3}),
    ]


@pytest.mark.parametrize("key", ["day", "hr", "Day", "rescuedData", "Message ID", "received_at"])
def test_names_that_are_taken_are_no_columns(key: str) -> None:
    assert rescued({key: 1, "messageId": "m"}) == f'"/{key}":1'


def test_keys_of_other_layouts_are_columns_like_any() -> None:
    assert [name for name, _, _ in columns({"year": 1, "month": 2})] == ["year", "month"]


def test_in_warehouse_naming_properties_stand_bare_and_cannot_hide_standard_columns() -> None:
    event = {
        "messageId": "m",
        "properties": {"plan": "pro", "id": 7, "timestamp": "x", "userId": 1, "sent": {"at": 2}},
        "context": {"ip": "::1"},
        "timestamp": "2026-10-01",
    }
    homeless = msgspec.json.decode("{" + rescued(event, Naming.WAREHOUSE) + "}")
    assert homeless == {
        "/properties/id": 7,
        "/properties/timestamp": "x",
        "/properties/userId": 1,
        "/properties/sent/at": 2,
    }
    assert [(name, at) for name, at, _ in columns(event, naming=Naming.WAREHOUSE)] == [
        ("id", "/messageId"),
        ("plan", "/properties/plan"),
        ("context_ip", "/context/ip"),
        ("timestamp", "/timestamp"),
    ]


def test_rescued_values_keep_numbers_as_they_were_written() -> None:
    event = {"x": 0, "X": msgspec.Raw("1.50"), "x!": [msgspec.Raw("1e3"), 2**70]}
    assert rescued(event) == f'"/X":1.50,"/x!":[1e3,{2**70}]'


def test_pointers_escape_what_separates_them() -> None:
    assert rescued({"x": 0, "X/~": {"y": 1}, "X": {"": 2}, "x_y": 3}) == '"/X~1~0/y":1'


def test_later_lines_still_know_who_meets_whom() -> None:
    table = new_columns()
    taken_apart({"b": 1, "itemID": 1}, {"item_id": 2}, of=table)
    later = taken_apart({"itemID": 3, "item_id": 4, "b": 5}, of=table)
    assert later.rescued == {0: ['"/itemID":3']}
    assert later.values == {("item_id",): [4], ("b",): [5]}


def test_rows_that_would_make_too_many_columns_are_refused_and_later_ones_that_fit_are_not() -> (
    None
):
    table = TableColumns(Naming.NATIVE, DAY_HOUR, Limits(columns=3), known=frozenset({"a"}))
    events: list[Event] = [
        {"a": 1, "b": 1},
        {"c": 1, "d": 1},
        {"day": 1, "e": 1},
        {"f": 1},
        {"e": None},
    ]
    refused = table.take_apart(events)
    assert isinstance(refused, Refused)
    assert {row: why.reason for row, why in refused.rows.items()} == {
        1: Reason.TOO_MANY_COLUMNS,
        3: Reason.TOO_MANY_COLUMNS,
    }
    kept = table.take_apart([event for row, event in enumerate(events) if row not in (1, 3)])
    assert isinstance(kept, TakenApart)
    assert {path: present(values) for path, values in kept.values.items()} == {
        ("a",): {0: 1},
        ("b",): {0: 1},
        ("e",): {1: 1},
    }


def test_long_names_are_cut_at_the_length_that_is_set() -> None:
    table = new_columns(column_name=40)
    taken = taken_apart({"a" * 41: 1, "a" * 42: 2, "b" * 40: 3}, of=table)
    names = [table.column(path) for path in taken.values]
    assert [len(name or "") for name in names] == [40, 40, 40]
    assert len(set(names)) == 3
    assert "b" * 40 in names


KEYS = st.sampled_from(["a", "b", "B", "c d", "", "注", "day", "messageId", "timestamp"])
EVENTS = st.dictionaries(
    KEYS,
    st.recursive(
        st.none() | ANY, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
    ),
    max_size=4,
)


@given(batches=st.lists(st.lists(EVENTS, min_size=1, max_size=5), min_size=1, max_size=4))
def test_every_value_is_in_its_column_or_rescued(batches: list[list[Event]]) -> None:
    table = new_columns()
    for events in batches:
        taken = taken_apart(*events, of=table)
        for row, event in enumerate(events):
            found = {pointer(p): v[row] for p, v in taken.values.items() if v[row] is not None}
            rest = msgspec.json.decode(f"{{{','.join(taken.rescued.get(row, []))}}}".encode())
            assert found.keys().isdisjoint(rest)
            walked = {pointer(path): json_of(value) for path, value in leaves(event)}
            assert {at: json_of(value) for at, value in found.items()} == {
                at: text for at, text in walked.items() if at not in rest
            }
            assert rest.keys() <= walked.keys()

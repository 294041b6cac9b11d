"""Events taken apart: which field goes to which column, who wins one, and what is rescued."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.load.seen import SeenTable
from eventlake.rules.events import Reason, leaves
from eventlake.rules.names import Naming, pointer
from eventlake.settings.models import Limits
from tests.support.json_values import ANY, json_of
from tests.support.lakes.staged import Staged, StagedRow

Event = dict[str, Any]
HEAD = {"type": "identify", "messageId": "m", "receivedAt": "2026-10-01T07:00:00Z"}


class TakenApart:
    """Events of one table that the fast reader reads, or, with `odd`, the careful one."""

    def __init__(self, root: Path, *events: Event, odd: bool = False, **job: Any) -> None:
        head = HEAD | {"type": "IDENTIFY"} if odd else HEAD
        self._own = {pointer((key,)) for event in events for key in event}
        staged = Staged(root, [event | head | event for event in events], **job)
        self.rows: list[StagedRow] = staged.rows()
        self.seen: SeenTable = staged.seen.tables[0]
        self.rejected = staged.seen.rejected

    @property
    def columns(self) -> list[tuple[str, str, dict[int, Any]]]:
        """Column, pointer and values by row, in order of discovery."""
        found = []
        for seen in sorted(self.seen.columns, key=lambda column: column.first):
            at = seen.pointer
            if not any(at == own or at.startswith(f"{own}/") for own in self._own):
                continue
            values = {n: r.values[at] for n, r in enumerate(self.rows) if at in r.columns}
            assert all(r.columns.get(at, seen.column) == seen.column for r in self.rows)
            found.append((seen.column, at, values))
        return found

    def rescued(self, row: int = 0) -> str:
        lost = self.rows[row]
        members = (json_of({at: lost.values[at]})[1:-1] for at in lost.lost)
        return ",".join(members)


@pytest.fixture(params=["fast", "careful"])
def take(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    def taken(*events: Event, **job: Any) -> TakenApart:
        return TakenApart(tmp_path, *events, odd=request.param == "careful", **job)

    return taken


def test_objects_are_flattened_and_arrays_are_values(take: Any) -> None:
    event = {
        "messageId": "m",
        "properties": {"a": {"bC": 1}, "tags": ["x", {"y": 1}]},
        "context": {"ip": "::1"},
    }
    assert take(event).columns == [
        ("message_id", "/messageId", {0: "m"}),
        ("properties_a_b_c", "/properties/a/bC", {0: 1}),
        ("properties_tags", "/properties/tags", {0: ["x", {"y": 1}]}),
        ("context_ip", "/context/ip", {0: "::1"}),
    ]


def test_null_and_empty_objects_make_no_column_and_empty_texts_and_arrays_do(take: Any) -> None:
    event: Event = {
        "a": None,
        "b": {},
        "c": {"d": {}, "e": None},
        "f": "",
        "g": [],
        "h": False,
        "i": 0,
    }
    assert take(event).columns == [
        ("f", "/f", {0: ""}),
        ("g", "/g", {0: []}),
        ("h", "/h", {0: False}),
        ("i", "/i", {0: 0}),
    ]


def test_columns_are_in_order_of_discovery(take: Any) -> None:
    found = take({"b": 1}, {"a": 1, "b": 2, "c": 3}, {"d": 4, "a": 5}).columns
    assert [name for name, _, _ in found] == ["b", "a", "c", "d"]


def test_a_field_is_discovered_where_it_first_has_a_value(take: Any) -> None:
    found = take({"b": None, "a": None, "z": 1}, {"a": 1, "b": {"c": 2}}).columns
    assert [name for name, _, _ in found] == ["z", "a", "b_c"]


def test_a_field_may_be_an_object_in_one_event_and_a_value_in_another(take: Any) -> None:
    assert take({"a": {"b": 1}}, {"a": 2}, {"a": {"b": 3}}).columns == [
        ("a_b", "/a/b", {0: 1, 2: 3}),
        ("a", "/a", {1: 2}),
    ]
    assert take({"a": 2}, {"a": {"b": 1}}, {"a": [3]}).columns == [
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
    take: Any, event: Event, winner: str, loser: str
) -> None:
    taken = take(event)
    assert taken.rescued() == loser
    assert [at for _, at, _ in taken.columns] == [winner]


def test_fields_that_meet_in_different_events_share_the_column(take: Any) -> None:
    found = take({"itemID": 1}, {"item_id": 2}, {"itemID": 3, "item_id": 4}, {"itemID": 5}).columns
    assert found == [("item_id", "/itemID", {0: 1, 3: 5}), ("item_id", "/item_id", {1: 2, 2: 4})]


def test_a_field_that_never_won_is_discovered_when_it_first_does(take: Any) -> None:
    found = take({"itemID": 1, "item_id": 2, "z": 0}, {"y": 1}, {"itemID": 3}).columns
    assert found == [
        ("item_id", "/item_id", {0: 2}),
        ("z", "/z", {0: 0}),
        ("y", "/y", {1: 1}),
        ("item_id", "/itemID", {2: 3}),
    ]


@pytest.mark.parametrize("key", ["day", "hr", "Day", "rescuedData", "Message ID", "received_at"])
def test_reserved_names_are_no_columns(take: Any, key: str) -> None:
    assert take({key: 1}).rescued() == f'"/{key}":1'


def test_keys_of_other_layouts_are_columns_like_any(take: Any) -> None:
    assert [name for name, _, _ in take({"year": 1, "month": 2}).columns] == ["year", "month"]


def test_in_warehouse_naming_properties_have_no_prefix_and_cannot_hide_standard_columns(
    take: Any,
) -> None:
    event = {
        "messageId": "m",
        "properties": {"plan": "pro", "id": 7, "timestamp": "x", "userId": 1, "sent": {"at": 2}},
        "context": {"ip": "::1"},
        "timestamp": "2026-10-01",
    }
    taken = take(event, naming=Naming.WAREHOUSE)
    assert msgspec.json.decode("{" + taken.rescued() + "}") == {
        "/properties/id": 7,
        "/properties/timestamp": "x",
        "/properties/userId": 1,
        "/properties/sent/at": 2,
    }
    assert [(name, at) for name, at, _ in taken.columns] == [
        ("id", "/messageId"),
        ("plan", "/properties/plan"),
        ("context_ip", "/context/ip"),
        ("timestamp", "/timestamp"),
    ]


def test_rescued_values_keep_numbers_as_they_were_written(take: Any) -> None:
    event = {"x": 0, "X": msgspec.Raw("1.50"), "x!": [msgspec.Raw("1e3"), 2**70]}
    assert take(event).rescued() == f'"/X":1.50,"/x!":[1e3,{2**70}]'


def test_pointers_escape_what_separates_them(take: Any) -> None:
    event = {"x": 0, "X/~": {"y": 1}, "X": {"": 2}, "x_y": 3}
    assert take(event).rescued() == '"/X~1~0/y":1'


def test_later_blocks_still_know_the_columns(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("eventlake.load.stage.FLUSH_BYTES", 1)
    monkeypatch.setattr("eventlake.columnar.raw_lines.PIECE", 1)
    events = [{"b": 1, "itemID": 1}, {"item_id": 2}, {"itemID": 3, "item_id": 4, "b": 5}, {"c": 1}]
    staged = Staged(tmp_path, [HEAD | event for event in events], limits=Limits(columns=18))
    assert [row.lost for row in staged.rows()] == [[], [], ["/itemID"]]
    assert staged.seen.rejected == {"identify": {Reason.TOO_MANY_COLUMNS: 1}}


def test_rows_that_would_make_too_many_columns_are_refused_and_later_ones_that_fit_are_not(
    take: Any,
) -> None:
    events: list[Event] = [
        {"a": 1, "b": 1},
        {"c": 1, "d": 1},
        {"day": 1, "e": 1},
        {"f": 1},
        {"e": None},
    ]
    own = frozenset({"type", "message_id", "received_at", "a"})
    taken = take(*events, columns={"identify": own}, limits=Limits(columns=6))
    assert [row.line for row in taken.rows] == [1, 3, 5]
    assert taken.rejected == {"identify": {Reason.TOO_MANY_COLUMNS: 2}}
    assert taken.columns == [
        ("a", "/a", {0: 1}),
        ("b", "/b", {0: 1}),
        ("e", "/e", {1: 1}),
    ]


def test_long_names_are_cut_at_the_length_that_is_set(take: Any) -> None:
    event = {"a" * 41: 1, "a" * 42: 2, "b" * 40: 3}
    names = [name for name, _, _ in take(event, limits=Limits(column_name=40)).columns]
    assert [len(name) for name in names] == [40, 40, 40]
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


@given(events=st.lists(EVENTS, min_size=1, max_size=5), odd=st.booleans())
def test_every_value_is_in_its_column_or_rescued(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], odd: bool
) -> None:
    events = [event | HEAD | {"type": "IDENTIFY" if odd else "identify"} for event in events]
    staged = Staged(tmp_path_factory.mktemp("lake"), events)
    for row, event in zip(staged.rows(), events, strict=True):
        walked = {pointer(path): json_of(value) for path, value in leaves(event)}
        assert {at: json_of(value) for at, value in row.values.items()} == walked
        assert row.columns.keys() | set(row.lost) == walked.keys()
        assert row.columns.keys().isdisjoint(row.lost)
        assert len(set(row.columns.values())) == len(row.columns)

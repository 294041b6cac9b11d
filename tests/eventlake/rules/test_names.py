"""The name rule, both naming conventions, and the columns that fields may not have."""

import re
from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.rules.events import EVENT_TYPES
from eventlake.rules.names import (
    STANDARD_COLUMNS,
    TABLE_LENGTH,
    Naming,
    catalog_table,
    column_name,
    event_of_table,
    is_spelled_like_column,
    pointer,
    pointer_path,
    snake,
    table_name,
    type_of_table,
)

NATIVE, WAREHOUSE = Naming.NATIVE, Naming.WAREHOUSE
Path = tuple[str, ...]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("productID", "product_id"),
        ("iOS", "i_os"),
        ("2FA Enabled", "2fa_enabled"),
        ("_metadata", "metadata"),
        ("A/B Test", "a_b_test"),
        ("Order Completed", "order_completed"),
        ("order_completed", "order_completed"),
        ("utf8Name", "utf8_name"),
        ("HTTPServer", "httpserver"),
        ("café au lait", "caf_au_lait"),
        ("$revenue", "revenue"),
        ("__a--b__", "a_b"),
        ("注册", "x_" + sha256("注册".encode()).hexdigest()[:8]),
        ("登录", "x_" + sha256("登录".encode()).hexdigest()[:8]),
        ("", "x_" + sha256(b"").hexdigest()[:8]),
    ],
)
def test_a_name_is_its_words_in_small_letters(name: str, expected: str) -> None:
    assert snake(name) == expected


@given(st.text())
def test_every_name_is_short_and_plain_and_stays_as_it_is(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", snake(name))
    assert len(snake(name)) <= 250
    assert snake(snake(name)) == snake(name)


def test_only_what_is_over_250_characters_is_cut() -> None:
    fits, long, other = "a" * 250, "a" * 251, "a" * 252
    assert snake(fits) == fits
    assert snake(long) == "a" * 241 + "_" + sha256(long.encode()).hexdigest()[:8]
    assert len(snake(other)) == 250
    assert snake(long) != snake(other)
    assert snake("Order Completed " * 30) == snake("order_completed_" * 30)


@pytest.mark.parametrize(
    ("path", "native", "warehouse"),
    [
        (("properties", "productID"), "properties_product_id", "product_id"),
        (("properties", "address", "zipCode"), "properties_address_zip_code", "address_zip_code"),
        (("traits", "plan"), "traits_plan", "plan"),
        (("context", "traits", "plan"), "context_traits_plan", "context_traits_plan"),
        (("context", "ip"), "context_ip", "context_ip"),
        (("_metadata", "bundled"), "metadata_bundled", "metadata_bundled"),
        (("integrations", "All"), "integrations_all", "integrations_all"),
        (("writeKey",), "write_key", "write_key"),
        (("messageId",), "message_id", "id"),
        (("userId",), "user_id", "user_id"),
        (("receivedAt",), "received_at", "received_at"),
        # Not objects this time, so there is nothing to leave the prefix from.
        (("properties",), "properties", "properties"),
        (("properties", "properties"), "properties_properties", "properties"),
        (("properties", "messageId"), "properties_message_id", "message_id"),
    ],
)
def test_a_field_has_its_column(path: Path, native: str, warehouse: str) -> None:
    assert column_name(path, NATIVE) == native
    assert column_name(path, WAREHOUSE) == warehouse


def test_segments_are_named_one_by_one() -> None:
    assert column_name(("properties", "注册"), NATIVE) == f"properties_{snake('注册')}"
    assert column_name(("properties", "注册", "登录"), WAREHOUSE) == (
        f"{snake('注册')}_{snake('登录')}"
    )


@pytest.mark.parametrize("event_type", EVENT_TYPES)
@pytest.mark.parametrize(
    "path",
    [
        ("properties", "id"),
        ("traits", "userId"),
        ("traits", "anonymous_id"),
        ("properties", "type"),
        ("properties", "channel"),
        ("properties", "timestamp"),
        ("properties", "Sent At"),
        ("properties", "user", "id"),
        ("id",),
    ],
)
def test_warehouse_properties_never_hide_ids_and_times(path: Path, event_type: str) -> None:
    assert column_name(path, WAREHOUSE, event_type) is None
    assert column_name(path, NATIVE, event_type) is not None


@pytest.mark.parametrize(
    ("key", "column", "used_by"),
    [
        ("name", "name", {"page", "screen"}),
        ("Category", "category", {"page", "screen"}),
        ("groupId", "group_id", {"group"}),
        ("previousId", "previous_id", {"alias"}),
        ("event", "event", {"track"}),
        ("eventText", "event_text", {"track"}),
    ],
)
@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_warehouse_properties_fill_what_their_event_type_does_not_use(
    event_type: str, key: str, column: str, used_by: set[str]
) -> None:
    for content in ("properties", "traits"):
        found = column_name((content, key), WAREHOUSE, event_type)
        assert found == (None if event_type in used_by else column)


@pytest.mark.parametrize(
    ("table", "event_type", "event"),
    [
        ("order_completed", "track", "order_completed"),
        ("track_pages", "track", "pages"),
        ("track_order", "track", "track_order"),
        ("identifies", "identify", None),
        ("groups", "group", None),
    ],
)
def test_warehouse_tables_are_read_back(table: str, event_type: str, event: str | None) -> None:
    assert type_of_table(table, WAREHOUSE) == event_type
    assert event_of_table(table, WAREHOUSE) == event


@given(st.sampled_from(EVENT_TYPES), st.text(min_size=1, max_size=40), st.sampled_from(Naming))
def test_the_table_of_an_event_has_its_type(event_type: str, event: str, naming: Naming) -> None:
    table = table_name(event_type, event, naming)
    assert type_of_table(table, naming) == event_type


@given(st.text(max_size=40).filter(lambda event: not snake(event).startswith("track_")))
def test_the_event_of_a_warehouse_table_is_the_name_by_the_name_rule(event: str) -> None:
    assert event_of_table(table_name("track", event, WAREHOUSE), WAREHOUSE) == snake(event)


def test_warehouse_naming_has_a_column_for_the_track_name_as_sent() -> None:
    assert column_name(("event",), WAREHOUSE, "track") == "event_text"
    assert column_name(("event_text",), WAREHOUSE, "track") is None
    assert column_name(("Event",), WAREHOUSE, "track") is None
    assert column_name(("event",), WAREHOUSE, "page") == "event"
    assert column_name(("event",), NATIVE, "track") == "event"


@pytest.mark.parametrize(
    ("path", "naming"),
    [
        # No other field may pose as these two.
        (("message_id",), NATIVE),
        (("message", "id"), NATIVE),
        (("received_at",), NATIVE),
        (("received", "at"), NATIVE),
        (("MessageID",), NATIVE),
        # The lake itself uses these.
        (("rescued_data",), NATIVE),
        (("rescuedData",), NATIVE),
        (("properties", "rescued_data"), WAREHOUSE),
        (("day",), NATIVE),
        (("properties", "hr"), WAREHOUSE),
        (("properties", "Year"), WAREHOUSE),
        (("properties", "month"), WAREHOUSE),
    ],
)
def test_reserved_names_are_no_columns(path: Path, naming: Naming) -> None:
    assert column_name(path, naming) is None
    # Of the partition keys only those of the table, if they are given.
    assert column_name(("properties", "year"), WAREHOUSE, "track", ("day", "hr")) == "year"
    assert column_name(("properties", "day"), WAREHOUSE, "track", ("day", "hr")) is None


@pytest.mark.parametrize(
    ("path", "naming", "spelled"),
    [
        (("properties", "product_id"), NATIVE, True),
        (("properties", "productId"), NATIVE, False),
        (("properties", "product_id"), WAREHOUSE, True),
        (("properties", "product", "id"), NATIVE, True),
        (("Properties", "product_id"), NATIVE, False),
        (("properties", "注册"), NATIVE, False),
        (("user_id",), NATIVE, True),
        (("userId",), NATIVE, False),
    ],
)
def test_a_key_spelled_like_its_column_is_known(path: Path, naming: Naming, spelled: bool) -> None:
    assert is_spelled_like_column(path, naming) is spelled


@pytest.mark.parametrize(
    ("event_type", "event", "native", "warehouse"),
    [
        ("track", "Page View", "track_page_view", "page_view"),
        ("track", "pageView", "track_page_view", "page_view"),
        ("track", "2FA Enabled", "track_2fa_enabled", "2fa_enabled"),
        ("track", "注册", f"track_{snake('注册')}", snake("注册")),
        ("track", "Pages", "track_pages", "track_pages"),
        ("track", "Aliases", "track_aliases", "track_aliases"),
        ("track", "identify", "track_identify", "identify"),
        ("identify", None, "identify", "identifies"),
        ("page", None, "page", "pages"),
        ("screen", None, "screen", "screens"),
        ("group", None, "group", "groups"),
        ("alias", None, "alias", "aliases"),
    ],
)
def test_table_names(event_type: str, event: str | None, native: str, warehouse: str) -> None:
    assert table_name(event_type, event, NATIVE) == native
    assert table_name(event_type, event, WAREHOUSE) == warehouse


@given(st.text(max_size=400), st.sampled_from(Naming))
@example("a" * 245, WAREHOUSE)
def test_the_folder_of_every_table_fits_a_file_system(event: str, naming: Naming) -> None:
    assert len(f"segment_type={table_name('track', event, naming)}") <= 255


def test_long_table_names_are_cut_with_a_hash() -> None:
    longest = "a" * (TABLE_LENGTH - len("track_"))
    assert table_name("track", longest) == f"track_{longest}"
    assert re.fullmatch(r"track_a+_[0-9a-f]{8}", table_name("track", f"{longest}a"))
    assert table_name("track", f"{longest}a") != table_name("track", f"{longest}aa")
    with pytest.raises(ValueError, match="event name"):
        table_name("track")
    assert catalog_table("track_page_view", "ios") == "ios_track_page_view"
    assert catalog_table("track_page_view", None) == "track_page_view"
    assert len(catalog_table("a" * 242, "ios_production")) == 250


def test_the_sixteen_standard_columns_are_in_order() -> None:
    assert " ".join(column.name(NATIVE) for column in STANDARD_COLUMNS) == (
        "message_id anonymous_id user_id group_id previous_id event name category type channel "
        "project_id version received_at sent_at timestamp original_timestamp"
    )
    assert [c.name(WAREHOUSE) for c in STANDARD_COLUMNS][:2] == ["id", "anonymous_id"]
    times = [c.name(NATIVE) for c in STANDARD_COLUMNS if c.type.sql == "timestamp"]
    assert times == ["received_at", "sent_at", "timestamp", "original_timestamp"]
    assert {column.type.sql for column in STANDARD_COLUMNS} == {"string", "timestamp"}


@pytest.mark.parametrize("naming", Naming)
def test_a_standard_column_is_named_like_the_field_its_pointer_leads_to(naming: Naming) -> None:
    for column in STANDARD_COLUMNS:
        path = pointer_path(column.pointer)
        assert column_name(path, naming, "page") == column.name(naming)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("properties", "price"), "/properties/price"),
        (("a/b", "m~n"), "/a~1b/m~0n"),
        (("~1",), "/~01"),
        (("", " "), "// "),
    ],
)
def test_pointers_are_those_of_rfc_6901(path: Path, text: str) -> None:
    assert pointer(path) == text


@given(st.lists(st.text()).map(tuple))
def test_a_pointer_leads_back_to_its_path(path: Path) -> None:
    assert pointer_path(pointer(path)) == path

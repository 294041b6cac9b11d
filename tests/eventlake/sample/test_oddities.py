"""Everything that real archives have and that the lake must cope with is in the sample."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from eventlake.sample import IOS_PROD, WEB_SHOP, Likeness, Reason
from eventlake.sample.events import kinds_of
from tests.support.lakes.sample_lake import Written
from tests.support.oracles.recount import CUT_END, hashed, judge, lines

Events = list[dict[str, Any]]


@pytest.fixture(scope="module")
def raw(written: Written) -> list[bytes]:
    """All lines of all files."""
    files = (file for files in written.account.files.values() for file in files)
    return [
        line for file in files for line in lines(written.root / file.path) if line is not CUT_END
    ]


def events_of(written: Written, source_id: str, day: int | None = None) -> Events:
    """What is readable, of all folders or of one."""
    judged = (
        judge(line)
        for file in written.account.files[source_id]
        if day in (None, file.folder.day)
        for line in lines(written.root / file.path)
    )
    return [event for reason, _, event in judged if reason is None]


def properties(events: Events, name: str, key: str) -> list[Any]:
    return [
        e["properties"][key] for e in events if e.get("event") == name and key in e["properties"]
    ]


def test_all_six_calls_and_every_track_event_are_there(written: Written) -> None:
    tables = {
        source.slug: written.account.expected(source.id).tables
        for source in written.account.sources
    }
    together = tables["web_shop"].keys() | tables["ios_prod"].keys()
    assert {t for t in together if not t.startswith("track_")} == {
        "identify", "page", "screen", "group", "alias",
    }  # fmt: skip
    assert {"page", "identify", "group", "alias"} < tables["web_shop"].keys()
    assert {"screen", "identify", "group", "alias"} < tables["ios_prod"].keys()
    last = written.spec.days
    sent = {kind.table for source in written.spec.sources for kind in kinds_of(source, last)}
    assert together == sent
    assert len(sent) > 25  # as many as a usual source has


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("Order Completed", "track_order_completed"),
        ("order_completed", "track_order_completed"),
        ("OrderCompleted", "track_order_completed"),
        ("2FA Enabled", "track_2fa_enabled"),
        ("A/B Test", "track_a_b_test"),
        ("注册", f"track_{hashed('注册')}"),
        ("iOS Permission Granted", "track_i_os_permission_granted"),
    ],
)
def test_names_that_need_the_name_rule(written: Written, name: str, table: str) -> None:
    assert any(event.get("event") == name for event in events_of(written, IOS_PROD.id))
    assert table in written.account.expected(IOS_PROD.id).tables


def test_context_is_that_of_a_browser_and_of_a_phone(written: Written) -> None:
    browser, phone = (
        {key for event in events_of(written, source.id) for key in event["context"]}
        for source in (WEB_SHOP, IOS_PROD)
    )
    everywhere = {"library", "ip", "locale", "screen", "timezone", "traits"}
    assert everywhere | {"page", "campaign", "userAgent"} < browser
    assert everywhere | {"device", "app", "os", "network"} < phone


def test_every_event_has_integrations_and_an_array_of_bundled_ones(written: Written) -> None:
    for event in events_of(written, WEB_SHOP.id):
        assert isinstance(event["integrations"], dict)
        assert isinstance(event["_metadata"]["bundled"], list)


@pytest.mark.parametrize(
    "written_as",
    [
        rb'"total":\d+\.\d[,}]',  # money as 12.5
        rb'"total":\d+\.\d0[,}]',  # and as 12.50
        rb'"lat":-?\d+\.\d{8}[,}]',
        rb'"delivery_date":"\d{4}-\d\d-\d\d"',
        rb'"productID":"',
        rb'"products":\[\{"product_id":',
        rb'"location":\{"lat":',
        '"firstName":"李雷"'.encode(),
        "🎉".encode(),
        rb'"options":\{\}',
        rb'"coupon":""',
        rb'"coupon":null',
        rb'"note":"a\\u0000b"',
        "one\u2028line".encode(),
        rb'"exponent":1e3,"tenth":0\.10,"zero":-0',
        rb'"huge":18446744073709551616',
        rb'"plan":"old","plan":"new"',
        rb'"type":"TRACK"',
        rb'"messageId":\d+,',
        rb'"receivedAt":"[^"]+\+02:00"',
        rb"^  \{.*\} \r$",
        rb'"productID":"[^"]+","position":\d+,"product_id":"legacy',
    ],
)
def test_values_as_people_really_send_them(raw: list[bytes], written_as: bytes) -> None:
    pattern = re.compile(written_as)
    assert any(pattern.search(line) for line in raw)


@pytest.mark.parametrize(
    "is_broken",
    [
        lambda line: line.startswith(b"<html>"),
        lambda line: line.endswith(b"} and more"),
        lambda line: b'"ratio":NaN' in line,
        lambda line: b'"\\ud83d"' in line,
        lambda line: b"Z\xfcrich" in line,
        lambda line: b'"type":"delete"' in line,
        lambda line: b'"receivedAt":"yesterday"' in line,
        lambda line: line == b"[1,2,3]",
    ],
)
def test_broken_lines_on_every_day(raw: list[bytes], is_broken: Callable[[bytes], bool]) -> None:
    assert sum(map(is_broken, raw)) == 3 * 2


@pytest.mark.parametrize("blank", [b"", b"   ", b"\r", b"\t "])
def test_blank_lines_on_every_day(raw: list[bytes], blank: bytes) -> None:
    assert raw.count(blank) == 3 * 2


def test_every_reason_to_reject_occurs(written: Written) -> None:
    for source in written.account.sources:
        assert written.account.expected(source.id).reasons.keys() == set(Reason)


def test_about_one_percent_are_duplicates_of_every_likeness(written: Written) -> None:
    for source in written.account.sources:
        expected = written.account.expected(source.id)
        counts = Counter[Likeness]()
        for duplicate, count in expected.duplicates.items():
            counts[duplicate.likeness] += count
        assert counts.keys() == set(Likeness)
        assert 0.01 < expected.totals.duplicates / expected.rows_in < 0.02


def test_duplicates_lie_in_one_file_and_hours_apart_and_in_the_next_folder(
    written: Written,
) -> None:
    places: dict[str, list[tuple[str, date, str]]] = defaultdict(list)
    for file in written.account.files[WEB_SHOP.id]:
        for copy in file.copies:
            places[copy.message_id].append((file.path, file.folder, copy.table))
    pairs = [found for found in places.values() if len(found) == 2]
    assert any(one[0] == two[0] for one, two in pairs)
    assert any(one[0] != two[0] and one[1] == two[1] for one, two in pairs)
    assert any(one[1] != two[1] for one, two in pairs)
    assert any(one[2] != two[2] for one, two in pairs)  # one id, two tables


def test_from_the_second_day_on_a_folder_has_rows_received_the_day_before(
    written: Written,
) -> None:
    days = [
        {event["receivedAt"][:10] for event in events_of(written, IOS_PROD.id, day)}
        for day in (1, 2)
    ]
    assert days == [{"2026-10-01"}, {"2026-10-01", "2026-10-02"}]


def test_one_file_of_each_day_comes_in_after_its_day(written: Written) -> None:
    late = [
        (file.folder.day, file.arrival)
        for file in written.account.files[WEB_SHOP.id]
        if file.arrival > file.folder.day
    ]
    assert late == [(1, 2), (2, 3), (3, 4)]


def test_a_file_of_the_first_day_is_cut_off(written: Written) -> None:
    for source in written.account.sources:
        cut = [
            file.folder.day
            for file in written.account.files[source.id]
            if CUT_END in list(lines(written.root / file.path))
        ]
        assert cut == [1]


@pytest.mark.parametrize(
    ("source_id", "table", "name", "column"),
    [
        (WEB_SHOP.id, "track_gift_card_redeemed", "Product Viewed", "inStock"),
        (IOS_PROD.id, "track_widget_added", "Order Completed", "loyalty"),
    ],
)
def test_tables_and_properties_that_appear_on_the_second_day(
    written: Written, source_id: str, table: str, name: str, column: str
) -> None:
    first, second = written.account.per_sync(source_id)[:2]
    assert (table in first.tables, table in second.tables) == (False, True)
    seen = [properties(events_of(written, source_id, day), name, column) for day in (1, 2)]
    assert (bool(seen[0]), bool(seen[1])) == (False, True)


def test_one_property_is_a_number_here_and_text_there(written: Written) -> None:
    events = events_of(written, WEB_SHOP.id, 1)
    assert {type(v) for v in properties(events, "Products Searched", "results")} == {int, str}
    assert {type(v) for v in properties(events, "Product Clicked", "position")} == {int}
    assert {type(v) for v in properties(events, "Promotion Viewed", "position")} == {str}


@pytest.mark.parametrize(
    ("name", "key"), [("Product Added", "quantity"), ("Checkout Step Viewed", "step")]
)
def test_an_integer_of_the_first_day_is_also_text_and_fraction_on_the_second(
    written: Written, name: str, key: str
) -> None:
    days = [properties(events_of(written, WEB_SHOP.id, day), name, key) for day in (1, 2)]
    assert [{type(value) for value in day} for day in days] == [{int}, {int, float, str}]


def test_dummy_objects_lie_about(written: Written) -> None:
    found = (written.root / "segment-logs" / IOS_PROD.id).rglob("dummy-object.txt")
    assert sorted(str(path.parent.name) for path in found) == ["1790812800000", IOS_PROD.id]

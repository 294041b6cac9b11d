"""A sync: new files become rows, each once; new tables; bad lines."""

import gzip
import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from eventlake.catalog.base import CatalogTable
from eventlake.load import not_loaded
from eventlake.rules import paths
from eventlake.rules.errors import InvalidSetting, SettingsError
from eventlake.rules.names import Naming
from eventlake.runs.dedup import groups_for
from eventlake.runs.resolve import standard_columns
from eventlake.state.source_state import expected_first_sync, first_sync_due
from tests.support.faults.flows import flow
from tests.support.lakes.archive import as_line, identify, order, page, track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import SOURCE_ID, Runs, utc

STANDARD = [(c.name, c.type.sql, c.pointer) for c in standard_columns(Naming.NATIVE)]


def test_events_become_typed_rows(runs: Runs) -> None:
    runs.load(
        "2026-10-01",
        track(
            "Order Completed",
            "m1",
            "2026-10-01T07:00:00.123Z",
            total=12.5,
            items=[{"sku": "a", "n": 1}],
            paidAt="2026-10-01",
            first=True,
            count=3,
        )
        | {"userId": 7, "context": {"ip": "::1"}},
    )
    assert runs.columns("track_order_completed") == [
        *STANDARD,
        ("properties_total", "decimal(38,6)", "/properties/total"),
        ("properties_items", "string", "/properties/items"),
        ("properties_paid_at", "timestamp", "/properties/paidAt"),
        ("properties_first", "boolean", "/properties/first"),
        ("properties_count", "bigint", "/properties/count"),
        ("context_ip", "string", "/context/ip"),
    ]
    [row] = runs.rows("track_order_completed")
    assert {name: cell for name, cell in row.items() if cell is not None} == {
        "day": "2026-10-01",
        "hr": "07",
        "message_id": "m1",
        "user_id": "7",
        "event": "Order Completed",
        "type": "track",
        "received_at": 1_790_838_000_123_000,
        "properties_total": Decimal("12.500000"),
        "properties_items": '[{"sku":"a","n":1}]',
        "properties_paid_at": 1_790_812_800_000_000,
        "properties_first": True,
        "properties_count": 3,
        "context_ip": "::1",
    }


def test_a_type_stays_and_what_does_not_fit_it_is_rescued(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", order("m1", "2026-10-01T07:00", price=12))
    runs.sync()
    price = ("properties_price", "bigint", "/properties/price")
    assert runs.columns("track_order") == [*STANDARD, price]
    day.file(
        "b",
        order("m2", "2026-10-01T07:00", price="12,50", size="L"),
        order("m3", "2026-10-01T07:00", price=12.5),
        order("m4", "2026-10-01T07:00", price="7"),
    )
    report = runs.sync().tables["shop.track_order"]
    assert runs.columns("track_order")[len(STANDARD) :] == [
        ("properties_price", "bigint", "/properties/price"),
        ("properties_size", "string", "/properties/size"),
        ("rescued_data", "string", ""),
    ]
    assert runs.rows("track_order", "message_id", "properties_price", "rescued_data") == [
        {"message_id": "m1", "properties_price": 12, "rescued_data": None},
        {
            "message_id": "m2",
            "properties_price": None,
            "rescued_data": '{"/properties/price":"12,50"}',
        },
        {"message_id": "m3", "properties_price": 12, "rescued_data": '{"/properties/price":12.5}'},
        {"message_id": "m4", "properties_price": 7, "rescued_data": None},
    ]
    casts = report.casts["properties_price"]
    assert (casts.exact, casts.lossy, casts.failed) == (1, 1, 1)
    assert report.rescued_cells == 2
    assert [c.name for c in report.new_columns] == ["properties_size", "rescued_data"]


def test_a_duplicate_types_a_column_but_rescues_nothing(runs: Runs) -> None:
    runs.load(
        "2026-10-01",
        order("m1", "2026-10-01T07:00", n=1),
        order("m1", "2026-10-01T07:01", n="x", day=3),
    )
    assert runs.columns("track_order") == [
        *STANDARD,
        ("properties_n", "string", "/properties/n"),
        ("properties_day", "bigint", "/properties/day"),
    ]
    runs.load("2026-10-01", order("m1", "2026-10-01T07:02", n=2) | {"day": 3}, name="b")
    assert "rescued_data" not in [name for name, _, _ in runs.columns("track_order")]


@pytest.mark.parametrize(
    ("layout", "keys", "folders"),
    [
        ("day/hour", ("day", "hr"), ["day=2026-10-01/hr=07", "day=2026-10-01/hr=23"]),
        (
            "year/month/day/hour",
            ("year", "month", "day", "hr"),
            ["year=2026/month=10/day=01/hr=07", "year=2026/month=10/day=01/hr=23"],
        ),
        ("year/month/day", ("year", "month", "day"), ["year=2026/month=10/day=01"]),
        ("day", ("day",), ["day=2026-10-01"]),
    ],
)
def test_every_layout_loads_grows_and_replays(
    tmp_path: Path, layout: str, keys: tuple[str, ...], folders: list[str]
) -> None:
    runs = Runs(tmp_path, date_partition=layout)
    day = runs.archive.day("2026-10-01")
    day.file(
        "a",
        order("m1", "2026-10-01T07:59:59.999999"),
        # The hour is that of the receipt, in UTC.
        order("m2", "2026-10-02T01:00:00+02:00") | {"timestamp": "2026-10-01T03:00"},
    )
    runs.sync()
    assert runs.table("track_order").partition_keys == keys
    assert [partition.location for partition in runs.partitions("track_order").values()] == [
        f"segment-data/data/S1/segment_type=track_order/{folder}" for folder in folders
    ]
    day.file("b", order("m3", "2026-10-01T07:00"), order("m1", "2026-10-01"))
    assert runs.sync().duplicates == 1
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.ids("track_order") == ["m1", "m2", "m3"]
    assert all("/versions/R3/" in p.location for p in runs.partitions("track_order").values())


def test_warehouse_naming_from_end_to_end(tmp_path: Path) -> None:
    runs = Runs(tmp_path, naming="warehouse")
    day = runs.archive.day("2026-10-01")
    day.file(
        "a",
        track("Order Completed", "m1", "2026-10-01T07:00", total=1, id=9, user_id="x"),
        track("identifies", "m2", "2026-10-01T07:00"),
        track("order-completed", "m5", "2026-10-01T07:00", event="x", name="Mug"),
        identify("m3", "2026-10-01T07:00", plan="pro", name="Ada"),
        page("m4", "2026-10-01T07:00", name="Home"),
    )
    runs.sync()
    assert runs.tables() == ["identifies", "order_completed", "pages", "track_identifies"]
    assert runs.columns("order_completed")[0] == ("id", "string", "/messageId")
    assert runs.columns("order_completed")[16:] == [
        ("event_text", "string", "/event"),
        ("total", "bigint", "/properties/total"),
        ("rescued_data", "string", ""),
    ]
    assert runs.rows("order_completed", "id", "total", "user_id", "rescued_data") == [
        {
            "id": "m1",
            "total": 1,
            "user_id": None,
            "rescued_data": '{"/properties/id":9,"/properties/user_id":"x"}',
        },
        {"id": "m5", "total": None, "user_id": None, "rescued_data": '{"/properties/event":"x"}'},
    ]
    assert runs.rows("order_completed", "event", "event_text", "name") == [
        {"event": "order_completed", "event_text": "Order Completed", "name": None},
        {"event": "order_completed", "event_text": "order-completed", "name": "Mug"},
    ]
    assert runs.rows("track_identifies", "event", "event_text") == [
        {"event": "identifies", "event_text": "identifies"}
    ]
    identified = runs.rows("identifies", "id", "plan", "name", "event")
    assert identified == [{"id": "m3", "plan": "pro", "name": "Ada", "event": None}]
    assert runs.rows("pages", "name", "rescued_data") == [
        {"name": None, "rescued_data": '{"/properties/name":"Home"}'}
    ]
    # The index can be made from these tables, too.
    for file in runs.storage.files("segment-data/_state/sources/S1/ids"):
        runs.storage.delete(file.path)
    day.file("b", track("Order Completed", "m1", "2026-10-01T08:00"))
    assert runs.sync().duplicates == 1


def test_a_prefix_names_the_tables_and_not_the_folders(tmp_path: Path) -> None:
    runs = Runs(tmp_path, table_prefix="ios", database="apps")
    report = runs.load("2026-10-01", track("Page View", "m1", "2026-10-01T07:00"))
    assert runs.tables() == ["ios_track_page_view"]
    assert list(report.tables) == ["apps.ios_track_page_view"]
    assert runs.table("ios_track_page_view").location.endswith("/segment_type=track_page_view")
    lines = runs.reports()["R1"]
    names = [(line["database"], line["table_name"]) for line in lines]
    assert names == [("apps", ""), ("apps", "ios_track_page_view")]


@pytest.mark.parametrize(
    "changed", [{"date_partition": "day"}, {"naming": "warehouse"}], ids=lambda c: next(iter(c))
)
def test_another_layout_or_naming_is_refused(runs: Runs, changed: dict[str, str]) -> None:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00"))
    runs.set(**changed)
    [(name, value)] = changed.items()
    with pytest.raises(
        SettingsError, match=rf"{name}: '{value}', but its tables .* were made with"
    ):
        runs.sync()
    with pytest.raises(SettingsError):
        runs.replay("2026-10-01", "2026-10-02")
    assert list(runs.reports()) == ["R1"]
    runs.set(**changed, database="elsewhere")
    runs.replay("2026-10-01", "2026-10-02")
    assert len(runs.tables()) == 1
    # The old place is as it was, whatever was done in the new one.
    runs.set(**changed)
    with pytest.raises(SettingsError):
        runs.sync()
    runs.set()
    runs.sync()


def test_skipped_events_are_counted_and_neither_written_nor_catalogued(tmp_path: Path) -> None:
    runs = Runs(tmp_path, skip_events=["Order", "page"])
    line = order("m1", "2026-10-01T07:00")
    others = page(None, "2026-10-01T07:00"), identify("m3", "2026-10-01T07:00")
    report = runs.load("2026-10-01", line, *others)
    assert (report.rows_in, report.skipped, report.rejected, report.row_count) == (3, 2, 0, 1)
    assert runs.tables() == ["identify"]


def test_rows_without_id_are_rejected_or_loaded_under_their_hash(tmp_path: Path) -> None:
    for load in (False, True):
        runs = Runs(tmp_path / str(load), load_without_message_id=load)
        line = order(None, "2026-10-01T07:00")
        report = runs.load("2026-10-01", line, line, order("m1", "2026-10-01"))
        counts = (report.row_count, report.duplicates, report.rejected)
        assert counts == ((2, 1, 0) if load else (1, 0, 2))
        assert "m1" in runs.ids("track_order")
        assert {len(id) for id in runs.ids("track_order")} == ({2, 64} if load else {2})


def test_duplicates_cross_tables_files_and_syncs(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("b", order("m1", "2026-10-01T07:00", n=1), page("m2", "2026-10-01T07:00"))
    day.file("a", identify("m1", "2026-10-01T07:00:00.000001"), order("m2", "2026-10-01"))
    report = runs.sync()
    assert (report.row_count, report.duplicates) == (2, 2)
    # The earliest, whatever file and table it is in.
    assert (runs.tables(), runs.ids("track_order")) == (["track_order"], ["m1", "m2"])
    report = runs.load(
        "2026-10-08", page("m1", "2026-10-08T07:00"), page("m2", "2026-10-08T00:00:00.000001")
    )
    assert (report.row_count, report.duplicates) == (1, 1)
    assert runs.ids("page") == ["m2"]


def test_a_shorter_window_is_a_setting(tmp_path: Path) -> None:
    runs = Runs(tmp_path, dedup_days=1)
    times = ("2026-10-01", "2026-10-02", "2026-10-02T00:00:01")
    report = runs.load("2026-10-01", *(order("m1", at) for at in times))
    assert (report.row_count, report.duplicates) == (2, 1)


def test_limits_cost_only_the_offender(tmp_path: Path) -> None:
    runs = Runs(tmp_path, limits={"columns": 18, "tables": 2})
    report = runs.load(
        "2026-10-01",
        order("m1", "2026-10-01T07:00", a=1),
        order("m2", "2026-10-01T07:00", b=1, c=1),
        order("m3", "2026-10-01T07:00", b=1),
        page("m4", "2026-10-01T07:00"),
        identify("m5", "2026-10-01T07:00"),
    )
    assert (report.row_count, report.rejected) == (3, 2)
    assert runs.ids("track_order") == ["m1", "m3"]
    assert runs.tables() == ["page", "track_order"]
    assert len(runs.columns("track_order")) == 18
    assert any("beyond the limit `columns`" in warning for warning in runs.warnings)
    assert any("beyond the limit `tables`" in warning for warning in runs.warnings)


def test_limits_hold_over_all_tasks_as_over_one(tmp_path: Path) -> None:
    """Each file alone keeps to the limits; in their order, the second and third go over them."""

    runs = Runs(tmp_path, limits={"columns": 18, "tables": 2})
    runs.flow = flow(slots=3)
    day = runs.archive.day("2026-10-01")
    day.file("a", order("m1", "2026-10-01T07:00", a=1), page("m2", "2026-10-01T07:00"))
    day.file("b", order("m3", "2026-10-01T07:00", b=1, c=1))
    day.file("c", order("m4", "2026-10-01T07:00", c=1), identify("m5", "2026-10-01T07:00"))
    report = runs.sync()

    assert (report.row_count, report.rejected) == (3, 2)
    assert runs.ids("track_order") == ["m1", "m4"]
    names = [name for name, *_ in runs.columns("track_order")]
    assert names[16:] == ["properties_a", "properties_c"]
    assert runs.tables() == ["page", "track_order"]


def test_many_tasks_make_the_same_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[Any] = []
    for slots in (1, 2, 5):
        monkeypatch.setattr(InProcess, "slots", slots)
        runs = Runs(tmp_path / str(slots))
        day = runs.archive.day("2026-10-01")
        for name in "edcba":
            day.file(
                name,
                order("copy", "2026-10-01T07:00", **{name: 1}),
                order(name, "2026-10-01T07:00", **{name: name, "n": ord(name)}),
                track(f"Only {name}", f"o{name}", "2026-10-01T07:00"),
            )
        runs.sync()
        tables = runs.tables()
        ends.append([(t, runs.columns(t), runs.rows(t), runs.table(t).comment) for t in tables])
    assert ends[0] == ends[1] == ends[2]
    # Discovered in order of file, then line, then place.
    assert [c[0] for c in runs.columns("track_order")[16:]] == [
        f"properties_{name}" for name in ("a", "n", "b", "c", "d", "e")
    ]


def test_the_state_has_the_row_count_of_each_table(runs: Runs) -> None:
    runs.load("2026-10-01", *(order(f"m{n}", f"2026-10-01T0{n}:00") for n in range(3)))
    runs.load("2026-10-01", order("m9", "2026-10-01T00:00"), identify("m8", "2026-10-01"), name="b")
    runs.replay("2026-10-01T00:00", "2026-10-01T02:00")
    assert runs.state().rows == {"shop.identify": 1, "shop.track_order": 4}


def test_years_far_away_are_loaded_with_a_warning(runs: Runs) -> None:
    times = ("0001-01-01", "0999-12-31T23:00", "9999-12-31T23:59")
    runs.load("2026-10-01", *(order(at, at) for at in times))
    hours = [("0001-01-01", "00"), ("0999-12-31", "23"), ("9999-12-31", "23")]
    assert list(runs.partitions("track_order")) == hours
    assert any(w.startswith("2 rows received before") for w in runs.warnings)
    assert any(w.startswith("1 row received more than a day ahead") for w in runs.warnings)
    assert runs.ledger()["a.gz"].hours == ("0001-01-01T00", "0999-12-31T23", "9999-12-31T23")
    runs.archive.day("2026-10-01").file("b", *(order("0001-01-01", "0001-01-08"),))
    assert runs.sync().duplicates == 1


NOON = utc("2026-10-20T12:00")
HOUR = timedelta(hours=1)


def test_the_first_sync_is_due_some_hours_after_the_source_was_seen(runs: Runs) -> None:
    assert expected_first_sync(runs.storage, runs.source) is None
    first_sync_due(runs.storage, runs.source, utc("2036-01-01"))  # a clock that was ahead
    dues = [first_sync_due(runs.storage, runs.source, NOON + n * HOUR) for n in range(4)]
    assert dues == [NOON + 2 * HOUR] * 4
    assert expected_first_sync(runs.storage, runs.source) == NOON + 2 * HOUR
    runs.set(first_sync_hours=0)
    assert first_sync_due(runs.storage, runs.source, NOON) == NOON
    runs.set()
    runs.load("2026-10-01", page("m1", "2026-10-01T07:00"))  # a source that has data is not new
    assert first_sync_due(runs.storage, runs.source, NOON) is None
    assert expected_first_sync(runs.storage, runs.source) is None


@pytest.mark.parametrize(
    ("staged", "looked_back", "groups"),
    [
        (100_000, 0, 1),
        (1_000_000, 0, 4),
        (100_000_000, 0, 16),
        (1_000, 8_000_000, 2),  # a few late events of a source that has many
        (1_000, 10_000_000_000, 16),
        (1_000_000, 8_000_000, 4),
    ],
)
def test_deduplication_is_divided_by_size(staged: int, looked_back: int, groups: int) -> None:
    assert groups_for(staged, looked_back) == groups


def three_tables(runs: Runs) -> None:
    """A table in each file; tables are made in the order of the files."""
    day = runs.archive.day("2026-10-01")
    day.file("a", order("m1", "2026-10-01T07:00"), order("m2", "2026-10-01T07:30"))
    day.file("b", page("m3", "2026-10-01T07:00"))
    day.file("c", identify("m4", "2026-10-01T07:00"), order("m5", "2026-10-01T07:00"))


@pytest.mark.parametrize("tasks", [InProcess, flow(slots=3)], ids=["InProcess", "ThreeTasks"])
def test_a_full_catalog_rejects_new_tables(tmp_path: Path, tasks: type[InProcess]) -> None:
    runs = Runs(tmp_path, limits={"catalog_tables": 3})
    runs.flow = tasks
    runs.catalog.ensure_database("shop")
    runs.catalog.create_table(CatalogTable("shop", "of_somebody_else", (), ("day",), "elsewhere"))
    three_tables(runs)
    report = runs.sync()
    assert runs.tables() == ["of_somebody_else", "page", "track_order"]
    assert (report.row_count, report.rejected) == (4, 1)
    assert any("the catalog has reached its limit" in warning for warning in runs.warnings)
    runs.set(limits={"catalog_tables": 4})
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.ids("identify") == ["m4"]


def test_known_tables_are_loaded_when_the_catalog_is_full(tmp_path: Path) -> None:
    runs = Runs(tmp_path, limits={"catalog_tables": 1})
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00"))
    report = runs.load(
        "2026-10-02", order("m2", "2026-10-02T07:00"), page("m3", "2026-10-02T07:00"), name="b"
    )
    assert (report.row_count, report.rejected) == (1, 1)
    assert runs.tables() == ["track_order"]


def test_no_database_is_made_past_the_limit_of_databases(tmp_path: Path) -> None:
    runs = Runs(tmp_path, limits={"catalog_databases": 1})
    runs.catalog.ensure_database("of_somebody_else")
    three_tables(runs)
    report = runs.sync()
    assert (report.row_count, report.rejected) == (0, 5)
    assert "shop" not in runs.catalog.databases()


def test_a_table_that_the_lake_did_not_make_is_not_written_to(runs: Runs) -> None:
    runs.catalog.ensure_database("shop")
    theirs = CatalogTable("shop", "page", (), ("day", "hr"), "elsewhere")
    runs.catalog.create_table(theirs)
    three_tables(runs)
    with pytest.raises(InvalidSetting, match=r"shop\.page is in the catalog, but was not made by"):
        runs.sync()
    assert runs.catalog.tables("shop") == [theirs]
    assert runs.storage.read(paths.manifest("S1", 1)) is None
    [[line]] = runs.reports().values()
    assert line["error_code"] == "Segment.InvalidSettings"
    runs.set(table_prefix="ours")
    runs.sync()
    assert runs.tables() == ["ours_identify", "ours_page", "ours_track_order", "page"]


def test_a_table_that_another_run_has_just_created_is_not_an_invalid_setting(runs: Runs) -> None:
    def overtake(*_: object) -> None:
        if runs.flow is not InProcess:
            runs.flow = InProcess
            runs.storage.delete(paths.lease("S1"))  # as if it had expired
            runs.sync()

    three_tables(runs)
    runs.flow = flow(after_stage=overtake)
    assert runs.sync().row_count == 0
    assert runs.tables() == ["identify", "page", "track_order"]
    assert {lines[0]["status"] for lines in runs.reports().values()} == {"finished"}


OTHERS = "segment-data/data/S1/segment_type=identify/day=2026-10-01/hr=07/part-0000.parquet"


def test_files_of_others_are_neither_read_nor_joined(runs: Runs) -> None:
    runs.storage.write(OTHERS, b"rows of another product")
    runs.load("2026-10-01", identify("m1", "2026-10-01T07:00"), order("m2", "2026-10-01T07:00"))
    runs.load(
        "2026-10-01",
        identify("m3", "2026-10-01T07:10"),
        identify("m4", "2026-10-01T08:00"),
        name="b",
    )

    assert [row["message_id"] for row in runs.rows("identify")] == ["m1", "m3", "m4"]
    assert sorted(runs.files("identify")) == [
        "segment-data/data/S1/versions/R1/segment_type=identify/day=2026-10-01/hr=07",
        "segment-data/data/S1/versions/R2/segment_type=identify/day=2026-10-01/hr=08",
    ]
    assert list(runs.files("track_order")) == [
        "segment-data/data/S1/segment_type=track_order/day=2026-10-01/hr=07"
    ]
    assert runs.storage.read(OTHERS) == b"rows of another product"
    assert [line for line in runs.logged if "holds files of other tables" in line] == [
        "day folder 2026-10-01: segment-data/data/S1 holds files of other tables called identify. "
        "They stay as they are; ours go to folders of their own."
    ]


MIB = 1 << 20
START = b'{"type":"track","event":"Order","messageId":"bad","receivedAt":"2026-10-01T07:00Z"'


def order_with(properties: bytes) -> bytes:
    """An order that would be good, were it not for its properties."""
    return START + b',"properties":' + properties + b"}"


DEEP = order_with(b'{"a":' * 100 + b"1" + b"}" * 100)
LONG = order_with(b'{"note":"' + b"0123456789abcdef" * (10 * MIB // 16) + b'"}')

# The line, and what the record log says of it.
BAD_LINES = [
    (b"<h1>502 Bad Gateway</h1>", "The line is not JSON: expecting value at character 1."),
    (
        START,  # cut in the middle
        "The line is not JSON: expecting ',' delimiter at character 83.",
    ),
    (
        order_with(b"{}") + b" and more",
        "The line is not JSON: something follows the end of the value at character 101.",
    ),
    (order_with(b'{"ratio":NaN}'), "The line is not JSON: NaN is no JSON value."),
    (order_with(b'{"ratio":-Infinity}'), "The line is not JSON: -Infinity is no JSON value."),
    (
        order_with(b'{"note":"a\x01b"}'),
        "The line is not JSON: invalid control character at character 107.",
    ),
    (b"\x00" * 40, "The line is not JSON: expecting value at character 1."),
    (b"[1,2]", "The line is JSON, but not an object: it is [1,2]."),
    (b'"text"', 'The line is JSON, but not an object: it is "text".'),
    (b"null", "The line is JSON, but not an object: it is null."),
    (order_with(b'{"city":"Z\xfcrich"}'), "The line is not UTF-8: byte 107 is 0xfc."),
    (
        order_with(b'{"half":"\\ud83d"}'),
        "A text holds half of a surrogate pair, which is no character.",
    ),
    (LONG, "The line is longer than the limit `line_bytes`: over 1048576 bytes."),
    (DEEP, "The event is nested deeper than the limit `depth`: allowed are 64 levels."),
    (
        START.replace(b'"track"', b'"delete"') + b"}",
        '`type` is none of track, identify, page, screen, group, alias: it is "delete".',
    ),
    (START.replace(b'"Order"', b'""') + b"}", 'A track has no event name in `event`: it is "".'),
    (
        START.replace(b"T07:00Z", b"T25:00Z") + b"}",
        '`receivedAt` is missing or is no ISO 8601 time: it is "2026-10-01T25:00Z".',
    ),
    (START.replace(b'"bad"', b"null") + b"}", "`messageId` is missing or empty."),
]


def good(number: int) -> bytes:
    return as_line(order(f"good-{number:02}", "2026-10-01T07:00", n=number))


def log_of(runs: Runs, status: str) -> list[dict[str, Any]]:
    """The records of a status, in the order of the archive."""
    records: list[dict[str, Any]] = []
    for file in runs.storage.files(paths.tracking("W1", SOURCE_ID, "R1")):
        if file.name.endswith(".parquet"):
            with runs.storage.open_input(file.path) as stream:
                records += pq.ParquetFile(stream).read().to_pylist()
    found = [record for record in records if record["status"] == status]
    return sorted(found, key=lambda record: (record["raw_file"], record["raw_line"]))


@pytest.mark.parametrize("batch_bytes", [1, not_loaded.BATCH_BYTES])
def test_every_good_line_is_loaded_and_every_bad_one_is_logged(
    runs: Runs, batch_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(not_loaded, "BATCH_BYTES", batch_bytes)
    lines = [good(0)]
    for number, (bad, _) in enumerate(BAD_LINES, start=1):
        lines += [bad, good(number)]
    path = runs.archive.day("2026-10-01").file("a", *lines)
    report = runs.sync()

    name = str(path.relative_to(runs.root))
    assert runs.ids("track_order") == [f"good-{n:02}" for n in range(len(BAD_LINES) + 1)]
    assert (report.row_count, report.rejected) == (len(BAD_LINES) + 1, len(BAD_LINES))
    records = log_of(runs, "rejected") + log_of(runs, "NULL")
    assert [(r["raw_file"], r["raw_line"], r["status_message"]) for r in records] == [
        (name, 2 * number, message) for number, (_, message) in enumerate(BAD_LINES, start=1)
    ]
    # The payload as it came, as far as text can show it, and never more than a line may have.
    payloads = [bad[: MIB + 1].decode(errors="replace") for bad, _ in BAD_LINES]
    assert [record["record_payload"] for record in records] == payloads


def damaged(packed: bytes) -> bytes:
    middle = len(packed) // 2
    return packed[:middle] + b"\xff" * 16 + packed[middle + 16 :]


def cut(packed: bytes) -> bytes:
    return packed[: len(packed) // 2]


@pytest.mark.parametrize(
    ("break_it", "why"),
    [(cut, "the file is cut off before its end"), (damaged, "the gzip data are damaged (")],
)
def test_a_broken_file_between_good_ones_costs_its_broken_part_alone(
    runs: Runs, break_it: Callable[[bytes], bytes], why: str
) -> None:
    day = runs.archive.day("2026-10-01")
    noise = Random(7)
    orders = {
        name: [order(f"{name}-{n:03}", "2026-10-01T07:00", n=noise.random()) for n in range(200)]
        for name in "abc"
    }
    for name in "ac":
        day.file(name, *orders[name])
    content = b"".join(as_line(line) + b"\n" for line in orders["b"])
    broken = day.raw("b.gz", break_it(gzip.compress(content)))
    report = runs.sync()

    ids = runs.ids("track_order")
    saved = [id for id in ids if id.startswith("b-")]
    assert [id for id in ids if not id.startswith("b-")] == [
        line["messageId"] for name in "ac" for line in orders[name]
    ]
    assert 80 <= len(saved) <= 120
    assert saved == [line["messageId"] for line in orders["b"][: len(saved)]]
    # After the damage there may be rubbish before the place at which it is noticed.
    *rubbish, told = log_of(runs, "rejected")
    assert break_it is damaged or not rubbish
    name, place = str(broken.relative_to(runs.root)), len(saved) + len(rubbish) + 1
    assert [(r["raw_file"], r["raw_line"]) for r in (*rubbish, told)] == [
        (name, line) for line in range(len(saved) + 1, place + 1)
    ]
    assert told["identifier"] == f"{name}:{place}"
    broken_here = f"The file is broken here; what follows could not be read: {why}"
    assert told["status_message"].startswith(broken_here)
    assert report.rows_in == len(ids) + report.rejected == len(ids) + len(rubbish) + 1


def test_a_line_of_fifty_megabytes_is_never_in_memory_as_a_whole(runs: Runs) -> None:
    long = b'{"messageId":"' + b"x" * (50 * MIB)
    runs.archive.day("2026-10-01").file("a", good(0), long, good(1))
    tracemalloc.start()
    try:
        runs.sync()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert runs.ids("track_order") == ["good-00", "good-01"]
    assert most < 25 * MIB

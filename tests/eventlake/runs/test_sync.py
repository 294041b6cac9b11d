"""A sync: new files become rows, each once."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from eventlake.rules.errors import SettingsError
from eventlake.rules.names import Naming
from eventlake.runs.dedup import groups_for
from eventlake.runs.resolve import standard_columns
from eventlake.state.first_seen import expected_first_sync, first_sync_due
from tests.support.faults.flows import flow
from tests.support.lakes.archive import identify, page, track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import Runs, utc

STANDARD = [(c.name, c.type.sql, c.pointer) for c in standard_columns(Naming.NATIVE)]


def test_events_become_typed_rows(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file(
        "a",
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
    runs.sync()
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
    day.file("a", track("Order", "m1", "2026-10-01T07:00", price=12))
    runs.sync()
    assert runs.columns("track_order") == [
        *STANDARD,
        ("properties_price", "bigint", "/properties/price"),
    ]
    day.file(
        "b",
        track("Order", "m2", "2026-10-01T07:00", price="12,50", size="L"),
        track("Order", "m3", "2026-10-01T07:00", price=12.5),
        track("Order", "m4", "2026-10-01T07:00", price="7"),
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
        {
            "message_id": "m3",
            "properties_price": 12,
            "rescued_data": '{"/properties/price":12.5}',
        },
        {"message_id": "m4", "properties_price": 7, "rescued_data": None},
    ]
    casts = report.casts["properties_price"]
    assert (casts.exact, casts.lossy, casts.failed) == (1, 1, 1)
    assert report.rescued_cells == 2
    assert [c.name for c in report.new_columns] == ["properties_size", "rescued_data"]


def test_a_duplicate_types_a_column_but_rescues_nothing(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file(
        "a",
        track("Order", "m1", "2026-10-01T07:00", n=1),
        track("Order", "m1", "2026-10-01T07:01", n="x", day=3),
    )
    runs.sync()
    assert runs.columns("track_order") == [
        *STANDARD,
        ("properties_n", "string", "/properties/n"),
        ("properties_day", "bigint", "/properties/day"),
    ]
    day = runs.archive.day("2026-10-01")
    day.file("b", track("Order", "m1", "2026-10-01T07:02", n=2) | {"day": 3})
    runs.sync()
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
        track("Order", "m1", "2026-10-01T07:59:59.999999"),
        # The hour is that of the receipt, in UTC.
        track("Order", "m2", "2026-10-02T01:00:00+02:00") | {"timestamp": "2026-10-01T03:00"},
    )
    runs.sync()
    assert runs.table("track_order").partition_keys == keys
    assert [partition.location for partition in runs.partitions("track_order").values()] == [
        f"segment-data/data/S1/segment_type=track_order/{folder}" for folder in folders
    ]
    day.file("b", track("Order", "m3", "2026-10-01T07:00"), track("Order", "m1", "2026-10-01"))
    assert runs.sync().duplicates == 1
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.ids("track_order") == ["m1", "m2", "m3"]
    assert all("/_v/R3/" in p.location for p in runs.partitions("track_order").values())


def test_warehouse_naming_from_end_to_end(tmp_path: Path) -> None:
    runs = Runs(tmp_path, naming="warehouse")
    day = runs.archive.day("2026-10-01")
    day.file(
        "a",
        track("Order Completed", "m1", "2026-10-01T07:00", total=1, id=9, user_id="x"),
        track("identifies", "m2", "2026-10-01T07:00"),
        identify("m3", "2026-10-01T07:00", plan="pro"),
        page("m4", "2026-10-01T07:00"),
    )
    runs.sync()
    assert runs.tables() == ["identifies", "order_completed", "pages", "track_identifies"]
    assert runs.columns("order_completed")[0] == ("id", "string", "/messageId")
    assert runs.columns("order_completed")[16:] == [
        ("total", "bigint", "/properties/total"),
        ("rescued_data", "string", ""),
    ]
    assert runs.rows("order_completed", "id", "total", "user_id", "rescued_data") == [
        {
            "id": "m1",
            "total": 1,
            "user_id": None,
            "rescued_data": '{"/properties/id":9,"/properties/user_id":"x"}',
        }
    ]
    assert runs.rows("identifies", "id", "plan") == [{"id": "m3", "plan": "pro"}]
    # The index can be made from these tables, too.
    for file in runs.storage.files("segment-data/_state/sources/S1/ids"):
        runs.storage.delete(file.path)
    day.file("b", track("Order Completed", "m1", "2026-10-01T08:00"))
    assert runs.sync().duplicates == 1


def test_a_prefix_names_the_tables_and_not_the_folders(tmp_path: Path) -> None:
    runs = Runs(tmp_path, table_prefix="ios", database="apps")
    runs.archive.day("2026-10-01").file("a", track("Page View", "m1", "2026-10-01T07:00"))
    report = runs.sync()
    assert runs.tables() == ["ios_track_page_view"]
    assert list(report.tables) == ["apps.ios_track_page_view"]
    assert runs.table("ios_track_page_view").location.endswith("/segment_type=track_page_view")
    lines = runs.reports()["R1"]
    assert [(line["database"], line["table_name"]) for line in lines] == [
        ("apps", ""),
        ("apps", "ios_track_page_view"),
    ]


@pytest.mark.parametrize(
    "changed", [{"date_partition": "day"}, {"naming": "warehouse"}], ids=lambda c: next(iter(c))
)
def test_another_layout_or_naming_over_existing_tables_is_refused(
    runs: Runs, changed: dict[str, str]
) -> None:
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.sync()
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
    runs.archive.day("2026-10-01").file(
        "a",
        track("Order", "m1", "2026-10-01T07:00"),
        page(None, "2026-10-01T07:00"),
        identify("m3", "2026-10-01T07:00"),
    )
    report = runs.sync()
    assert (report.rows_in, report.skipped, report.rejected, report.row_count) == (3, 2, 0, 1)
    assert runs.tables() == ["identify"]


def test_rows_without_id_are_rejected_or_loaded_under_the_hash_of_their_line(
    tmp_path: Path,
) -> None:
    for load in (False, True):
        runs = Runs(tmp_path / str(load), load_without_message_id=load)
        line = track("Order", None, "2026-10-01T07:00")
        runs.archive.day("2026-10-01").file("a", line, line, track("Order", "m1", "2026-10-01"))
        report = runs.sync()
        counts = (report.row_count, report.duplicates, report.rejected)
        assert counts == ((2, 1, 0) if load else (1, 0, 2))
        assert "m1" in runs.ids("track_order")
        assert {len(id) for id in runs.ids("track_order")} == ({2, 64} if load else {2})


def test_duplicates_cross_tables_files_and_syncs(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("b", track("Order", "m1", "2026-10-01T07:00", n=1), page("m2", "2026-10-01T07:00"))
    day.file("a", identify("m1", "2026-10-01T07:00:00.000001"), track("Order", "m2", "2026-10-01"))
    report = runs.sync()
    assert (report.row_count, report.duplicates) == (2, 2)
    # The earliest, whatever file and table it is in.
    assert (runs.tables(), runs.ids("track_order")) == (["track_order"], ["m1", "m2"])
    later = runs.archive.day("2026-10-08")
    later.file("a", page("m1", "2026-10-08T07:00"), page("m2", "2026-10-08T00:00:00.000001"))
    report = runs.sync()
    assert (report.row_count, report.duplicates) == (1, 1)
    assert runs.ids("page") == ["m2"]


def test_a_shorter_window_is_a_setting(tmp_path: Path) -> None:
    runs = Runs(tmp_path, dedup_days=1)
    runs.archive.day("2026-10-01").file(
        "a",
        *(track("Order", "m1", at) for at in ("2026-10-01", "2026-10-02", "2026-10-02T00:00:01")),
    )
    report = runs.sync()
    assert (report.row_count, report.duplicates) == (2, 1)


def test_limits_cost_only_the_offender(tmp_path: Path) -> None:
    runs = Runs(tmp_path, limits={"columns": 18, "tables": 2})
    runs.archive.day("2026-10-01").file(
        "a",
        track("Order", "m1", "2026-10-01T07:00", a=1),
        track("Order", "m2", "2026-10-01T07:00", b=1, c=1),
        track("Order", "m3", "2026-10-01T07:00", b=1),
        page("m4", "2026-10-01T07:00"),
        identify("m5", "2026-10-01T07:00"),
    )
    report = runs.sync()
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
    day.file("a", track("Order", "m1", "2026-10-01T07:00", a=1), page("m2", "2026-10-01T07:00"))
    day.file("b", track("Order", "m3", "2026-10-01T07:00", b=1, c=1))
    day.file("c", track("Order", "m4", "2026-10-01T07:00", c=1), identify("m5", "2026-10-01T07:00"))
    report = runs.sync()

    assert (report.row_count, report.rejected) == (3, 2)
    assert runs.ids("track_order") == ["m1", "m4"]
    assert [name for name, *_ in runs.columns("track_order")][16:] == [
        "properties_a",
        "properties_c",
    ]
    assert runs.tables() == ["page", "track_order"]


def test_several_tasks_make_the_same_lake_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[Any] = []
    for slots in (1, 2, 5):
        monkeypatch.setattr(InProcess, "slots", slots)
        runs = Runs(tmp_path / str(slots))
        day = runs.archive.day("2026-10-01")
        for name in "edcba":
            day.file(
                name,
                track("Order", "copy", "2026-10-01T07:00", **{name: 1}),
                track("Order", name, "2026-10-01T07:00", **{name: name, "n": ord(name)}),
                track(f"Only {name}", f"o{name}", "2026-10-01T07:00"),
            )
        runs.sync()
        ends.append(
            [(t, runs.columns(t), runs.rows(t), runs.table(t).comment) for t in runs.tables()]
        )
    assert ends[0] == ends[1] == ends[2]
    # Discovered in order of file, then line, then place.
    assert [c[0] for c in runs.columns("track_order")[16:]] == [
        f"properties_{name}" for name in ("a", "n", "b", "c", "d", "e")
    ]


def test_the_state_knows_how_many_rows_each_table_has(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", *(track("Order", f"m{n}", f"2026-10-01T0{n}:00") for n in range(3)))
    runs.sync()
    day.file("b", track("Order", "m9", "2026-10-01T00:00"), identify("m8", "2026-10-01"))
    runs.sync()
    runs.replay("2026-10-01T00:00", "2026-10-01T02:00")
    assert runs.state().rows == {"shop.identify": 1, "shop.track_order": 4}


def test_years_far_away_are_loaded_with_a_warning(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file(
        "a",
        *(track("Order", at, at) for at in ("0001-01-01", "0999-12-31T23:00", "9999-12-31T23:59")),
    )
    runs.sync()
    assert list(runs.partitions("track_order")) == [
        ("0001-01-01", "00"),
        ("0999-12-31", "23"),
        ("9999-12-31", "23"),
    ]
    assert any(w.startswith("2 rows were received before") for w in runs.warnings)
    assert any(w.startswith("1 rows claim to be received more than a day") for w in runs.warnings)
    assert runs.ledger()["a.gz"].hours == ("0001-01-01T00", "0999-12-31T23", "9999-12-31T23")
    runs.archive.day("2026-10-01").file("b", *(track("Order", "0001-01-01", "0001-01-08"),))
    assert runs.sync().duplicates == 1


NOON = utc("2026-10-20T12:00")
HOUR = timedelta(hours=1)


def test_two_hours_after_it_was_first_seen(runs: Runs) -> None:
    assert expected_first_sync(runs.storage, runs.source) is None
    dues = [first_sync_due(runs.storage, runs.source, NOON + n * HOUR) for n in range(4)]
    assert dues == [NOON + 2 * HOUR] * 4
    assert expected_first_sync(runs.storage, runs.source) == NOON + 2 * HOUR


def test_at_once_if_that_is_set(runs: Runs) -> None:
    runs.set(first_sync_hours=0)
    assert first_sync_due(runs.storage, runs.source, NOON) == NOON


def test_a_source_that_has_data_is_not_new(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", page("m1", "2026-10-01T07:00"))
    first_sync_due(runs.storage, runs.source, NOON)
    runs.sync()
    assert first_sync_due(runs.storage, runs.source, NOON) is None
    assert expected_first_sync(runs.storage, runs.source) is None


def test_a_clock_that_was_ahead_makes_nobody_wait_for_years(runs: Runs) -> None:
    first_sync_due(runs.storage, runs.source, utc("2036-01-01"))
    assert first_sync_due(runs.storage, runs.source, NOON) == NOON + 2 * HOUR
    assert first_sync_due(runs.storage, runs.source, NOON + HOUR) == NOON + 2 * HOUR


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
def test_no_task_gets_too_many(staged: int, looked_back: int, groups: int) -> None:
    assert groups_for(staged, looked_back) == groups

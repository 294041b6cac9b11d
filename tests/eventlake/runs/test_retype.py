"""Replays that retype a column, with other runs before, during and after them."""

from collections.abc import Generator
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from eventlake.catalog.base import CatalogPartition, Days
from eventlake.catalog.local import LocalCatalog
from eventlake.rules.counts import UnitReport
from eventlake.runs import placement
from eventlake.runs.context import Published
from eventlake.runs.retype import Switches
from eventlake.runs.unit import Window
from eventlake.sql import LakeSql
from eventlake.state.manifest import RunKind
from tests.support.faults.flows import overtaken, warned_of_conflict
from tests.support.lakes.archive import identify, order, page
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.retyping import (
    ALL_DAYS,
    NUMBERS,
    TEXTS,
    days_of_a_replay,
    request_type,
    rescued,
    seen,
)
from tests.support.lakes.runs import Runs, utc


@pytest.fixture
def shop(three_days: Runs) -> Runs:
    """A table of whole numbers, one a day, which are to become text."""
    request_type(three_days, "track_order.n", "string")
    return three_days


def begun(runs: Runs) -> Generator[Published, None, None]:
    """A replay of all days after its first one."""
    days = days_of_a_replay(runs)
    next(days)
    return days


def test_numbers_become_the_text_that_was_sent_and_numbers_again(runs: Runs) -> None:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00", n=7))
    runs.load("2026-10-02", order("m2", "2026-10-02T07:00") | {"properties": {"n": "7e0"}})
    assert seen(runs, "track_order.n") == ("bigint", {"m1": 7, "m2": 7})
    request_type(runs, "track_order.n", "string")
    runs.replay("2026-10-01", "2026-10-03")
    assert seen(runs, "track_order.n") == ("string", {"m1": "7", "m2": "7e0"})
    request_type(runs, "track_order.n", "bigint")
    runs.replay("2026-10-01", "2026-10-03")
    assert seen(runs, "track_order.n") == ("bigint", {"m1": 7, "m2": 7})


def test_rescued_values_come_home(runs: Runs) -> None:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00", n=12.5))
    runs.load(
        "2026-10-01",
        order("m2", "2026-10-01T07:00", n="12,50"),
        order("m3", "2026-10-01T07:00", n=1e-7),
        name="b",
    )
    assert seen(runs, "track_order.n")[1]["m2"] is None
    assert set(rescued(runs, "track_order")) == {"m2", "m3"}
    request_type(runs, "track_order.n", "string")
    report = runs.replay("2026-10-01", "2026-10-02")
    assert seen(runs, "track_order.n") == ("string", {"m1": "12.5", "m2": "12,50", "m3": "1e-7"})
    assert rescued(runs, "track_order") == {}
    assert report.tables["shop.track_order"].rescued_cells == 0


def test_text_becomes_time_and_other_text_is_rescued(runs: Runs) -> None:
    runs.load(
        "2026-10-01",
        order("m1", "2026-10-01T07:00", n="2026-10-01T02:00+02:00"),
        order("m2", "2026-10-01T07:00", n="yesterday"),
        order("m3", "2026-10-01T08:00", n=""),
    )
    request_type(runs, "track_order.n", "timestamp")
    report = runs.replay("2026-10-01", "2026-10-02")
    values = {"m1": "2026-10-01 00:00:00.000000", "m2": None, "m3": None}
    assert seen(runs, "track_order.n") == ("timestamp", values)
    assert rescued(runs, "track_order") == {"m2": '{"/properties/n":"yesterday"}'}
    [new] = report.tables["shop.track_order"].new_columns
    assert new.name == "rescued_data"


def test_syncs_use_the_old_type_until_the_replay_is_over(shop: Runs) -> None:
    shop.load("2026-10-03", order("m4", "2026-10-03T08:00", n=4), name="b")
    assert seen(shop, "track_order.n") == ("bigint", NUMBERS[1] | {"m4": 4})
    assert not [file for file in shop.storage.files("segment-data/data") if "retyped" in file.path]
    shop.replay(*ALL_DAYS)
    shop.load("2026-10-03", order("m5", "2026-10-03T08:00", n=5), name="c")
    assert seen(shop, "track_order.n") == ("string", TEXTS[1] | {"m4": "4", "m5": "5"})
    assert (shop.state().requested_types, shop.state().shadows) == ({}, {})


@pytest.mark.parametrize(
    ("start", "end", "left_out"),
    [
        ("2026-10-01", "2026-10-03", "1 of the table's days (2026-10-03 to 2026-10-03)"),
        ("2026-10-02", "2026-10-03", "2 of the table's days (2026-10-01 to 2026-10-03)"),
        ("2026-10-01T08:00", "2026-10-04", "1 of the table's days (2026-10-01 to 2026-10-01)"),
    ],
)
def test_missing_days_keep_the_type(shop: Runs, start: str, end: str, left_out: str) -> None:
    shop.replay(start, end)
    assert seen(shop, "track_order.n") == NUMBERS
    [warning] = shop.warnings
    assert "shop.track_order keeps its types, although properties_n string is requested" in warning
    assert left_out in warning
    assert shop.state().requested_types == {"shop.track_order": {"properties_n": "string"}}


def test_the_hours_that_a_table_has_are_enough(runs: Runs) -> None:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00", n=1))
    request_type(runs, "track_order.n", "string")
    runs.replay("2026-10-01T07:00", "2026-10-01T08:00")
    assert seen(runs, "track_order.n") == ("string", {"m1": "1"})


def test_other_tables_keep_their_types_whichever_is_replayed(runs: Runs) -> None:
    runs.load(
        "2026-10-01", order("m1", "2026-10-01T07:00", n=1), page("m2", "2026-10-01T07:00", n=1)
    )
    request_type(runs, "track_order.n", "string")
    runs.replay("2026-10-01", "2026-10-02", "page")
    assert seen(runs, "track_order.n")[0] == "bigint"
    assert runs.warnings == []
    runs.replay("2026-10-01", "2026-10-02", "track_order")
    assert (seen(runs, "track_order.n")[0], seen(runs, "page.n")[0]) == ("string", "bigint")


def test_two_requests_are_applied_together(runs: Runs) -> None:
    line = order("m1", "2026-10-01T07:00", a=1, b="1.5", c=1)
    runs.load("2026-10-01", line, page("m2", "2026-10-01T07:00", a=1))
    request_type(runs, "track_order.a", "string")
    request_type(runs, "track_order.b", "decimal")
    request_type(runs, "page.a", "decimal")
    *_, switch = days_of_a_replay(runs, "2026-10-01", "2026-10-02")
    assert switch.manifest.retyped == ("shop.page", "shop.track_order")
    assert seen(runs, "track_order.a") == ("string", {"m1": "1"})
    assert seen(runs, "track_order.b") == ("decimal(38,6)", {"m1": Decimal("1.500000")})
    assert seen(runs, "track_order.c") == ("bigint", {"m1": 1})
    assert seen(runs, "page.a") == ("decimal(38,6)", {"m2": Decimal(1)})


def test_days_outside_of_the_archive_are_replayed_too(runs: Runs) -> None:
    """Rows of the evening before the first day folder, and of clocks that go wrong."""
    runs.load(
        "2026-10-01",
        order("evening", "2026-09-30T23:00", n=1),
        order("m1", "2026-10-01T07:00", n=2),
        order("future", "2099-01-01T00:00", n=3),
        order("old", "0999-01-01T00:00", n=4),
        page("other", "2099-01-01T00:00", n=5),
    )
    request_type(runs, "track_order.n", "string")
    report = runs.replay("2026-10-01", "2026-10-02")
    values = {"evening": "1", "m1": "2", "future": "3", "old": "4"}
    assert seen(runs, "track_order.n") == ("string", values)
    assert (report.rows_in, report.row_count) == (1, 1)  # of its own range
    assert report.rows_taken_along == 3
    [line, *_] = next(lines for lines in runs.reports().values() if lines[0]["replay"])
    assert (line["row_count"], line["rows_taken_along"]) == (1, 3)
    assert "/versions/" not in next(iter(runs.partitions("page").values())).location


def test_a_row_of_the_last_day_there_is_keeps_the_table_as_it_is(runs: Runs) -> None:
    runs.load(
        "2026-10-01", order("m1", "2026-10-01T07:00", n=1), order("end", "9999-12-31T23:00", n=2)
    )
    request_type(runs, "track_order.n", "string")
    runs.replay("2026-10-01", "2026-10-02")
    assert seen(runs, "track_order.n") == ("bigint", {"m1": 1, "end": 2})
    assert any("9999-12-31/23" in warning for warning in runs.warnings)


def test_a_table_of_which_no_row_is_left_takes_the_type_alone(shop: Runs) -> None:
    shop.set(skip_events=["Order"])
    shop.replay(*ALL_DAYS)
    assert seen(shop, "track_order.n") == ("string", {})
    shop.set()
    shop.replay(*ALL_DAYS)
    assert seen(shop, "track_order.n") == TEXTS


@pytest.mark.parametrize("layout", ["day", "year/month/day/hour"])
def test_in_every_layout(tmp_path: Path, layout: str) -> None:
    runs = Runs(tmp_path, date_partition=layout, naming="warehouse", table_prefix="web")
    for day in ("2026-09-30", "2026-10-01"):
        runs.archive.day(day).file("a", identify(day, f"{day}T07:00", n=1))
    runs.sync()
    request_type(runs, "web_identifies.n", "string")
    runs.replay("2026-09-30", "2026-10-02")
    assert seen(runs, "web_identifies.n") == ("string", {"2026-09-30": "1", "2026-10-01": "1"})


def test_reports_checks_and_index_hold_for_the_switch(three_days: Runs) -> None:
    runs = three_days
    index, rows = runs.index(), runs.state().rows
    request_type(runs, "track_order.n", "timestamp")
    *days, switch = days_of_a_replay(runs)
    assert [len(day.checks) for day in days] == [3, 3, 3]
    assert all(check.passed for day in days for check in day.checks)
    assert switch.manifest.finish_time is not None
    assert switch.manifest.report.tables["shop.track_order"].rescued_cells == 3
    assert (runs.index(), runs.state().rows) == (index, rows)
    source, table = runs.reports()["R2"]
    assert (source["row_count"], table["row_count"], table["files_written"]) == (3, 3, 3)
    written = {part.location: part for part in runs.partitions("track_order").values()}
    assert table["bytes_written"] == sum(part.bytes for part in written.values())
    files = [file for place in written for file in runs.storage.files(place)]
    assert sum(file.size for file in files) == table["bytes_written"]


def test_readers_see_the_new_type_at_the_end(shop: Runs) -> None:
    told = [seen(shop, "track_order.n") for _ in days_of_a_replay(shop)]
    assert told == [NUMBERS, NUMBERS, NUMBERS, TEXTS]


@pytest.mark.parametrize("slots", [1, 2])
def test_rows_that_a_sync_loads_between_two_days_are_there_after_the_switch(
    shop: Runs, monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    """Into days that are done and days that are not, into partitions that are there and new ones;
    with two tasks the partitions move, with what they held."""
    monkeypatch.setattr(InProcess, "slots", slots)
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)
    days = begun(shop)
    for name in "bc":
        shop.archive.day("2026-10-03").file(
            name,
            order(f"done {name}", "2026-10-01T07:10", n=10),
            order(f"new hour {name}", "2026-10-01T09:00", n=11),
            order(f"to come {name}", "2026-10-02T07:10", n=12),
            order(f"outside {name}", "2026-10-04T07:10", n=13),
        )
    assert shop.sync().row_count == 8
    kind, values = seen(shop, "track_order.n")
    assert (kind, values["done b"], values["m1"]) == ("bigint", 10, 1)
    list(days)
    late = {"done": "10", "new hour": "11", "to come": "12", "outside": "13"}
    wanted = TEXTS[1] | {f"{id} {name}": n for id, n in late.items() for name in "bc"}
    assert seen(shop, "track_order.n") == ("string", wanted)
    assert shop.sync().rows_in == 0
    shop.replay("2026-10-01", "2026-10-05")
    assert seen(shop, "track_order.n") == ("string", wanted)


def test_a_replay_of_one_day_between_two_days_keeps_the_switch_whole(shop: Runs) -> None:
    days = begun(shop)
    shop.archive.day("2026-10-01").file("a", order("m0", "2026-10-01T07:00", n=0))
    shop.replay("2026-10-01", "2026-10-02")
    assert seen(shop, "track_order.n") == ("bigint", {"m0": 0, "m2": 2, "m3": 3})
    list(days)
    assert seen(shop, "track_order.n") == ("string", {"m0": "0", "m2": "2", "m3": "3"})


def test_a_sync_in_the_middle_of_a_day_loses_nothing(shop: Runs) -> None:

    def late_file() -> None:
        shop.load("2026-10-03", order("late", "2026-10-01T07:00", n=9), name="late")

    shop.flow = overtaken(shop, late_file, unit=2)
    shop.replay(*ALL_DAYS)
    assert warned_of_conflict(shop)
    assert seen(shop, "track_order.n") == ("string", TEXTS[1] | {"late": "9"})


def test_a_replay_that_broke_off_is_completed_by_one_of_the_days_it_lacks(shop: Runs) -> None:
    days = begun(shop)
    days.close()
    shop.replay("2026-10-02", "2026-10-03")
    assert seen(shop, "track_order.n") == NUMBERS
    shop.replay("2026-10-03", "2026-10-04")
    assert seen(shop, "track_order.n") == TEXTS


def test_a_request_that_changes_in_the_middle_is_left_to_the_next_replay(shop: Runs) -> None:
    days = begun(shop)
    request_type(shop, "track_order.n", "decimal")
    list(days)
    assert seen(shop, "track_order.n") == NUMBERS
    assert any("keeps its types for now: 2026-10-01/07 came" in text for text in shop.warnings)
    assert shop.reports()["R2"][0]["status"] == "finished"
    shop.replay(*ALL_DAYS)
    assert seen(shop, "track_order.n")[0] == "decimal(38,6)"


def test_a_request_withdrawn_in_the_middle_switches_nothing(shop: Runs) -> None:
    days = begun(shop)
    request_type(shop, "track_order.n", "bigint")
    list(days)
    assert seen(shop, "track_order.n") == NUMBERS
    assert (shop.state().requested_types, shop.state().shadows, shop.warnings) == ({}, {}, [])


def test_lost_files_prevent_the_switch(shop: Runs) -> None:
    days = begun(shop)
    [shadow] = [f.path for f in shop.storage.files("segment-data/data") if "retyped" in f.path]
    shop.storage.delete(shadow)
    list(days)
    assert seen(shop, "track_order.n") == NUMBERS
    assert any("keeps its types for now: 2026-10-01/07 " in text for text in shop.warnings)


def test_shadows_of_something_else_are_not_switched_to(shop: Runs) -> None:
    """Every manifest sees to that; and were it not so, the switch would."""
    days = days_of_a_replay(shop)
    for _ in range(3):
        next(days)
    state = shop.state()
    for shadow in state.shadows["shop.track_order"].values():
        for wrong in ({"version": shadow.version - 1}, {"rows": shadow.rows + 1}):
            other = msgspec.structs.replace(shadow, **wrong)
            held = state.shadows["shop.track_order"] | {"/".join(shadow.values): other}
            damaged = msgspec.structs.replace(state, shadows={"shop.track_order": held})
            window = Window(utc(ALL_DAYS[0]), utc(ALL_DAYS[1]))
            context = shop.context(RunKind.REPLAY, window)
            switches = Switches(context, state, window, None, None)
            assert switches.manifest(state, UnitReport()) is not None
            assert switches.manifest(damaged, UnitReport()) is None


def test_columns_that_come_meanwhile_are_there_after_the_switch(shop: Runs) -> None:
    days = begun(shop)
    late = order("late", "2026-10-01T07:00", n="no number", new=True)
    shop.load("2026-10-03", late, name="late")
    assert rescued(shop, "track_order") == {"late": '{"/properties/n":"no number"}'}
    list(days)
    assert seen(shop, "track_order.n") == ("string", TEXTS[1] | {"late": "no number"})
    assert seen(shop, "track_order.new")[1]["late"] is True
    assert rescued(shop, "track_order") == {}


def test_a_query_during_the_switch_is_consistent(shop: Runs) -> None:
    days = days_of_a_replay(shop)
    for _ in range(3):
        next(days)

    class Switching(LocalCatalog):
        def partitions(
            self, database: str, name: str, days_asked: Days | None = None
        ) -> list[CatalogPartition]:
            list(days)  # after the columns were read, before the partitions are
            return super().partitions(database, name, days_asked)

    sql = "SELECT message_id, properties_n FROM shop.track_order ORDER BY 1"
    answer = LakeSql(Switching(shop.storage), shop.storage).query(sql)
    assert answer["properties_n"].to_pylist() == ["1", "2", "3"]

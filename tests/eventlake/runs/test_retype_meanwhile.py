"""What comes while a table is on its way to other types: nothing of it is lost, readers see it."""

import msgspec
import pytest

from eventlake.catalog.base import CatalogPartition, Days
from eventlake.catalog.local import LocalCatalog
from eventlake.rules.counts import UnitReport
from eventlake.runs import placement
from eventlake.runs.retype import Switches
from eventlake.runs.unit import Window
from eventlake.sql import LakeSql
from eventlake.state.manifest import RunKind
from tests.support.faults.flows import overtaken, warned_of_conflict
from tests.support.lakes.archive import track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.retyping import (
    ALL_DAYS,
    NUMBERS,
    TEXTS,
    days_of_a_replay,
    order,
    rescued,
    seen,
    wish,
)
from tests.support.lakes.runs import Runs, utc


def test_readers_see_the_old_type_on_every_day_of_the_replay_and_the_new_one_at_its_end(
    three_days: Runs,
) -> None:
    runs = three_days
    wish(runs, "track_order.n", "string")
    told = [seen(runs, "track_order.n") for _ in days_of_a_replay(runs)]
    assert told == [NUMBERS, NUMBERS, NUMBERS, TEXTS]


@pytest.mark.parametrize("slots", [1, 2])
def test_what_a_sync_brings_between_two_days_is_there_after_the_switch(
    three_days: Runs, monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    """Into days that are done and days that are not, into partitions that are there and new ones;
    with two tasks the partitions move, with what they held."""
    monkeypatch.setattr(InProcess, "slots", slots)
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)
    runs = three_days
    wish(runs, "track_order.n", "string")
    days = days_of_a_replay(runs)
    next(days)
    for name in "bc":
        runs.archive.day("2026-10-03").file(
            name,
            order(f"done {name}", "2026-10-01T07:10", 10),
            order(f"new hour {name}", "2026-10-01T09:00", 11),
            order(f"to come {name}", "2026-10-02T07:10", 12),
            order(f"outside {name}", "2026-10-04T07:10", 13),
        )
    assert runs.sync().row_count == 8
    kind, values = seen(runs, "track_order.n")
    assert (kind, values["done b"], values["m1"]) == ("bigint", 10, 1)
    list(days)
    late = {"done": "10", "new hour": "11", "to come": "12", "outside": "13"}
    wanted = TEXTS[1] | {f"{id} {name}": n for id, n in late.items() for name in "bc"}
    assert seen(runs, "track_order.n") == ("string", wanted)
    assert runs.sync().rows_in == 0
    runs.replay("2026-10-01", "2026-10-05")
    assert seen(runs, "track_order.n") == ("string", wanted)


def test_a_replay_of_one_day_between_two_days_keeps_the_switch_whole(three_days: Runs) -> None:
    runs = three_days
    wish(runs, "track_order.n", "string")
    days = days_of_a_replay(runs)
    next(days)
    runs.archive.day("2026-10-01").file("a", order("m0", "2026-10-01T07:00", 0))
    runs.replay("2026-10-01", "2026-10-02")
    assert seen(runs, "track_order.n") == ("bigint", {"m0": 0, "m2": 2, "m3": 3})
    list(days)
    assert seen(runs, "track_order.n") == ("string", {"m0": "0", "m2": "2", "m3": "3"})


def test_a_sync_in_the_middle_of_a_day_loses_nothing(three_days: Runs) -> None:
    runs = three_days
    wish(runs, "track_order.n", "string")

    def late_file() -> None:
        runs.archive.day("2026-10-03").file("late", order("late", "2026-10-01T07:00", 9))
        runs.sync()

    runs.flow = overtaken(runs, late_file, unit=2)
    runs.replay(*ALL_DAYS)
    assert warned_of_conflict(runs)
    assert seen(runs, "track_order.n") == ("string", TEXTS[1] | {"late": "9"})


def test_a_replay_that_broke_off_is_completed_by_one_of_the_days_it_lacks(three_days: Runs) -> None:
    runs = three_days
    wish(runs, "track_order.n", "string")
    days = days_of_a_replay(runs)
    next(days)
    days.close()
    runs.replay("2026-10-02", "2026-10-03")
    assert seen(runs, "track_order.n") == NUMBERS
    runs.replay("2026-10-03", "2026-10-04")
    assert seen(runs, "track_order.n") == TEXTS


def test_a_wish_that_changes_in_the_middle_is_left_to_the_next_replay(three_days: Runs) -> None:
    runs = three_days
    wish(runs, "track_order.n", "string")
    days = days_of_a_replay(runs)
    next(days)
    wish(runs, "track_order.n", "decimal")
    list(days)
    assert seen(runs, "track_order.n") == NUMBERS
    assert any("keeps its types for now: 2026-10-01/07 came" in text for text in runs.warnings)
    assert runs.reports()["R2"][0]["status"] == "finished"
    runs.replay(*ALL_DAYS)
    assert seen(runs, "track_order.n")[0] == "decimal(38,6)"


def test_a_wish_that_is_taken_back_in_the_middle_switches_nothing(three_days: Runs) -> None:
    runs = three_days
    wish(runs, "track_order.n", "string")
    days = days_of_a_replay(runs)
    next(days)
    wish(runs, "track_order.n", "bigint")
    list(days)
    assert seen(runs, "track_order.n") == NUMBERS
    assert (runs.state().wishes, runs.state().shadows, runs.warnings) == ({}, {}, [])


def test_files_that_somebody_has_taken_away_are_not_switched_to(three_days: Runs) -> None:
    runs = three_days
    wish(runs, "track_order.n", "string")
    days = days_of_a_replay(runs)
    next(days)
    [shadow] = [f.path for f in runs.storage.files("segment-data/data") if "retyped" in f.path]
    runs.storage.delete(shadow)
    list(days)
    assert seen(runs, "track_order.n") == NUMBERS
    assert any("keeps its types for now: 2026-10-01/07 " in text for text in runs.warnings)


def test_shadows_of_something_else_are_not_switched_to(three_days: Runs) -> None:
    """Every manifest sees to that; and were it not so, the switch would."""
    runs = three_days
    wish(runs, "track_order.n", "string")
    days = days_of_a_replay(runs)
    for _ in range(3):
        next(days)
    state = runs.state()
    for shadow in state.shadows["shop.track_order"].values():
        for wrong in ({"version": shadow.version - 1}, {"rows": shadow.rows + 1}):
            other = msgspec.structs.replace(shadow, **wrong)
            held = state.shadows["shop.track_order"] | {"/".join(shadow.values): other}
            damaged = msgspec.structs.replace(state, shadows={"shop.track_order": held})
            window = Window(utc(ALL_DAYS[0]), utc(ALL_DAYS[1]))
            context = runs.context(RunKind.REPLAY, window)
            switches = Switches(context, state, window, None, None)
            assert switches.manifest(state, UnitReport()) is not None
            assert switches.manifest(damaged, UnitReport()) is None


def test_columns_that_come_meanwhile_are_there_after_the_switch(three_days: Runs) -> None:
    runs = three_days
    wish(runs, "track_order.n", "string")
    days = days_of_a_replay(runs)
    next(days)
    late = track("Order", "late", "2026-10-01T07:00", n="no number", new=True)
    runs.archive.day("2026-10-03").file("late", late)
    runs.sync()
    assert rescued(runs, "track_order") == {"late": '{"/properties/n":"no number"}'}
    list(days)
    assert seen(runs, "track_order.n") == ("string", TEXTS[1] | {"late": "no number"})
    assert seen(runs, "track_order.new")[1]["late"] is True
    assert rescued(runs, "track_order") == {}


def test_a_question_that_is_asked_during_the_switch_is_answered_from_before_or_after_it(
    three_days: Runs,
) -> None:
    runs = three_days
    wish(runs, "track_order.n", "string")
    days = days_of_a_replay(runs)
    for _ in range(3):
        next(days)

    class Switching(LocalCatalog):
        def partitions(
            self, database: str, name: str, days_asked: Days | None = None
        ) -> list[CatalogPartition]:
            list(days)  # after the columns were read, before the partitions are
            return super().partitions(database, name, days_asked)

    sql = "SELECT message_id, properties_n FROM shop.track_order ORDER BY 1"
    answer = LakeSql(Switching(runs.storage), runs.storage).query(sql)
    assert answer["properties_n"].to_pylist() == ["1", "2", "3"]

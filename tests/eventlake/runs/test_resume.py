"""A replay that was interrupted goes on where it was; one that had finished runs anew."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from eventlake.runs.replay import replay_units
from eventlake.runs.unit import Window
from eventlake.state import lease
from eventlake.state.manifest import RunKind
from eventlake.storage import LocalStorage
from tests.support.faults.failing_storage import Broken, FailingStorage, Fault, Faults
from tests.support.faults.flows import FIRST, Counting, cancel, load_days
from tests.support.lakes.archive import identify, track
from tests.support.lakes.retyping import order, request_type, seen
from tests.support.lakes.runs import Runs, utc


@pytest.fixture(autouse=True)
def _count_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("rows", 0), ("units", 0), ("cancelled_at", None)):
        monkeypatch.setattr(Counting, name, value)


def content(runs: Runs) -> object:
    return {table: sorted(map(repr, runs.rows(table))) for table in runs.tables()}, runs.index()


def statuses(runs: Runs) -> dict[str, tuple[str, int]]:
    """How each replay ended, and the rows it reported."""
    return {
        run: (lines[0]["status"], lines[0]["row_count"])
        for run, lines in runs.reports().items()
        if lines[0]["replay"]
    }


def test_thirty_days_interrupted_three_times_cost_little_more_than_once(tmp_path: Path) -> None:
    whole, broken = Runs(tmp_path / "whole"), Runs(tmp_path / "broken")
    span = load_days(whole, 30)
    whole.replay(*span)
    undisturbed = (Counting.rows, Counting.units)
    assert undisturbed[1] == 30

    Counting.rows = Counting.units = 0
    load_days(broken, 30)
    for unit in (9, 17, 26):
        cancel(broken, unit, *span)
    report = broken.replay(*span)

    assert content(broken) == content(whole)
    assert Counting.rows < 1.2 * undisturbed[0]
    assert Counting.units == 33  # each time the day in which it was cancelled, and nothing else
    ended = statuses(broken)
    assert [status for status, _ in ended.values()] == ["failed"] * 3 + ["finished"]
    [(_, rows)] = statuses(whole).values()
    assert sum(rows for _, rows in ended.values()) == rows
    assert ended["R5"][1] == report.row_count
    source = broken.reports()["R5"][0]
    assert (source["replay_from"][:10], source["replay_to"][:10]) == span
    assert (
        "Goes on with the replay that run R2 began: 23 of 30 days are in the lake (2026-09-01 to "
        "2026-09-08 by run R2, 2026-09-09 to 2026-09-15 by run R3, 2026-09-16 to 2026-09-23 by "
        "run R4)." in broken.logged
    )


def test_one_that_has_finished_runs_anew(runs: Runs) -> None:
    span = load_days(runs, 3)
    runs.replay(*span)
    runs.replay(*span)
    assert Counting.units == 6
    assert runs.state().replays.open == ()


def test_one_that_was_stopped_between_two_days_goes_on(runs: Runs) -> None:
    span = load_days(runs, 3)
    window = Window(*map(utc, span))
    days = replay_units(runs.context(RunKind.REPLAY, window), window)
    next(days)
    days.close()
    [lines] = [lines for lines in runs.reports().values() if lines[0]["replay"]]
    assert (lines[0]["status"], lines[0]["row_count"]) == ("failed", 7)
    assert lines[0]["partitions"] == [{"day": "2026-09-01", "hr": "07"}]
    assert "stopped" in lines[0]["error"]
    assert runs.replay(*span).rows_in == 16
    assert Counting.units == 3


def test_one_whose_process_died_goes_on(runs: Runs) -> None:
    span = load_days(runs, 3)
    before = content(runs)
    faults = Faults(Fault.DEATH)
    runs.storage = FailingStorage(str(runs.root), faults)
    window = Window(*map(utc, span))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lease, "LIFETIME", timedelta(0))
        days = replay_units(runs.context(RunKind.REPLAY, window), window)
        next(days)
        faults.at = faults.changes + 3
        with pytest.raises(Broken):
            next(days)
    runs.storage = LocalStorage(str(runs.root))
    assert statuses(runs) == {}
    assert runs.replay(*span).rows_in == 16
    assert [status for status, _ in statuses(runs).values()] == ["failed", "finished"]
    assert content(runs) == before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda runs: runs.set(skip_events=["Cart"]), "with other settings"),
        (lambda runs: runs.set(dedup_days=3), "with other settings"),
        (lambda runs: request_type(runs, "track_order.n", "string"), "with other types"),
    ],
)
def test_with_other_settings_or_types_it_begins_at_its_first_day(
    runs: Runs, change: Callable[[Runs], None], why: str
) -> None:
    span = load_days(runs, 3)
    cancel(runs, 2, *span)
    change(runs)
    runs.replay(*span)
    assert Counting.units == 2 + 3
    assert any(f"(begun by run R2), but {why}: this one begins" in line for line in runs.logged)
    assert runs.state().replays.open == ()


def test_of_other_tables_or_another_range_it_begins_at_its_first_day(runs: Runs) -> None:
    span = load_days(runs, 3)
    cancel(runs, 2, *span)
    runs.replay(*span, "track_order")
    assert Counting.units == 2 + 3
    assert any("with other tables" in line for line in runs.logged)
    cancel(runs, 7, *span)
    runs.replay(span[0], "2026-09-03")
    assert Counting.units == 7 + 2


def test_settings_that_change_nothing_in_the_tables_do_not_matter(runs: Runs) -> None:
    span = load_days(runs, 3)
    cancel(runs, 2, *span)
    runs.set(tracking="all", enabled=False, emr_cluster_id="j-2")
    runs.replay(*span)
    assert Counting.units == 2 + 2


@pytest.mark.parametrize(
    ("day", "name", "units"),
    [("2026-09-01", "a", 3), ("2026-09-01", "new", 3), ("2026-09-03", "a", 2)],
    ids=["changed of a day that is done", "new to a day that is done", "of a day to come"],
)
def test_other_raw_files_of_days_that_are_done_begin_it_anew(
    runs: Runs, day: str, name: str, units: int
) -> None:
    span = load_days(runs, 3)
    # The first day reads the folders up to the next one, so that the second is not in question.
    cancel(runs, 2, *span)
    runs.archive.day(day).file(name, track("Order", "other", f"{day}T07:00", n=9))
    runs.replay(*span)
    assert Counting.units == 2 + units
    assert "other" in runs.ids("track_order")
    anew = [text for text in runs.warnings if "begins anew" in text]
    assert bool(anew) == (units == 3)


def test_files_that_syncs_bring_meanwhile_do_not_begin_it_anew(runs: Runs) -> None:
    span = load_days(runs, 3)
    cancel(runs, 2, *span)
    runs.archive.day("2026-09-01").file("new", track("Order", "new", "2026-09-01T07:00", n=9))
    assert runs.sync().row_count == 1
    runs.replay(*span)
    assert Counting.units == 2 + 1 + 2
    assert "new" in runs.ids("track_order")


def test_begun_anew_and_interrupted_again_it_goes_on_from_the_new_beginning(runs: Runs) -> None:
    span = load_days(runs, 4)
    cancel(runs, 4, *span)
    runs.archive.day("2026-09-02").file("a", track("Order", "other", "2026-09-02T07:00", n=9))
    cancel(runs, 6, *span)  # in its second day
    runs.replay(*span)
    assert Counting.units == 4 + 2 + 3
    assert runs.ids("track_order").count("other") == 1


def test_a_day_that_another_replay_has_made_anew_is_not_done(runs: Runs) -> None:
    span = load_days(runs, 3)
    cancel(runs, 3, *span)
    runs.set(skip_events=["Order"])
    runs.replay("2026-09-01", "2026-09-02")
    runs.set()
    runs.replay(*span)
    assert Counting.units == 3 + 1 + 2
    assert len(runs.ids("track_order")) == 3 * 6 + 1 + 3


@pytest.mark.parametrize(
    ("tables", "days_left"), [(["identify"], 2), (["identify", "track_order"], 3), ([], 3)]
)
def test_a_replay_of_other_tables_leaves_finished_days_alone(
    runs: Runs, tables: list[str], days_left: int
) -> None:
    runs.archive.day(f"{FIRST}").file("b", identify("i1", f"{FIRST}T07:00"))
    span = (*load_days(runs, 3), "track_order")
    cancel(runs, 2, *span)
    runs.replay("2026-09-01", "2026-09-02", *tables)
    Counting.units = 0
    runs.replay(*span)
    assert Counting.units == days_left


def test_hours_are_gone_on_with_too(runs: Runs) -> None:
    load_days(runs, 3)
    hours = ("2026-09-01T07:00", "2026-09-03T08:00", "track_order")
    cancel(runs, 2, *hours)
    runs.replay(*hours)
    assert Counting.units == 2 + 2


def test_two_at_once_share_the_days(runs: Runs) -> None:
    span = load_days(runs, 4)
    window = Window(*map(utc, span))
    first = replay_units(runs.context(RunKind.REPLAY, window), window)
    next(first)
    second = replay_units(runs.context(RunKind.REPLAY, window), window)
    next(second)
    assert [unit.report.tables["shop.track_order"].day_rows for unit in first] == [
        {"2026-09-03": 7},
        {"2026-09-04": 8},
    ]  # not the second day once more
    list(second)
    assert {status for status, _ in statuses(runs).values()} == {"finished"}
    assert runs.state().replays.open == ()


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_the_switch_of_types_comes_at_the_end_of_the_last_launch(runs: Runs, at: int) -> None:
    for day in (1, 2, 3):
        runs.archive.day(f"2026-10-0{day}").file(
            "a", order(f"m{day}", f"2026-10-0{day}T07:00", day)
        )
    runs.archive.day("2026-10-03").file("b", order("late", "2026-09-30T07:00", 0))
    runs.sync()
    runs.flow = Counting
    request_type(runs, "track_order.n", "string")
    span = ("2026-10-01", "2026-10-04")
    cancel(runs, at, *span)  # the fourth is the day before the first, which is taken along
    runs.replay(*span)
    assert Counting.units == at + 5 - at
    texts = {"m1": "1", "m2": "2", "m3": "3", "late": "0"}
    assert seen(runs, "track_order.n") == ("string", texts)
    assert runs.state().replays.open == ()


def test_a_request_that_changed_and_changed_back_begins_it_anew(runs: Runs) -> None:
    span = (load_days(runs, 3)[0], "2026-09-05")
    request_type(runs, "track_order.n", "string")
    cancel(runs, 2, *span)
    request_type(runs, "track_order.n", "decimal")
    request_type(runs, "track_order.n", "string")
    runs.replay(*span)
    assert any("no longer exists in the requested types" in text for text in runs.warnings)
    assert seen(runs, "track_order.n")[0] == "string"

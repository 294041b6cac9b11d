"""When an alert opens and closes, for single histories and for any history."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.alerts.run_status import CheckRun, EndedRun, Outcome, Verdict
from eventlake.alerts.state import AlertState
from tests.support.alerts.lakes import (
    BEGIN,
    HOUR,
    evaluated,
    run,
    runs,
    source_with,
    titles,
    watched_since,
)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("", []),
        ("KKK", []),
        ("F", ["sync failed"]),
        ("FFFF", ["sync failed"]),
        ("FFFFF", ["sync failed", "5 syncs failed in a row"]),
        ("FK", ["sync failed", "sync recovered after 1 failure"]),
        ("FKKK", ["sync failed", "sync recovered after 1 failure"]),
        ("FFXKF", ["sync failed", "sync recovered after 2 failures", "sync failed"]),
        ("FX", ["sync failed"]),
        ("XXX", []),
        ("FkFkF", ["sync failed"]),  # a replay is no recovery of syncs
        ("FfK", ["sync failed", "replay failed", "sync recovered after 1 failure"]),
        ("ffffk", ["replay failed", "replay recovered after 4 failures"]),
        (
            "fFfFfFfFfF",
            [
                *("replay failed", "sync failed"),
                *("5 replays failed in a row", "5 syncs failed in a row"),
            ],
        ),
        (
            "F" * 25 + "K",
            [
                *("sync failed", "5 syncs failed in a row", "20 syncs failed in a row"),
                "sync recovered after 25 failures",
            ],
        ),
    ],
)
def test_the_1st_5th_and_20th_failure_and_the_recovery_are_told(
    history: str, expected: list[str]
) -> None:
    state = watched_since()
    for ended_run in runs(history):
        state = evaluated(state, ended_run.ended, [ended_run])
    assert titles(state.notifications) == expected
    at_once = evaluated(watched_since(), BEGIN + 30 * HOUR, runs(history))
    assert titles(at_once.notifications) == expected


def test_a_retry_is_the_same_failure_and_its_success_a_recovery() -> None:
    history = [
        run(1, "F"),
        run(2, "F", work="d1"),
        run(3, "F", work="d1"),
        run(4, "F"),
        run(5, "K", work="d1"),
    ]
    state = evaluated(watched_since(), BEGIN + 6 * HOUR, history)
    assert titles(state.notifications) == ["sync failed", "sync recovered after 2 failures"]


def test_a_run_is_counted_once_however_often_and_by_whomever_it_is_told() -> None:
    by_dagster = run(1, "F", run_id="", error="launch failed")
    by_report = run(1, "F")
    state = evaluated(watched_since(), BEGIN + HOUR, [by_dagster])
    state = evaluated(state, BEGIN + HOUR, [by_report, by_dagster])
    assert state.syncs.failures == 1
    assert titles(state.notifications) == ["sync failed"]


def test_what_is_heard_of_late_changes_nothing_that_came_after_it() -> None:
    state = evaluated(watched_since(), BEGIN + 5 * HOUR, [run(2, "F"), run(4, "K")])
    before = titles(state.notifications)
    state = evaluated(state, BEGIN + 5 * HOUR, [run(3, "F")])
    assert (state.syncs.failures, titles(state.notifications)) == (0, before)
    state = evaluated(watched_since(), BEGIN + 5 * HOUR, [run(4, "F")])
    state = evaluated(state, BEGIN + 5 * HOUR, [run(3, "K")])
    assert titles(state.notifications) == ["sync failed"]


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("FKFFK", []),
        ("FKFFFFFFF", ["7 syncs failed in a row"]),
        ("F" * 25, ["25 syncs failed in a row"]),
        ("FfK", ["replay failed"]),
    ],
)
def test_the_first_look_tells_only_how_things_stand(history: str, expected: list[str]) -> None:
    state = evaluated(AlertState(), BEGIN + 30 * HOUR, runs(history))
    assert titles(state.notifications) == expected


@pytest.mark.parametrize(
    ("before", "meanwhile", "expected"),
    [
        ("F", "FFFFF", ["6 syncs failed in a row"]),
        ("F", "KFK", ["sync recovered after 1 failure"]),
        ("FFFFF", "KF", ["sync failed"]),
        ("K", "FK", []),
    ],
)
def test_so_does_a_look_after_days_without_one(
    before: str, meanwhile: str, expected: list[str]
) -> None:
    history = runs(before + meanwhile)
    state = evaluated(watched_since(), BEGIN + HOUR, history[: len(before)])
    told = len(state.notifications)
    state = evaluated(state, BEGIN + timedelta(days=5), history[len(before) :])
    assert titles(state.notifications[told:]) == expected


def test_switches_keep_troubles_from_being_told() -> None:
    quiet = source_with(sync_failures=False)
    state = evaluated(watched_since(), BEGIN + 9 * HOUR, runs("FfFFFFK"), source=quiet)
    assert titles(state.notifications) == ["replay failed"]


def rows(number: int, rows_in: int, rejected: int = 0, rescued: int = 0) -> EndedRun:
    loaded = rows_in - rejected
    return run(number, "K", rows_in=rows_in, rows=loaded, rejected=rejected, rescued_cells=rescued)


@pytest.mark.parametrize(
    ("rejected", "expected"),
    [
        ([5, 5], []),
        ([6, 60, 6], ["6 % of the rows of a sync rejected"]),
        ([6, 4, 3, 6], ["6 % of the rows of a sync rejected"]),  # not under half the limit
        (
            [6, 2, 1, 9],
            [
                *("6 % of the rows of a sync rejected", "rejected rows are back to normal: 2 %"),
                "9 % of the rows of a sync rejected",
            ],
        ),
    ],
)
def test_rejected_rows_are_told_above_a_share_and_once(
    rejected: list[int], expected: list[str]
) -> None:
    source = source_with(rejected_percent=5)
    history = [rows(number, 100, many) for number, many in enumerate(rejected)]
    state = evaluated(watched_since(), BEGIN + 9 * HOUR, history, source=source)
    assert titles(state.notifications) == expected
    assert titles(evaluated(watched_since(), BEGIN + 9 * HOUR, history).notifications) == []


def test_any_rejected_row_is_too_many_where_none_is_allowed() -> None:
    history = [rows(1, 0), rows(2, 1_000_000, 1), rows(3, 1_000, 0)]
    source = source_with(rejected_percent=0)
    state = evaluated(watched_since(), BEGIN + 9 * HOUR, history, source=source)
    assert titles(state.notifications) == [
        "0 % of the rows of a sync rejected",
        "rejected rows are back to normal: 0 %",
    ]


def test_rescued_cells_are_told_above_a_share() -> None:
    history = [rows(1, 100, 0, 3), rows(2, 100, 0, 30), rows(3, 100, 0, 0)]
    source = source_with(rescued_percent=20)
    state = evaluated(watched_since(), BEGIN + 9 * HOUR, history, source=source)
    assert titles(state.notifications) == [
        "30 % as many rescued cells as rows in a sync",
        "rescued cells are back to normal: 0 %",
    ]


@pytest.mark.parametrize(
    ("history", "hours", "expected"),
    [
        ([rows(0, 10)], 5, []),
        ([rows(0, 10)], 6, ["no new rows for 6 h 0 min"]),
        ([rows(0, 10), rows(3, 0)], 6, ["no new rows for 6 h 0 min"]),
        ([rows(0, 10), rows(3, 1)], 6, []),
        ([rows(0, 0)], 48, []),  # there never were any
        ([rows(0, 10), run(3, "k", rows_in=5)], 6, ["no new rows for 6 h 0 min"]),
        ([rows(0, 10), run(3, "F")], 6, ["sync failed"]),  # that is the trouble, and told
    ],
)
def test_no_new_rows_for_hours_are_told_where_there_used_to_be_some(
    history: list[EndedRun], hours: int, expected: list[str]
) -> None:
    source = source_with(no_data_hours=6)
    state = evaluated(watched_since(), BEGIN + 4 * HOUR, history, source=source)
    for minutes in (0, 1, 2):
        now = BEGIN + hours * HOUR + timedelta(minutes=minutes)
        state = evaluated(state, now, source=source)
    assert titles(state.notifications) == expected


def test_rows_that_come_again_are_told_and_a_disabled_source_may_be_silent() -> None:
    source = source_with(no_data_hours=6)
    state = evaluated(watched_since(), BEGIN + 7 * HOUR, [rows(0, 10)], source=source)
    state = evaluated(state, BEGIN + 9 * HOUR, [rows(9, 5)], source=source)
    assert titles(state.notifications) == ["no new rows for 7 h 0 min", "new rows again"]
    disabled = source.model_copy(update={"enabled": False})
    state = evaluated(watched_since(), BEGIN + 7 * HOUR, [rows(0, 10)], source=disabled)
    assert titles(state.notifications) == []


def checked(number: int, **tables: bool) -> CheckRun:
    said = [Verdict(f"shop.{table}", "drift", ok, evidence="") for table, ok in tables.items()]
    return CheckRun(f"c{number}", BEGIN + number * HOUR, tuple(said))


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([checked(1, a=True, b=True)], []),
        ([checked(1, a=False, b=False)], ["check drift failed for 2 tables"]),
        ([checked(1, a=False), checked(2, a=False)], ["check drift failed for 1 table"]),
        (
            [checked(1, a=False), checked(2, a=False, b=False)],
            ["check drift failed for 1 table", "check drift failed for 1 table (2 in all)"],
        ),
        (
            [checked(1, a=False, b=False), checked(2, a=True), checked(3, b=True)],
            ["check drift failed for 2 tables", "check drift passes again"],
        ),
        ([checked(1, a=False), checked(1, a=False)], ["check drift failed for 1 table"]),
        ([checked(2, a=False), checked(1, a=True)], ["check drift failed for 1 table"]),  # late
    ],
)
def test_a_failed_check_is_told_until_it_changes(
    history: list[CheckRun], expected: list[str]
) -> None:
    state = watched_since()
    for one in history:
        state = evaluated(state, one.ended, check_runs=[one])
        state = evaluated(state, one.ended, check_runs=[one])
    assert titles(state.notifications) == expected


def test_checks_that_warn_have_a_switch_of_their_own() -> None:
    said = Verdict("shop.a", "small_files", passed=False, warning=True)
    one = CheckRun("c1", BEGIN + HOUR, (said,))
    for settings, expected in (
        ({}, []),
        ({"check_warnings": True}, ["check small_files warns of"]),
    ):
        state = evaluated(watched_since(), one.ended, (), [one], source_with(**settings))
        assert [title.rsplit(" ", 2)[0] for title in titles(state.notifications)] == expected


def test_silence_is_told_by_the_check_or_by_the_hours_but_not_by_both() -> None:
    said = Verdict("shop", "freshness", passed=False, warning=True)
    one, at = CheckRun("c1", BEGIN + 7 * HOUR, (said,)), BEGIN + 7 * HOUR
    for hours, expected in ((None, "check freshness warns of 1 table"), (6, "no new rows for 7 h")):
        source = source_with(check_warnings=True, no_data_hours=hours)
        state = evaluated(watched_since(), at, [rows(0, 10)], [one], source)
        assert [title[: len(expected)] for title in titles(state.notifications)] == [expected]


def test_the_state_stays_small_over_the_years() -> None:
    state = watched_since()
    for day in range(400):
        now = BEGIN + timedelta(days=day)
        ended_runs = [run(24 * day + hour, "FK"[hour % 2]) for hour in range(0, 24, 2)]
        state = evaluated(state, now + 22 * HOUR, ended_runs)
    assert len(state.seen) <= 2 * 12 * 3


@st.composite
def histories(draw: st.DrawFn) -> list[EndedRun]:
    """Syncs and replays that end in any way; a failed one may be tried again later."""
    ended_runs: list[EndedRun] = []
    for number, letter in enumerate(draw(st.text("FFFKXffkx", max_size=60))):
        tried = [one for one in ended_runs if one.replay == letter.islower() and letter in "Ff"]
        again = draw(st.sampled_from(tried)) if tried and draw(st.integers(0, 4)) == 0 else None
        work = again.work if again else f"d{number}"
        ended_runs.append(run(number, letter, work=work))
    return ended_runs


def due(history: Sequence[EndedRun]) -> list[str]:
    """What is to be told of a history, as one would count on one's fingers."""
    told: list[str] = []
    rows: dict[bool, list[str]] = {False: [], True: []}
    for ended_run in history:
        name, row = "replay" if ended_run.replay else "sync", rows[ended_run.replay]
        if ended_run.outcome is Outcome.FINISHED:
            if row:
                ending = "" if len(row) == 1 else "s"
                told.append(f"{name} recovered after {len(row)} failure{ending}")
            row.clear()
        elif ended_run.outcome is Outcome.FAILED and ended_run.work not in row:
            row.append(ended_run.work)
            if len(row) == 1:
                told.append(f"{name} failed")
            elif len(row) in (5, 20):
                told.append(f"{len(row)} {name}s failed in a row")
    return told


@given(histories(), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=9))
def test_whenever_somebody_looks_each_message_is_told_once(
    history: list[EndedRun], looks: list[tuple[int, int]]
) -> None:
    state, known = watched_since(), 0
    for upto, again in [*sorted(looks), (60, 60)]:
        # Some of what was seen before is seen once more.
        now = BEGIN + min(upto, len(history)) * HOUR
        state = evaluated(state, now, history[min(again, known) : upto])
        known = upto
    assert titles(state.notifications) == due(history)
    ids = [letter.message.id for letter in state.notifications]
    assert len(set(ids)) == len(ids)

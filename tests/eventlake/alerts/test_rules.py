"""When an alert opens and closes, for single histories and for any history."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.alerts.run_status import CheckRun, EndedRun, Verdict
from eventlake.alerts.state import AlertState
from tests.support.alerts.lakes import (
    BEGIN,
    HOUR,
    due,
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
def test_the_1st_5th_and_20th_failure_and_recovery_alert(history: str, expected: list[str]) -> None:
    state = watched_since()
    for ended_run in runs(history):
        state = evaluated(state, ended_run.ended, [ended_run])
    assert titles(state.notifications) == expected
    at_once = evaluated(watched_since(), BEGIN + 30 * HOUR, runs(history))
    assert titles(at_once.notifications) == expected


def test_a_retry_is_the_same_failure_and_its_success_a_recovery() -> None:
    history = [run(1, "F"), *(run(n, "F", work="d1") for n in (2, 3)), run(4, "F")]
    history.append(run(5, "K", work="d1"))
    state = evaluated(watched_since(), BEGIN + 6 * HOUR, history)
    assert titles(state.notifications) == ["sync failed", "sync recovered after 2 failures"]


def test_a_run_that_dagster_and_its_report_mention_counts_once() -> None:
    by_dagster = run(1, "F", run_id="", error="launch failed")
    by_report = run(1, "F")
    state = evaluated(watched_since(), BEGIN + HOUR, [by_dagster])
    state = evaluated(state, BEGIN + HOUR, [by_report, by_dagster])
    assert state.troubles["sync_failures"].facts["failures"] == 1
    assert titles(state.notifications) == ["sync failed"]


def test_a_late_run_changes_nothing_that_came_after_it() -> None:
    state = evaluated(watched_since(), BEGIN + 5 * HOUR, [run(2, "F"), run(4, "K")])
    before = titles(state.notifications)
    state = evaluated(state, BEGIN + 5 * HOUR, [run(3, "F")])
    assert (state.troubles, titles(state.notifications)) == ({}, before)
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
def test_the_first_evaluation_reports_only_open_troubles(history: str, expected: list[str]) -> None:
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
def test_so_does_one_after_a_gap_of_days(before: str, meanwhile: str, expected: list[str]) -> None:
    history = runs(before + meanwhile)
    state = evaluated(watched_since(), BEGIN + HOUR, history[: len(before)])
    known = len(state.notifications)
    state = evaluated(state, BEGIN + timedelta(days=5), history[len(before) :])
    assert titles(state.notifications[known:]) == expected


def test_switched_off_troubles_send_no_alert() -> None:
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
def test_rejected_rows_alert_once_above_a_share(rejected: list[int], expected: list[str]) -> None:
    source = source_with(rejected_percent=5)
    history = [rows(number, 100, many) for number, many in enumerate(rejected)]
    state = evaluated(watched_since(), BEGIN + 9 * HOUR, history, source=source)
    assert titles(state.notifications) == expected
    assert titles(evaluated(watched_since(), BEGIN + 9 * HOUR, history).notifications) == []


@pytest.mark.parametrize(
    ("setting", "history", "expected"),
    [
        (
            {"rejected_percent": 0},
            [rows(1, 0), rows(2, 1_000_000, 1), rows(3, 1_000, 0)],
            ["0 % of the rows of a sync rejected", "rejected rows are back to normal: 0 %"],
        ),
        (
            {"rescued_percent": 20},
            [rows(1, 100, 0, 3), rows(2, 100, 0, 30), rows(3, 100, 0, 0)],
            [
                "30 % as many rescued cells as rows in a sync",
                "rescued cells are back to normal: 0 %",
            ],
        ),
    ],
)
def test_bad_rows_alert_above_any_share_and_when_they_are_back_to_normal(
    setting: dict[str, int], history: list[EndedRun], expected: list[str]
) -> None:
    source = source_with(**setting)
    state = evaluated(watched_since(), BEGIN + 9 * HOUR, history, source=source)
    assert titles(state.notifications) == expected


@pytest.mark.parametrize(
    ("history", "hours", "expected"),
    [
        ([rows(0, 10)], 5, []),
        ([rows(0, 10)], 6, ["no new rows for 6 h 0 min"]),
        ([rows(0, 10), rows(3, 0)], 6, ["no new rows for 6 h 0 min"]),
        ([rows(0, 10), rows(3, 1)], 6, []),
        ([rows(0, 0)], 48, []),  # there never were any
        ([rows(0, 10), run(3, "k", rows_in=5)], 6, ["no new rows for 6 h 0 min"]),
        ([rows(0, 10), run(3, "F")], 6, ["sync failed"]),  # one alert for one trouble
    ],
)
def test_a_source_that_had_rows_alerts_after_hours_without_any(
    history: list[EndedRun], hours: int, expected: list[str]
) -> None:
    source = source_with(no_data_hours=6)
    state = evaluated(watched_since(), BEGIN + 4 * HOUR, history, source=source)
    for minutes in (0, 1, 2):
        now = BEGIN + hours * HOUR + timedelta(minutes=minutes)
        state = evaluated(state, now, source=source)
    assert titles(state.notifications) == expected


def test_new_rows_end_the_silence_and_a_disabled_source_sends_no_alert() -> None:
    source = source_with(no_data_hours=6)
    state = evaluated(watched_since(), BEGIN + 7 * HOUR, [rows(0, 10)], source=source)
    state = evaluated(state, BEGIN + 9 * HOUR, [rows(9, 5)], source=source)
    assert titles(state.notifications) == ["no new rows for 7 h 0 min", "new rows again"]
    disabled = source.model_copy(update={"enabled": False})
    state = evaluated(watched_since(), BEGIN + 7 * HOUR, [rows(0, 10)], source=disabled)
    assert titles(state.notifications) == []


def checked(number: int, **tables: bool) -> CheckRun:
    found = [Verdict(f"shop.{table}", "drift", ok, evidence="") for table, ok in tables.items()]
    return CheckRun(f"c{number}", BEGIN + number * HOUR, tuple(found))


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
def test_a_failed_check_alerts_once(history: list[CheckRun], expected: list[str]) -> None:
    state = watched_since()
    for one in history:
        state = evaluated(state, one.ended, check_runs=[one])
        state = evaluated(state, one.ended, check_runs=[one])
    assert titles(state.notifications) == expected


@pytest.mark.parametrize(("settings", "warned"), [({}, 0), ({"check_warnings": True}, 1)])
def test_warning_checks_have_their_own_switch(settings: dict[str, bool], warned: int) -> None:
    verdict = Verdict("shop.a", "small_files", passed=False, warning=True)
    one = CheckRun("c1", BEGIN + HOUR, (verdict,))
    state = evaluated(watched_since(), one.ended, (), [one], source_with(**settings))
    assert titles(state.notifications) == ["check small_files warns of 1 table"] * warned


@pytest.mark.parametrize(("settings", "expected"), [({}, 0), ({"silent_columns": True}, 1)])
def test_a_silent_column_has_a_switch_of_its_own(settings: dict[str, bool], expected: int) -> None:
    verdict = Verdict("shop.page", "silent_columns", passed=False, warning=True)
    one = CheckRun("c1", BEGIN + HOUR, (verdict,))
    state = evaluated(watched_since(), one.ended, (), [one], source_with(**settings))
    assert titles(state.notifications) == ["check silent_columns warns of 1 table"] * expected


def test_silence_alerts_by_the_check_or_by_the_hours_but_not_by_both() -> None:
    verdict = Verdict("shop", "freshness", passed=False, warning=True)
    one, at = CheckRun("c1", BEGIN + 7 * HOUR, (verdict,)), BEGIN + 7 * HOUR
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
    assert len(state.counted) <= 2 * 12 * 3


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


@given(histories(), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=9))
def test_evaluations_at_any_time_send_each_message_once(
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

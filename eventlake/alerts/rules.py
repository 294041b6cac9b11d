"""The alert rules: old state and new observations in, new state and messages out.

What is reported depends on the runs alone, not on the times of evaluations: three failures between
two evaluations are reported like three failures with evaluations between them. Exception: the first
evaluation, and the first one after some days, report only the current situation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial

from msgspec.structs import replace

from eventlake.alerts.run_status import CheckRun, EndedRun, Outcome, Verdict
from eventlake.alerts.state import (
    REPORTED_FAILURES,
    AlertState,
    Message,
    Notification,
    RunRef,
    Trouble,
)
from eventlake.alerts.wording import MessageWriter
from eventlake.settings.alerts import Alerts

FRESHNESS = "freshness"
"""The check of a source that covers the same problem as `no_data_hours`."""
SILENT_COLUMNS = "silent_columns"
"""The check that has an alert of its own."""
STALE_AFTER = timedelta(days=2)
MARGIN = timedelta(days=1)  # reports are stored by the day on which their run started
WATCHED = timedelta(days=30)  # longer than any run takes
_WORKS = 100  # failed runs in a row that are remembered
_EARLIER = ("an earlier problem",)  # it was reported, its end was not


@dataclass(frozen=True, slots=True)
class Observed:
    """What an evaluation has found; it may include runs that are counted already."""

    ended_runs: Sequence[EndedRun] = ()
    check_runs: Sequence[CheckRun] = ()
    under_way: dict[str, str] = field(default_factory=dict)  # run ids, and their day

    @property
    def in_order(self) -> list[EndedRun | CheckRun]:
        runs: list[EndedRun | CheckRun] = [*self.ended_runs, *self.check_runs]
        return sorted(runs, key=lambda run: (run.ended, run.id))


def is_late(state: AlertState, now: datetime) -> bool:
    """Whether the last evaluation is so old that only the current situation is reported."""
    return not state.evaluated or now.date() - date.fromisoformat(state.evaluated) > STALE_AFTER


def horizon(state: AlertState, now: datetime) -> str:
    """The first day whose reports may not be counted yet, apart from watched runs."""
    if not state.evaluated:
        return ""
    # A clock that was set back must not hide new reports.
    return f"{min(date.fromisoformat(state.evaluated), now.date()) - MARGIN}"


def state_after(
    state: AlertState, observed: Observed, alerts: Alerts, writer: MessageWriter
) -> AlertState:
    """The state with all observations counted, and notifications for what is new."""
    now, late, first = writer.now, is_late(state, writer.now), horizon(state, writer.now)
    for run in observed.in_order:
        is_old = run.day < first and state.watched.keys().isdisjoint(run.names)
        if is_old or not state.counted.keys().isdisjoint(run.names):
            continue
        state = _counted(state, run, alerts)
        state = state if late else _reported(state, alerts, writer)
    hours = alerts.no_data_hours if writer.source.enabled else None
    state = _with_troubles(state, {"no_data": _no_data_at(state, hours, now)})
    state = _reported(replace(state, evaluated=f"{now:%Y-%m-%d}"), alerts, writer)
    return _pruned(state, observed, now)


def _counted(state: AlertState, run: EndedRun | CheckRun, alerts: Alerts) -> AlertState:
    if isinstance(run, CheckRun):
        found = _checks_after(state, run, alerts)
        if found == state.troubles:
            return state  # as after nearly every run: nothing is written
    else:
        found = {kind: rule(state, run, alerts) for kind, rule in _RULES.items()}
    names = dict.fromkeys(run.names, run.day)
    state = replace(_with_troubles(state, found), counted={**state.counted, **names})
    return state if isinstance(run, CheckRun) else _with_good(state, run)


def _with_troubles(state: AlertState, found: dict[str, Trouble | None]) -> AlertState:
    """Problems that are over stay only until their end is reported."""
    troubles = {
        kind: one
        for kind, one in {**state.troubles, **found}.items()
        if one is not None and (one.points or one.reported)
    }
    return replace(state, troubles=troubles)


def _with_good(state: AlertState, run: EndedRun) -> AlertState:
    good, ref = dict(state.last_good), run_ref(run)
    kinds = [_work(run)] if run.outcome is Outcome.FINISHED else []
    kinds += ["no_data"] if run.rows_in and not run.replay else []  # replays load no new rows
    for kind in kinds:
        good[kind] = max(good.get(kind, ref), ref, key=lambda one: one.at)
    return replace(state, last_good=good)


def _work(run: EndedRun) -> str:
    return "replay_failures" if run.replay else "sync_failures"


def _opened(trouble: Trouble | None, since: datetime, run: RunRef) -> Trouble:
    """The open problem, or a new one."""
    if trouble is not None and trouble.points:
        return replace(trouble, run=run)
    return Trouble(since, run, reported=_EARLIER if trouble else ())


def _over(trouble: Trouble | None, run: RunRef) -> Trouble | None:
    return trouble and replace(trouble, run=run, points={}, works=())


def _failures_after(state: AlertState, run: EndedRun, alerts: Alerts, kind: str) -> Trouble | None:
    """Failures in a row; a run that ended before one that is counted changes nothing."""
    trouble, good = state.troubles.get(kind), state.last_good.get(kind)
    if kind != _work(run) or run.outcome is Outcome.NO_MATTER or (good and run.ended < good.at):
        return trouble
    if run.outcome is Outcome.FINISHED:
        is_past = trouble is not None and run.ended < trouble.run.at
        return trouble if is_past else _over(trouble, run_ref(run))
    trouble = _opened(trouble, run.started, run_ref(run))
    if run.work in trouble.works:
        return trouble
    failures = int(trouble.facts.get("failures", 0)) + 1
    facts = {"last_finished": good.at.isoformat()} if good else {}
    return replace(
        trouble,
        points={f"{number}": "" for number in REPORTED_FAILURES if number <= failures},
        works=(*trouble.works, run.work)[-_WORKS:],
        facts={**facts, "failures": failures},
    )


def _share_after(state: AlertState, run: EndedRun, alerts: Alerts, kind: str) -> Trouble | None:
    """The share of rejected rows or rescued cells: bad above the limit, good below half of it.

    The hysteresis avoids a message per sync around the limit. Runs without rows change nothing.
    """
    trouble, limit = state.troubles.get(kind), getattr(alerts, f"{kind}_percent")
    if limit is None:
        return None
    (_, of_all), percent = run.counts(kind).values(), run.percent(kind)
    if run.replay or not of_all:
        return trouble
    is_open = trouble is not None and bool(trouble.points)
    facts = {"percent": round(percent, 2), **run.counts(kind), "limit": limit}
    if percent > limit or (is_open and percent > limit / 2):
        trouble = replace(_opened(trouble, run.started, run_ref(run)), points={kind: ""})
    else:
        trouble = _over(trouble, run_ref(run))
    return trouble and replace(
        trouble, facts={**trouble.facts, **facts, **run.records.get(kind, {})}
    )


Rule = Callable[[AlertState, EndedRun, Alerts], Trouble | None]
_RULES: dict[str, Rule] = {
    "sync_failures": partial(_failures_after, kind="sync_failures"),
    "replay_failures": partial(_failures_after, kind="replay_failures"),
    "rejected": partial(_share_after, kind="rejected"),
    "rescued": partial(_share_after, kind="rescued"),
}
"""What a run makes of each kind of problem; `no_data` comes with time, checks with their runs."""


def _no_data_at(state: AlertState, hours: int | None, now: datetime) -> Trouble | None:
    """No new rows; while syncs fail, that is reported instead."""
    trouble, came = state.troubles.get("no_data"), state.last_good.get("no_data")
    if hours is None or came is None:
        return None
    if now - came.at < timedelta(hours=hours):
        return _over(trouble, came)
    failing = state.troubles.get("sync_failures")
    if (trouble and trouble.points) or (failing and failing.points):
        return trouble
    opened = _opened(trouble, came.at, came)
    return replace(opened, points={"no_data": ""}, facts={"hours": hours})


def _checks_after(state: AlertState, run: CheckRun, alerts: Alerts) -> dict[str, Trouble | None]:
    """All problems after a run of checks."""
    troubles: dict[str, Trouble | None] = dict(state.troubles)
    here = RunRef(run.ended, dagster_run_id=run.id)
    for verdict in run.verdicts:
        kind = f"check:{verdict.check}"
        before = troubles.get(kind)
        if before is not None and before.run.at > run.ended:
            continue  # out of order: a later run is counted already
        points = {t: e for t, e in (before.points if before else {}).items() if t != verdict.table}
        if not verdict.passed and _is_wanted(verdict, alerts):
            opened = _opened(before, run.ended, here)
            severity = "warning" if verdict.warning else "error"
            facts = {"check": verdict.check, "severity": severity, "remedy": verdict.remedy}
            points[verdict.table] = verdict.evidence
            troubles[kind] = replace(opened, points=points, facts=opened.facts or facts)
        elif before is not None:
            troubles[kind] = replace(before, run=here, points=points)
    return troubles


def _is_wanted(verdict: Verdict, alerts: Alerts) -> bool:
    if verdict.check == FRESHNESS and alerts.no_data_hours is not None:
        return False  # `no_data` reports it
    if verdict.check == SILENT_COLUMNS:
        return alerts.silent_columns
    return alerts.check_warnings if verdict.warning else alerts.failed_checks


def run_ref(run: EndedRun) -> RunRef:
    return RunRef(run.ended, run.run_id, run.dagster_run_id, run.error_code, run.error)


def _reported(state: AlertState, alerts: Alerts, writer: MessageWriter) -> AlertState:
    """Add notifications for what is new, and mark it as reported."""
    news = [
        writer.message(kind, trouble)
        for kind, trouble in state.troubles.items()
        if trouble.is_news and getattr(alerts, kind, True)
    ]
    troubles = {
        kind: replace(trouble, reported=tuple(sorted(trouble.points)))
        for kind, trouble in state.troubles.items()
        if trouble.points
    }
    return _with_messages(replace(state, troubles=troubles), news, writer)


def _with_messages(
    state: AlertState, messages: Sequence[Message], writer: MessageWriter
) -> AlertState:
    numbered = [
        Notification(replace(message, id=f"{writer.source.id}-{state.number + place}"))
        for place, message in enumerate(messages, 1)
    ]
    return replace(
        state,
        notifications=(*state.notifications, *numbered),
        number=state.number + len(numbered),
    )


def _pruned(state: AlertState, observed: Observed, now: datetime) -> AlertState:
    """Drop what is not needed again: reports before the horizon are not read."""
    first = horizon(state, now)
    counted = {name: day for name, day in state.counted.items() if day >= first}
    oldest = f"{now.date() - WATCHED}"
    watched = {
        run: day
        for run, day in {**state.watched, **observed.under_way}.items()
        if run not in counted and day >= oldest
    }
    return replace(state, counted=counted, watched=watched)

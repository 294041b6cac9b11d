"""The alert rules: old state and new observations in, new state and messages out.

What is reported depends on the runs alone, not on the times of evaluations: three failures between
two evaluations are reported like three failures with evaluations between them. Exception: the first
evaluation, and the first one after some days, report only the current situation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from msgspec.structs import replace

from eventlake.alerts.run_status import BadRecord, CheckRun, EndedRun, Outcome, Verdict
from eventlake.alerts.state import (
    STAGES,
    AlertState,
    FailedCheck,
    Message,
    Notification,
    RunRef,
    Streak,
    Trouble,
)
from eventlake.alerts.wording import MessageWriter, NewMessage
from eventlake.settings.alerts import Alerts

FRESHNESS = "freshness"
"""The check of a source that covers the same problem as `no_data_hours`."""


def checks_after(
    known: Mapping[str, FailedCheck], run: CheckRun, alerts: Alerts
) -> dict[str, FailedCheck]:
    """The checks that fail after a run, and those that have just recovered."""
    checks = dict(known)
    here = RunRef(run.ended, dagster_run_id=run.dagster_run_id)
    for verdict in run.verdicts:
        wanted = _is_wanted(verdict, alerts)
        before = checks.get(verdict.check)
        if before is not None and before.run.at > run.ended:
            continue  # out of order: a later run is counted already
        if verdict.passed or not wanted:
            if before is not None:
                failing = {t: e for t, e in before.failing.items() if t != verdict.table}
                checks[verdict.check] = _with(before, here, failing)
        else:
            before = before or FailedCheck(
                run.ended, here, warning=verdict.warning, remedy=verdict.remedy
            )
            failing = {**before.failing, verdict.table: verdict.evidence}
            checks[verdict.check] = _with(before, here, failing)
    return {name: check for name, check in checks.items() if check.failing or check.reported}


def _is_wanted(verdict: Verdict, alerts: Alerts) -> bool:
    if verdict.check == FRESHNESS and alerts.no_data_hours is not None:
        return False  # `no_data` reports it
    return alerts.check_warnings if verdict.warning else alerts.failed_checks


def _with(check: FailedCheck, run: RunRef, failing: dict[str, str]) -> FailedCheck:
    since = check.since if check.failing or not failing else run.at
    reported = check.reported if not failing else tuple(t for t in check.reported if t in failing)
    return replace(check, since=since, run=run, failing=failing, reported=reported)


def changes_nothing(known: Mapping[str, FailedCheck], run: CheckRun) -> bool:
    """Whether all checks pass, as before: true for nearly every run."""
    return not known and all(verdict.passed for verdict in run.verdicts)


def is_new_check_failure(check: FailedCheck) -> bool:
    """Whether there are failing tables to report, or a recovery."""
    return bool(check.failing.keys() - set(check.reported)) or (
        not check.failing and bool(check.reported)
    )


_WORKS = 100  # counted runs that are remembered


def streak_after(streak: Streak, ended_run: EndedRun) -> Streak:
    """The streak with one more run."""
    if ended_run.outcome is Outcome.NO_MATTER:
        return streak
    if _is_past(streak, ended_run):
        return streak
    if ended_run.outcome is Outcome.FINISHED:
        return Streak(
            since=streak.since,
            last=streak.last,
            reported=streak.reported,
            owed=streak.owed,
            overcome=streak.failures or streak.overcome,
            succeeded=ended_run.ended,
        )
    if ended_run.work in streak.works:
        return replace(streak, last=run_ref(ended_run))
    first = streak.failures == 0
    return Streak(
        failures=streak.failures + 1,
        since=ended_run.started if first else streak.since,
        works=(*streak.works, ended_run.work)[-_WORKS:],
        last=run_ref(ended_run),
        reported=0 if first else streak.reported,
        owed=streak.owed or (first and streak.reported > 0),
        succeeded=streak.succeeded,
    )


def _is_past(streak: Streak, ended_run: EndedRun) -> bool:
    """Whether a later run is counted already."""
    if streak.failures and streak.last is not None and ended_run.outcome is Outcome.FINISHED:
        return ended_run.ended < streak.last.at
    return streak.succeeded is not None and ended_run.ended < streak.succeeded


def stage(failures: int) -> int:
    """The highest stage that a number of failures has reached."""
    return max((s for s in STAGES if s <= failures), default=0)


def is_new_failure(streak: Streak) -> bool:
    """Whether a stage or a recovery is not reported yet."""
    if streak.failures:
        return stage(streak.failures) > streak.reported
    return streak.reported > 0 or streak.owed


def mark_reported(streak: Streak) -> Streak:
    return replace(streak, reported=stage(streak.failures), owed=False, overcome=0)


def run_ref(ended_run: EndedRun) -> RunRef:
    return RunRef(
        ended_run.ended,
        ended_run.run_id,
        ended_run.dagster_run_id,
        ended_run.error_code,
        ended_run.error,
    )


def rejected_after(trouble: Trouble, ended_run: EndedRun, limit: float | None) -> Trouble:
    counts = {"rejected": ended_run.rejected, "rows_in": ended_run.rows_in}
    share = ended_run.rejected_percent
    return _after(trouble, ended_run, share, limit, counts, ended_run.first_rejected)


def rescued_after(trouble: Trouble, ended_run: EndedRun, limit: float | None) -> Trouble:
    counts = {"rescued_cells": ended_run.rescued_cells, "rows": ended_run.rows}
    share = ended_run.rescued_percent
    return _after(trouble, ended_run, share, limit, counts, ended_run.first_rescued)


def _after(
    trouble: Trouble,
    ended_run: EndedRun,
    share: float,
    limit: float | None,
    counts: dict[str, int],
    record: BadRecord | None,
) -> Trouble:
    """The problem after a run: it starts above the limit and ends below half of it.

    The hysteresis avoids a message per sync around the limit. Runs without rows change nothing.
    """
    if limit is None:
        return Trouble()
    _, of_all = counts.values()
    if ended_run.replay or not of_all:
        return trouble
    if share > limit / 2 and (share > limit or trouble.since):
        since: datetime | None = trouble.since or ended_run.started
    else:
        since = None
    if since is None and trouble.since is None:
        return trouble
    found = trouble.record if record is None else _shown(record)
    numbers = {"percent": round(share, 2), **counts, "limit": limit}
    return Trouble(since, trouble.reported, run_ref(ended_run), numbers, found)


def _shown(record: BadRecord) -> dict[str, str]:
    return {
        "place": record.place,
        "reason": record.reason,
        "identifier": record.identifier,
        "content": record.content,
    }


def rows_came_after(rows_came: RunRef | None, ended_run: EndedRun) -> RunRef | None:
    """The last sync that loaded rows; replays load no new ones."""
    if ended_run.replay or not ended_run.rows_in:
        return rows_came
    return run_ref(ended_run) if rows_came is None or rows_came.at < ended_run.ended else rows_came


def no_data_at(
    trouble: Trouble, rows_came: RunRef | None, syncs: Streak, hours: int | None, now: datetime
) -> Trouble:
    """The `no_data` problem at a time; failing syncs are reported instead."""
    if hours is None or rows_came is None:
        return Trouble()
    if now - rows_came.at < timedelta(hours=hours):
        return replace(trouble, since=None, run=rows_came)
    if trouble.since or syncs.failures:
        return trouble
    return Trouble(rows_came.at, trouble.reported, rows_came, {"hours": hours})


STALE_AFTER = timedelta(days=2)
MARGIN = timedelta(days=1)  # reports are stored by the day on which their run started
WATCHED = timedelta(days=30)  # longer than any run takes
_JUDGED = 200  # Dagster runs with counted checks that are remembered


@dataclass(frozen=True, slots=True)
class Observed:
    """What an evaluation has found; it may include runs that are counted already."""

    ended_runs: Sequence[EndedRun] = ()
    check_runs: Sequence[CheckRun] = ()
    under_way: dict[str, str] = field(default_factory=dict)


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
    late, now = is_late(state, writer.now), writer.now
    reporter = _Reporter(alerts, writer)
    first = horizon(state, now)
    for ended_run in sorted(observed.ended_runs, key=lambda one: (one.ended, one.id)):
        if not _is_new(state, ended_run, first):
            continue
        state = _counted(state, ended_run, alerts)
        if not late:
            state = reporter.of_runs(state)
    for run in sorted(observed.check_runs, key=lambda one: (one.ended, one.dagster_run_id)):
        if run.dagster_run_id in state.judged or changes_nothing(state.checks, run):
            continue
        known = checks_after(state.checks, run, alerts)
        judged = (*state.judged, run.dagster_run_id)[-_JUDGED:]
        state = replace(state, checks=known, judged=judged)
        if not late:
            state = reporter.of_checks(state)
    hours = alerts.no_data_hours if writer.source.enabled else None
    quiet = no_data_at(state.no_data, state.rows_came, state.syncs, hours, now)
    state = replace(state, no_data=quiet, evaluated=f"{now:%Y-%m-%d}")
    state = reporter.of_checks(reporter.of_runs(state))
    return _pruned(state, observed, now)


def _is_new(state: AlertState, ended_run: EndedRun, first: str) -> bool:
    if ended_run.id in state.seen or ended_run.run_id in state.seen:
        return False
    return ended_run.day >= first or ended_run.run_id in state.watched


def _counted(state: AlertState, ended_run: EndedRun, alerts: Alerts) -> AlertState:
    names = dict.fromkeys(filter(None, (ended_run.id, ended_run.run_id)), ended_run.day)
    state = replace(
        state,
        seen={**state.seen, **names},
        watched={run: day for run, day in state.watched.items() if run != ended_run.run_id},
        rows_came=rows_came_after(state.rows_came, ended_run),
        rejected=rejected_after(state.rejected, ended_run, alerts.rejected_percent),
        rescued=rescued_after(state.rescued, ended_run, alerts.rescued_percent),
    )
    if ended_run.replay:
        return replace(state, replays=streak_after(state.replays, ended_run))
    return replace(state, syncs=streak_after(state.syncs, ended_run))


def _pruned(state: AlertState, observed: Observed, now: datetime) -> AlertState:
    """Drop what is not needed again: reports before the horizon are not read."""
    first = horizon(state, now)
    seen = {name: day for name, day in state.seen.items() if day >= first}
    oldest = f"{now.date() - WATCHED}"
    watched = {
        run: day
        for run, day in {**state.watched, **observed.under_way}.items()
        if run not in seen and day >= oldest
    }
    return replace(state, seen=seen, watched=watched)


@dataclass(frozen=True, slots=True)
class _Reporter:
    """Adds notifications for what is new, and marks it as reported."""

    alerts: Alerts
    writer: MessageWriter

    def of_runs(self, state: AlertState) -> AlertState:
        writer, messages = self.writer, list[NewMessage]()
        syncs, replays = state.syncs, state.replays
        no_data, rejected, rescued = state.no_data, state.rejected, state.rescued
        for work, streak, wanted in (
            ("sync", syncs, self.alerts.sync_failures),
            ("replay", replays, self.alerts.replay_failures),
        ):
            if is_new_failure(streak) and wanted:
                say = writer.failing if streak.failures else writer.recovered
                messages.append(say(f"{work}_failures", work, streak))
        if _is_unreported(no_data):
            messages.append(
                writer.no_data(no_data) if no_data.since else writer.data_again(no_data)
            )
        for kind, trouble in (("rejected", rejected), ("rescued", rescued)):
            if _is_unreported(trouble):
                say_share = writer.share if trouble.since else writer.share_over
                messages.append(say_share(kind, trouble))
        state = replace(
            state,
            syncs=mark_reported(syncs) if is_new_failure(syncs) else syncs,
            replays=mark_reported(replays) if is_new_failure(replays) else replays,
            no_data=_marked(no_data),
            rejected=_marked(rejected),
            rescued=_marked(rescued),
        )
        return _with_messages(state, messages, self.writer)

    def of_checks(self, state: AlertState) -> AlertState:
        known = state.checks.items()
        messages = [message for name, check in known for message in self._of_check(name, check)]
        reported = {n: replace(c, reported=tuple(sorted(c.failing))) for n, c in known if c.failing}
        return _with_messages(replace(state, checks=reported), messages, self.writer)

    def _of_check(self, name: str, check: FailedCheck) -> Iterator[NewMessage]:
        if is_new_check_failure(check):
            say = self.writer.check if check.failing else self.writer.check_over
            yield say(name, check)


def _is_unreported(trouble: Trouble) -> bool:
    return (trouble.since is None) != (trouble.reported is None)


def _marked(trouble: Trouble) -> Trouble:
    return replace(trouble, reported=trouble.since) if _is_unreported(trouble) else trouble


def _with_messages(
    state: AlertState, messages: Sequence[NewMessage], writer: MessageWriter
) -> AlertState:
    notifications, number = list(state.notifications), state.number
    for message in messages:
        number += 1
        notifications.append(
            Notification(
                Message(
                    f"{writer.source.id}-{number}",
                    writer.source.slug,
                    message.kind,
                    message.title,
                    message.text,
                    writer.now,
                    message.over,
                    dict(message.fields),
                )
            )
        )
    return replace(state, notifications=tuple(notifications), number=number)

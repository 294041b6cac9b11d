"""The rule: from what was known and what has happened since to what is known and to be told.

What is told depends on the runs alone, not on when somebody looked: three failures between two
looks are told like three failures with looks between. The exception is the first look in days, or
ever: then old news is no news, and only how things stand at its end is told.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from msgspec.structs import replace

from eventlake.alerts.run_status import Attempt, BadRecord, CheckRun, Outcome, Verdict
from eventlake.alerts.state import (
    STAGES,
    AlertState,
    Ended,
    FailedCheck,
    Letter,
    Message,
    Streak,
    Trouble,
)
from eventlake.alerts.wording import Draft, Words
from eventlake.settings.alerts import Alerts

SILENCE = "freshness"
"""The check of a source that says the same as `no_data_hours`, by another measure."""


def checks_after(
    known: Mapping[str, FailedCheck], run: CheckRun, alerts: Alerts
) -> dict[str, FailedCheck]:
    """The checks that fail after a run, and those that have just come to pass."""
    checks = dict(known)
    here = Ended(run.ended, dagster_run_id=run.dagster_run_id)
    for verdict in run.verdicts:
        wanted = _is_wanted(verdict, alerts)
        before = checks.get(verdict.check)
        if before is not None and before.run.at > run.ended:
            continue  # heard of late: a run after it has judged
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
    return {name: check for name, check in checks.items() if check.failing or check.told}


def _is_wanted(verdict: Verdict, alerts: Alerts) -> bool:
    if verdict.check == SILENCE and alerts.no_data_hours is not None:
        return False  # it is told already that no rows come
    return alerts.check_warnings if verdict.warning else alerts.failed_checks


def _with(check: FailedCheck, run: Ended, failing: dict[str, str]) -> FailedCheck:
    since = check.since if check.failing or not failing else run.at
    told = check.told if not failing else tuple(t for t in check.told if t in failing)
    return replace(check, since=since, run=run, failing=failing, told=told)


def says_nothing(known: Mapping[str, FailedCheck], run: CheckRun) -> bool:
    """As nearly every run: all is well, as it was."""
    return not known and all(verdict.passed for verdict in run.verdicts)


def is_new_check_failure(check: FailedCheck) -> bool:
    """Tables that were not told, or none that fails any more."""
    return bool(check.failing.keys() - set(check.told)) or (not check.failing and bool(check.told))


_WORKS = 100  # of which is known that they are counted


def after(streak: Streak, attempt: Attempt) -> Streak:
    """The streak with one more run, whether or not anything is told of it."""
    if attempt.outcome is Outcome.NO_MATTER:
        return streak
    if _is_past(streak, attempt):
        return streak
    if attempt.outcome is Outcome.FINISHED:
        return Streak(
            since=streak.since,
            last=streak.last,
            told=streak.told,
            owed=streak.owed,
            overcome=streak.failures or streak.overcome,
            succeeded=attempt.ended,
        )
    if attempt.work in streak.works:
        return replace(streak, last=ended(attempt))
    first = streak.failures == 0
    return Streak(
        failures=streak.failures + 1,
        since=attempt.started if first else streak.since,
        works=(*streak.works, attempt.work)[-_WORKS:],
        last=ended(attempt),
        told=0 if first else streak.told,
        owed=streak.owed or (first and streak.told > 0),
        succeeded=streak.succeeded,
    )


def _is_past(streak: Streak, attempt: Attempt) -> bool:
    """Whether it is heard of only now, and what came after it has been counted."""
    if streak.failures and streak.last is not None and attempt.outcome is Outcome.FINISHED:
        return attempt.ended < streak.last.at
    return streak.succeeded is not None and attempt.ended < streak.succeeded


def stage(failures: int) -> int:
    """The last of the stages that so many failures have reached."""
    return max((s for s in STAGES if s <= failures), default=0)


def is_new_failure(streak: Streak) -> bool:
    """Whether there is something to tell that has not been told."""
    if streak.failures:
        return stage(streak.failures) > streak.told
    return streak.told > 0 or streak.owed


def told(streak: Streak) -> Streak:
    return replace(streak, told=stage(streak.failures), owed=False, overcome=0)


def ended(attempt: Attempt) -> Ended:
    return Ended(
        attempt.ended, attempt.run_id, attempt.dagster_run_id, attempt.error_code, attempt.error
    )


def rejected_after(trouble: Trouble, attempt: Attempt, limit: float | None) -> Trouble:
    counts = {"rejected": attempt.rejected, "rows_in": attempt.rows_in}
    share = attempt.rejected_percent
    return _after(trouble, attempt, share, limit, counts, attempt.first_rejected)


def rescued_after(trouble: Trouble, attempt: Attempt, limit: float | None) -> Trouble:
    counts = {"rescued_cells": attempt.rescued_cells, "rows": attempt.rows}
    share = attempt.rescued_percent
    return _after(trouble, attempt, share, limit, counts, attempt.first_rescued)


def _after(
    trouble: Trouble,
    attempt: Attempt,
    share: float,
    limit: float | None,
    counts: dict[str, int],
    record: BadRecord | None,
) -> Trouble:
    """Over only at half the limit: around the limit itself it would come and go with every sync.

    The counts are some of all: where there are none at all, nothing can be said.
    """
    if limit is None:
        return Trouble()
    _, of_all = counts.values()
    if attempt.replay or not of_all:
        return trouble
    if share > limit / 2 and (share > limit or trouble.since):
        since: datetime | None = trouble.since or attempt.started
    else:
        since = None
    if since is None and trouble.since is None:
        return trouble
    found = trouble.record if record is None else _shown(record)
    numbers = {"percent": round(share, 2), **counts, "limit": limit}
    return Trouble(since, trouble.told, ended(attempt), numbers, found)


def _shown(record: BadRecord) -> dict[str, str]:
    return {
        "place": record.place,
        "reason": record.reason,
        "identifier": record.identifier,
        "content": record.content,
    }


def rows_came_after(rows_came: Ended | None, attempt: Attempt) -> Ended | None:
    """The last sync that brought rows; replays bring none that are new."""
    if attempt.replay or not attempt.rows_in:
        return rows_came
    return ended(attempt) if rows_came is None or rows_came.at < attempt.ended else rows_came


def silence_at(
    trouble: Trouble, rows_came: Ended | None, syncs: Streak, hours: int | None, now: datetime
) -> Trouble:
    """While syncs fail, that is the trouble, and it is told."""
    if hours is None or rows_came is None:
        return Trouble()
    if now - rows_came.at < timedelta(hours=hours):
        return replace(trouble, since=None, run=rows_came)
    if trouble.since or syncs.failures:
        return trouble
    return Trouble(rows_came.at, trouble.told, rows_came, {"hours": hours})


OLD_NEWS = timedelta(days=2)
MARGIN = timedelta(days=1)  # a report lies with the day its run began on
WATCHED = timedelta(days=30)  # longer than any run goes on
_JUDGED = 200  # runs of Dagster of which is known that their checks are counted


@dataclass(frozen=True, slots=True)
class Happened:
    """What a look has found; runs may be among it that are counted already."""

    attempts: Sequence[Attempt] = ()
    check_runs: Sequence[CheckRun] = ()
    under_way: dict[str, str] = field(default_factory=dict)


def is_late(state: AlertState, now: datetime) -> bool:
    """Whether nobody has looked for so long that what happened meanwhile is no news."""
    return not state.looked or now.date() - date.fromisoformat(state.looked) > OLD_NEWS


def horizon(state: AlertState, now: datetime) -> str:
    """The first day whose reports may not be counted yet, but for those of runs watched."""
    if not state.looked:
        return ""
    # A clock that went back after a look must not hide what comes now.
    return f"{min(date.fromisoformat(state.looked), now.date()) - MARGIN}"


def state_after(state: AlertState, happened: Happened, alerts: Alerts, words: Words) -> AlertState:
    """The state once all that happened is counted, with letters for what is to be told of it."""
    late, now = is_late(state, words.now), words.now
    told = _Told(alerts, words)
    first = horizon(state, now)
    for attempt in sorted(happened.attempts, key=lambda one: (one.ended, one.id)):
        if not _is_new(state, attempt, first):
            continue
        state = _counted(state, attempt, alerts)
        if not late:
            state = told.of_runs(state)
    for run in sorted(happened.check_runs, key=lambda one: (one.ended, one.dagster_run_id)):
        if run.dagster_run_id in state.judged or says_nothing(state.checks, run):
            continue
        known = checks_after(state.checks, run, alerts)
        judged = (*state.judged, run.dagster_run_id)[-_JUDGED:]
        state = replace(state, checks=known, judged=judged)
        if not late:
            state = told.of_checks(state)
    hours = alerts.no_data_hours if words.source.enabled else None
    quiet = silence_at(state.silence, state.rows_came, state.syncs, hours, now)
    state = replace(state, silence=quiet, looked=f"{now:%Y-%m-%d}")
    state = told.of_checks(told.of_runs(state))
    return _pruned(state, happened, now)


def _is_new(state: AlertState, attempt: Attempt, first: str) -> bool:
    if attempt.id in state.seen or attempt.run_id in state.seen:
        return False
    return attempt.day >= first or attempt.run_id in state.watched


def _counted(state: AlertState, attempt: Attempt, alerts: Alerts) -> AlertState:
    names = dict.fromkeys(filter(None, (attempt.id, attempt.run_id)), attempt.day)
    state = replace(
        state,
        seen={**state.seen, **names},
        watched={run: day for run, day in state.watched.items() if run != attempt.run_id},
        rows_came=rows_came_after(state.rows_came, attempt),
        rejected=rejected_after(state.rejected, attempt, alerts.rejected_percent),
        rescued=rescued_after(state.rescued, attempt, alerts.rescued_percent),
    )
    if attempt.replay:
        return replace(state, replays=after(state.replays, attempt))
    return replace(state, syncs=after(state.syncs, attempt))


def _pruned(state: AlertState, happened: Happened, now: datetime) -> AlertState:
    """Without what cannot come again: reports before the horizon are read no more."""
    first = horizon(state, now)
    seen = {name: day for name, day in state.seen.items() if day >= first}
    oldest = f"{now.date() - WATCHED}"
    watched = {
        run: day
        for run, day in {**state.watched, **happened.under_way}.items()
        if run not in seen and day >= oldest
    }
    return replace(state, seen=seen, watched=watched)


@dataclass(frozen=True, slots=True)
class _Told:
    """Writes letters for what is new, and notes that it is told."""

    alerts: Alerts
    words: Words

    def of_runs(self, state: AlertState) -> AlertState:
        words, drafts = self.words, list[Draft]()
        syncs, replays = state.syncs, state.replays
        silent, rejected, rescued = state.silence, state.rejected, state.rescued
        for work, streak, wanted in (
            ("sync", syncs, self.alerts.sync_failures),
            ("replay", replays, self.alerts.replay_failures),
        ):
            if is_new_failure(streak) and wanted:
                say = words.failing if streak.failures else words.recovered
                drafts.append(say(f"{work}_failures", work, streak))
        if _is_news(silent):
            drafts.append(words.silent(silent) if silent.since else words.rows_again(silent))
        for kind, trouble in (("rejected", rejected), ("rescued", rescued)):
            if _is_news(trouble):
                say_share = words.share if trouble.since else words.share_over
                drafts.append(say_share(kind, trouble))
        state = replace(
            state,
            syncs=told(syncs) if is_new_failure(syncs) else syncs,
            replays=told(replays) if is_new_failure(replays) else replays,
            silence=_told(silent),
            rejected=_told(rejected),
            rescued=_told(rescued),
        )
        return _with_letters(state, drafts, self.words)

    def of_checks(self, state: AlertState) -> AlertState:
        known = state.checks.items()
        drafts = [draft for name, check in known for draft in self._of_check(name, check)]
        told = {n: replace(c, told=tuple(sorted(c.failing))) for n, c in known if c.failing}
        return _with_letters(replace(state, checks=told), drafts, self.words)

    def _of_check(self, name: str, check: FailedCheck) -> Iterator[Draft]:
        if is_new_check_failure(check):
            say = self.words.check if check.failing else self.words.check_over
            yield say(name, check)


def _is_news(trouble: Trouble) -> bool:
    return (trouble.since is None) != (trouble.told is None)


def _told(trouble: Trouble) -> Trouble:
    return replace(trouble, told=trouble.since) if _is_news(trouble) else trouble


def _with_letters(state: AlertState, drafts: Sequence[Draft], words: Words) -> AlertState:
    letters, number = list(state.letters), state.number
    for draft in drafts:
        number += 1
        letters.append(
            Letter(
                Message(
                    f"{words.source.id}-{number}",
                    words.source.slug,
                    draft.kind,
                    draft.title,
                    draft.text,
                    words.now,
                    draft.over,
                    dict(draft.fields),
                )
            )
        )
    return replace(state, letters=tuple(letters), number=number)

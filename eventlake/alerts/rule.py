"""The rule: from what was known and what has happened since to what is known and to be told.

What is told depends on the runs alone, not on when somebody looked: three failures between two
looks are told like three failures with looks between. The exception is the first look in days, or
ever: then old news is no news, and only how things stand at its end is told.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from msgspec.structs import replace

from eventlake.alerts import checks, shares, silence, streaks
from eventlake.alerts.attempt import Attempt, CheckRun
from eventlake.alerts.draft import Draft
from eventlake.alerts.message import Letter, Message
from eventlake.alerts.state import AlertState, FailedCheck, Trouble
from eventlake.alerts.wording import Words
from eventlake.settings.models.alerts import Alerts

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
        if run.dagster_run_id in state.judged or checks.says_nothing(state.checks, run):
            continue
        known = checks.checks_after(state.checks, run, alerts)
        judged = (*state.judged, run.dagster_run_id)[-_JUDGED:]
        state = replace(state, checks=known, judged=judged)
        if not late:
            state = told.of_checks(state)
    hours = alerts.no_data_hours if words.source.enabled else None
    quiet = silence.silence_at(state.silence, state.rows_came, state.syncs, hours, now)
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
        rows_came=silence.rows_came_after(state.rows_came, attempt),
        rejected=shares.rejected_after(state.rejected, attempt, alerts.rejected_percent),
        rescued=shares.rescued_after(state.rescued, attempt, alerts.rescued_percent),
    )
    if attempt.replay:
        return replace(state, replays=streaks.after(state.replays, attempt))
    return replace(state, syncs=streaks.after(state.syncs, attempt))


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
            if streaks.is_news(streak) and wanted:
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
            syncs=streaks.told(syncs) if streaks.is_news(syncs) else syncs,
            replays=streaks.told(replays) if streaks.is_news(replays) else replays,
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
        if checks.is_news(check):
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

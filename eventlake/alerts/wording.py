"""The words of messages: what, since when, how bad, what to do next, and where to look."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec.structs import replace

from eventlake.alerts.state import STAGES, AlertState, Ended, FailedCheck, Streak, Trouble
from eventlake.settings.models import Source

_LENGTH = 1_500  # characters of what others said that are told


@dataclass(frozen=True)
class Draft:
    """A message before it has a number."""

    kind: str
    title: str
    lines: tuple[str, ...]
    fields: Mapping[str, str | int | float] = field(default_factory=dict)
    over: bool = False

    @property
    def text(self) -> str:
        return "\n".join(line for line in self.lines if line)


@dataclass(frozen=True)
class Drafting:
    """Drafts about one source; `ui` is where people see Dagster's pages."""

    source: Source
    now: datetime
    ui: str | None = None

    def draft(
        self,
        kind: str,
        title: str,
        *lines: str,
        run: Ended | None = None,
        over: bool = False,
        since: datetime | None = None,
        about: Mapping[str, str | int | float] | None = None,
    ) -> Draft:
        link = self._link(run) if run else ""
        facts: dict[str, str | int | float] = {"source_id": self.source.id, **(about or {})}
        if since is not None:
            facts["since"] = since.astimezone(UTC).isoformat(timespec="seconds")
        if run is not None:
            facts |= {"run_id": run.run_id, "dagster_run_id": run.dagster_run_id, "link": link}
        whole = f"{self.source.slug}: {title}"
        shown = f"Run: {link}" if link else ""
        fields = {name: value for name, value in facts.items() if value != ""}
        return Draft(kind, whole, (whole, *lines, shown), fields, over)

    def _link(self, run: Ended) -> str:
        if self.ui and run.dagster_run_id:
            return f"{self.ui}/runs/{run.dagster_run_id}"
        if run.run_id:
            return f"`datalake reports --run {run.run_id}`"
        return f"Dagster run {run.dagster_run_id}" if run.dagster_run_id else ""


def cut(text: str) -> str:
    told = " ".join(text.split())
    return told if len(told) <= _LENGTH else f"{told[:_LENGTH]} …"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def span(now: datetime, since: datetime) -> str:
    minutes = max(int((now - since).total_seconds() // 60), 0)
    days, hours = divmod(minutes // 60, 24)
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


_TABLES = 5  # that are named
_REMEDIES = {
    "Segment.InsufficientPermissions": "Grant what the error names, then try `datalake check`.",
    "Segment.InvalidSettings": "Correct what the error names in lake.yaml, then try "
    "`datalake check`.",
}


@dataclass(frozen=True)
class Words(Drafting):
    """What is said of each kind of trouble, and of its end."""

    def failing(self, kind: str, work: str, streak: Streak) -> Draft:
        last, since = _known(streak.last), streak.since or self.now
        count = streak.failures
        title = f"{work} failed" if count == 1 else f"{plural(count, work)} failed in a row"
        more = [s for s in STAGES if s > count]
        told_next = f"at the {more[0]}th failure in a row and" if more else "only"
        return self.draft(
            kind,
            title,
            f"Since: {moment(since)}, {span(self.now, since)}",
            _succeeded(work, streak),
            f"Error: {last.error_code or 'Segment.Internal'}: {cut(last.error)}",
            f"What to do: {self._remedy(work, last)}",
            f"The next message comes {told_next} when it recovers.",
            run=last,
            since=since,
            about={
                "failures": count,
                "error_code": last.error_code or "Segment.Internal",
                "error": cut(last.error),
            },
        )

    def recovered(self, kind: str, work: str, streak: Streak) -> Draft:
        at, since = streak.succeeded or self.now, streak.since or self.now
        after = plural(streak.overcome, "failure")
        return self.draft(
            kind,
            f"{work} recovered after {after}",
            f"Failed since: {moment(since)}, for {span(at, since)}",
            f"Works again since: {moment(at)}",
            "What to do: nothing. What had waited is loaded by this sync and the next."
            if work == "sync"
            else "What to do: nothing.",
            over=True,
            since=since,
            about={"failures": streak.overcome},
        )

    def silent(self, trouble: Trouble) -> Draft:
        since, run = trouble.since or self.now, _known(trouble.run)
        return self.draft(
            "no_data",
            f"no new rows for {span(self.now, since)}",
            f"Since: {moment(since)}, when a sync last brought rows",
            f"Allowed: {trouble.numbers.get('hours', 0):.0f} h (alerts.no_data_hours)",
            "What to do: see whether files still come into the archive "
            f"({self.source.raw}) and whether syncs run: `datalake status`, `datalake check`.",
            run=run,
            since=since,
            about=trouble.numbers,
        )

    def rows_again(self, trouble: Trouble) -> Draft:
        run, since = _known(trouble.run), trouble.told or self.now
        return self.draft(
            "no_data",
            "rows come again",
            f"None came since: {moment(since)}, for {span(run.at, since)}",
            f"Again since: {moment(run.at)}",
            "What to do: nothing.",
            run=run,
            over=True,
            since=since,
        )

    def share(self, kind: str, trouble: Trouble) -> Draft:
        numbers, run, since = trouble.numbers, _known(trouble.run), trouble.since or self.now
        percent = f"{numbers['percent']:g} %"
        if kind == "rejected":
            title = f"{percent} of the rows of a sync rejected"
            bad = f"{numbers['rejected']:,.0f} of {numbers['rows_in']:,.0f} rows"
            to_do = f"`datalake records --run {run.run_id} --status rejected` lists them with their"
            to_do += " reasons. When the sender or a limit is corrected, a replay loads them."
        else:
            title = f"{percent} as many rescued cells as rows in a sync"
            bad = f"{numbers['rescued_cells']:,.0f} cells in {numbers['rows']:,.0f} rows"
            to_do = f"`datalake reports --run {run.run_id}` names the tables; nothing is lost, see "
            to_do += "their column rescued_data. `datalake retype` and a replay give a column "
            to_do += "another type."
        limit = f"more than {numbers['limit']:g} % (alerts.{kind}_percent)"
        return self.draft(
            kind,
            title,
            f"Since: the sync of {moment(since)}",
            f"How bad: {bad}, {limit}",
            *_record(trouble.record),
            f"What to do: {to_do}",
            run=run,
            since=since,
            about={**numbers, **{f"record_{name}": text for name, text in trouble.record.items()}},
        )

    def share_over(self, kind: str, trouble: Trouble) -> Draft:
        numbers, since = trouble.numbers, trouble.told or self.now
        what = "rejected rows" if kind == "rejected" else "rescued cells"
        return self.draft(
            kind,
            f"{what} are few again: {numbers['percent']:g} %",
            f"They were many since: the sync of {moment(since)}",
            "What to do: nothing for the rows to come; see the message before for those that came.",
            run=trouble.run,
            over=True,
            since=since,
            about=numbers,
        )

    def check(self, name: str, check: FailedCheck) -> Draft:
        new = sorted(check.failing.keys() - set(check.told))
        named = ", ".join(new[:_TABLES]) + (" …" if len(new) > _TABLES else "")
        more = f" ({len(check.failing)} in all)" if len(check.failing) > len(new) else ""
        verb = "warns of" if check.warning else "failed for"
        return self.draft(
            f"check:{name}",
            f"check {name} {verb} {plural(len(new), 'table')}{more}",
            f"Since: {moment(check.since)}",
            f"Tables: {named}",
            f"First: {new[0]}: {cut(check.failing[new[0]]) or 'no numbers'}" if new else "",
            f"What to do: {cut(check.remedy) or 'open the check in Dagster for its numbers.'}",
            run=check.run,
            since=check.since,
            about={"check": name, "tables": len(check.failing)},
        )

    def check_over(self, name: str, check: FailedCheck) -> Draft:
        return self.draft(
            f"check:{name}",
            f"check {name} passes again",
            f"It did not since: {moment(check.since)}, for {plural(len(check.told), 'table')}",
            "What to do: nothing.",
            run=check.run,
            over=True,
            since=check.since,
            about={"check": name},
        )

    def _remedy(self, work: str, run: Ended) -> str:
        again = (
            "The next sync tries again by itself and goes on from what is published."
            if work == "sync"
            else "Launch it again: it goes on after the last day that is published."
        )
        usual = "`datalake status` and the run's log say more."
        return f"{_REMEDIES.get(run.error_code, usual)} {again}"


def _known(run: Ended | None) -> Ended:
    return run or Ended(datetime.fromtimestamp(0, UTC))


def _record(record: Mapping[str, str]) -> list[str]:
    if not record:
        return []
    who = f" ({record['identifier']})" if record.get("identifier") else ""
    lines = [f"First bad record: {record['place']}{who}: {record['reason']}"]
    return [*lines, f"  {record['content']}"] if record.get("content") else lines


def _succeeded(work: str, streak: Streak) -> str:
    if streak.succeeded is None:
        return ""
    return f"Last {work} that finished: {moment(streak.succeeded)}"


@dataclass(frozen=True, slots=True)
class OpenTrouble:
    """Something that is wrong; `title` says it as a message would."""

    kind: str
    title: str
    since: datetime


def open_troubles(state: AlertState, words: Words) -> list[OpenTrouble]:
    """By how long they last."""
    found: list[tuple[datetime | None, Draft]] = []
    for work, streak in (("sync", state.syncs), ("replay", state.replays)):
        if streak.failures:
            found.append((streak.since, words.failing(f"{work}_failures", work, streak)))
    if state.silence.since:
        found.append((state.silence.since, words.silent(state.silence)))
    for kind, trouble in (("rejected", state.rejected), ("rescued", state.rescued)):
        if trouble.since:
            found.append((trouble.since, words.share(kind, trouble)))
    for name, check in state.checks.items():
        if check.failing:
            found.append((check.since, words.check(name, replace(check, told=()))))
    troubles = [OpenTrouble(d.kind, d.title, since or words.now) for since, d in found]
    return sorted(troubles, key=lambda trouble: trouble.since)

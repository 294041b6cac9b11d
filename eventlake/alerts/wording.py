"""Texts of alert messages: what happened, since when, how bad it is, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec.structs import replace

from eventlake.alerts.state import STAGES, AlertState, FailedCheck, RunRef, Streak, Trouble
from eventlake.settings.models import Source

_LENGTH = 1_500  # characters of errors and evidence that are shown


@dataclass(frozen=True)
class NewMessage:
    """A message that has no id yet."""

    kind: str
    title: str
    lines: tuple[str, ...]
    fields: Mapping[str, str | int | float] = field(default_factory=dict)
    over: bool = False

    @property
    def text(self) -> str:
        return "\n".join(line for line in self.lines if line)


def cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LENGTH else f"{flat[:_LENGTH]} …"


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
class MessageWriter:
    """Writes the messages about a source; `ui` is the URL of Dagster's webserver."""

    source: Source
    now: datetime
    ui: str | None = None

    def _new(
        self,
        kind: str,
        title: str,
        *lines: str,
        run: RunRef | None = None,
        over: bool = False,
        since: datetime | None = None,
        about: Mapping[str, str | int | float] | None = None,
    ) -> NewMessage:
        link = self._link(run) if run else ""
        facts: dict[str, str | int | float] = {"source_id": self.source.id, **(about or {})}
        if since is not None:
            facts["since"] = since.astimezone(UTC).isoformat(timespec="seconds")
        if run is not None:
            facts |= {"run_id": run.run_id, "dagster_run_id": run.dagster_run_id, "link": link}
        whole = f"{self.source.slug}: {title}"
        shown = f"Run: {link}" if link else ""
        fields = {name: value for name, value in facts.items() if value != ""}
        return NewMessage(kind, whole, (whole, *lines, shown), fields, over)

    def _link(self, run: RunRef) -> str:
        if self.ui and run.dagster_run_id:
            return f"{self.ui}/runs/{run.dagster_run_id}"
        if run.run_id:
            return f"`datalake reports --run {run.run_id}`"
        return f"Dagster run {run.dagster_run_id}" if run.dagster_run_id else ""

    def failing(self, kind: str, work: str, streak: Streak) -> NewMessage:
        last, since = _known(streak.last), streak.since or self.now
        count = streak.failures
        title = f"{work} failed" if count == 1 else f"{plural(count, work)} failed in a row"
        more = [s for s in STAGES if s > count]
        next_report = f"at the {more[0]}th failure in a row and" if more else "only"
        return self._new(
            kind,
            title,
            f"Since: {moment(since)}, {span(self.now, since)}",
            _succeeded(work, streak),
            f"Error: {last.error_code or 'Segment.Internal'}: {cut(last.error)}",
            f"What to do: {self._remedy(work, last)}",
            f"Next message: {next_report} when it recovers.",
            run=last,
            since=since,
            about={
                "failures": count,
                "error_code": last.error_code or "Segment.Internal",
                "error": cut(last.error),
            },
        )

    def recovered(self, kind: str, work: str, streak: Streak) -> NewMessage:
        at, since = streak.succeeded or self.now, streak.since or self.now
        after = plural(streak.overcome, "failure")
        return self._new(
            kind,
            f"{work} recovered after {after}",
            f"Failed since: {moment(since)}, for {span(at, since)}",
            f"Recovered: {moment(at)}",
            "What to do: nothing. This sync and the next load the files that were waiting."
            if work == "sync"
            else "What to do: nothing.",
            over=True,
            since=since,
            about={"failures": streak.overcome},
        )

    def no_data(self, trouble: Trouble) -> NewMessage:
        since, run = trouble.since or self.now, _known(trouble.run)
        return self._new(
            "no_data",
            f"no new rows for {span(self.now, since)}",
            f"Since: {moment(since)}, the last sync that loaded rows",
            f"Allowed: {trouble.numbers.get('hours', 0):.0f} h (alerts.no_data_hours)",
            "What to do: check whether new files arrive in the archive "
            f"({self.source.raw}) and whether syncs run: `datalake status`, `datalake check`.",
            run=run,
            since=since,
            about=trouble.numbers,
        )

    def data_again(self, trouble: Trouble) -> NewMessage:
        run, since = _known(trouble.run), trouble.reported or self.now
        return self._new(
            "no_data",
            "new rows again",
            f"No rows since: {moment(since)}, for {span(run.at, since)}",
            f"Recovered: {moment(run.at)}",
            "What to do: nothing.",
            run=run,
            over=True,
            since=since,
        )

    def share(self, kind: str, trouble: Trouble) -> NewMessage:
        numbers, run, since = trouble.numbers, _known(trouble.run), trouble.since or self.now
        percent = f"{numbers['percent']:g} %"
        if kind == "rejected":
            title = f"{percent} of the rows of a sync rejected"
            bad = f"{numbers['rejected']:,.0f} of {numbers['rows_in']:,.0f} rows"
            to_do = f"`datalake records --run {run.run_id} --status rejected` lists them with their"
            to_do += " reasons. Correct the sender or the limit, then replay to load them."
        else:
            title = f"{percent} as many rescued cells as rows in a sync"
            bad = f"{numbers['rescued_cells']:,.0f} cells in {numbers['rows']:,.0f} rows"
            to_do = f"`datalake reports --run {run.run_id}` names the tables; nothing is lost, see "
            to_do += "their column rescued_data. `datalake retype` and a replay give a column "
            to_do += "another type."
        limit = f"more than {numbers['limit']:g} % (alerts.{kind}_percent)"
        return self._new(
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

    def share_over(self, kind: str, trouble: Trouble) -> NewMessage:
        numbers, since = trouble.numbers, trouble.reported or self.now
        what = "rejected rows" if kind == "rejected" else "rescued cells"
        return self._new(
            kind,
            f"{what} are back to normal: {numbers['percent']:g} %",
            f"Above the limit since: the sync of {moment(since)}",
            "What to do: nothing for new rows; for earlier rows see the previous message.",
            run=trouble.run,
            over=True,
            since=since,
            about=numbers,
        )

    def check(self, name: str, check: FailedCheck) -> NewMessage:
        new = sorted(check.failing.keys() - set(check.reported))
        named = ", ".join(new[:_TABLES]) + (" …" if len(new) > _TABLES else "")
        more = f" ({len(check.failing)} in all)" if len(check.failing) > len(new) else ""
        verb = "warns of" if check.warning else "failed for"
        return self._new(
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

    def check_over(self, name: str, check: FailedCheck) -> NewMessage:
        return self._new(
            f"check:{name}",
            f"check {name} passes again",
            f"Failed since: {moment(check.since)}, for {plural(len(check.reported), 'table')}",
            "What to do: nothing.",
            run=check.run,
            over=True,
            since=check.since,
            about={"check": name},
        )

    def _remedy(self, work: str, run: RunRef) -> str:
        again = (
            "The next sync retries automatically and continues after what is published."
            if work == "sync"
            else "Launch it again: it continues after the last published day."
        )
        usual = "See `datalake status` and the log of the run."
        return f"{_REMEDIES.get(run.error_code, usual)} {again}"


def _known(run: RunRef | None) -> RunRef:
    return run or RunRef(datetime.fromtimestamp(0, UTC))


def _record(record: Mapping[str, str]) -> list[str]:
    if not record:
        return []
    identifier = f" ({record['identifier']})" if record.get("identifier") else ""
    lines = [f"First bad record: {record['place']}{identifier}: {record['reason']}"]
    return [*lines, f"  {record['content']}"] if record.get("content") else lines


def _succeeded(work: str, streak: Streak) -> str:
    if streak.succeeded is None:
        return ""
    return f"Last {work} that finished: {moment(streak.succeeded)}"


@dataclass(frozen=True, slots=True)
class OpenTrouble:
    """An open problem; `title` is that of its message."""

    kind: str
    title: str
    since: datetime


def open_troubles(state: AlertState, writer: MessageWriter) -> list[OpenTrouble]:
    """The open problems of a source, the oldest first."""
    found: list[tuple[datetime | None, NewMessage]] = []
    for work, streak in (("sync", state.syncs), ("replay", state.replays)):
        if streak.failures:
            found.append((streak.since, writer.failing(f"{work}_failures", work, streak)))
    if state.no_data.since:
        found.append((state.no_data.since, writer.no_data(state.no_data)))
    for kind, trouble in (("rejected", state.rejected), ("rescued", state.rescued)):
        if trouble.since:
            found.append((trouble.since, writer.share(kind, trouble)))
    for name, check in state.checks.items():
        if check.failing:
            found.append((check.since, writer.check(name, replace(check, reported=()))))
    troubles = [OpenTrouble(d.kind, d.title, since or writer.now) for since, d in found]
    return sorted(troubles, key=lambda trouble: trouble.since)

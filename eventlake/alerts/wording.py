"""Texts of alert messages: what happened, since when, how bad it is, and what to do."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec.structs import replace

from eventlake.alerts.state import REPORTED_FAILURES, Facts, Message, RunRef, Trouble
from eventlake.rules.text import plural
from eventlake.settings.models import Source

_LENGTH = 1_500  # characters of errors and evidence that are shown
_TABLES = 5  # that are named
_REMEDIES = {
    "Segment.InsufficientPermissions": "Grant what the error names, then try `datalake check`.",
    "Segment.InvalidSettings": "Correct what the error names in lake.yaml, then try "
    "`datalake check`.",
}
_AGAIN = {
    "sync": "The next sync retries automatically and continues after what is published.",
    "replay": "Launch it again: it continues after the last published day.",
}
_LOADED = "This sync and the next load the files that were waiting."


def cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LENGTH else f"{flat[:_LENGTH]} …"


def moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def span(now: datetime, since: datetime) -> str:
    minutes = max(int((now - since).total_seconds() // 60), 0)
    days, hours = divmod(minutes // 60, 24)
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


Lines = tuple[str, ...]
"""The lines of a message, its title first."""


@dataclass(frozen=True)
class MessageWriter:
    """Writes the messages about a source; with the URLs of Dagster's webserver and the console."""

    source: Source
    now: datetime
    ui: str | None = None
    console: str | None = None

    def message(self, kind: str, trouble: Trouble) -> Message:
        """The message that a problem is open, or over."""
        over = not trouble.points
        title, *lines = _WORDS[kind.partition(":")[0]][over](self, kind, trouble)
        title, link = f"{self.source.slug}: {title}", self._link(trouble.run)
        page = self._page(kind, trouble)
        more = (link and f"Run: {link}", page and f"Page: {page}")
        text = "\n".join(filter(None, (title, *lines, *more)))
        fields = {**self._fields(trouble, over), "link": link, "page": page}
        known = {name: value for name, value in fields.items() if value != ""}
        return Message("", self.source.slug, kind, title, text, self.now, over, known)

    def title(self, kind: str, trouble: Trouble) -> str:
        """What is wrong, whether or not it was reported."""
        return self.message(kind, replace(trouble, reported=())).title

    def _fields(self, trouble: Trouble, over: bool) -> Facts:
        run, facts = trouble.run, dict(trouble.facts)
        if "failures" in facts and not over:
            facts |= {"error_code": _code(run), "error": cut(run.error)}
        if "check" in facts:
            facts |= {"tables": len(trouble.points), "remedy": cut(str(facts["remedy"]))}
        return {
            "source_id": self.source.id,
            **facts,
            "since": trouble.since.astimezone(UTC).isoformat(timespec="seconds"),
            "run_id": run.run_id,
            "dagster_run_id": run.dagster_run_id,
        }

    def _page(self, kind: str, trouble: Trouble) -> str:
        """The page of the console that explains it."""
        new = sorted(trouble.points.keys() - set(trouble.reported)) or sorted(trouble.points)
        if not self.console:
            return ""
        if kind.startswith("check:") and new and "." in new[0]:
            return f"{self.console}/tables/{new[0].replace('.', '/', 1)}"
        if kind == "rejected":
            return f"{self.console}/records/{trouble.run.run_id}?status=rejected"
        if kind != "no_data" and trouble.run.run_id:
            return f"{self.console}/history/{trouble.run.run_id}"
        return f"{self.console}/health?source={self.source.slug}"

    def _link(self, run: RunRef) -> str:
        if self.ui and run.dagster_run_id:
            return f"{self.ui}/runs/{run.dagster_run_id}"
        if run.run_id:
            return f"`datalake reports --run {run.run_id}`"
        return f"Dagster run {run.dagster_run_id}" if run.dagster_run_id else ""


def _failing(writer: MessageWriter, kind: str, trouble: Trouble) -> Lines:
    work, run, since = kind.removesuffix("_failures"), trouble.run, trouble.since
    count, finished = int(trouble.facts["failures"]), str(trouble.facts.get("last_finished", ""))
    more = [number for number in REPORTED_FAILURES if number > count]
    next_report = f"at the {more[0]}th failure in a row and" if more else "only"
    remedy = _REMEDIES.get(run.error_code, "See `datalake status` and the log of the run.")
    return (
        f"{work} failed" if count == 1 else f"{plural(count, work)} failed in a row",
        f"Since: {moment(since)}, {span(writer.now, since)}",
        finished and f"Last {work} that finished: {moment(datetime.fromisoformat(finished))}",
        f"Error: {_code(run)}: {cut(run.error)}",
        f"What to do: {remedy} {_AGAIN[work]}",
        f"Next message: {next_report} when it recovers.",
    )


def _recovered(writer: MessageWriter, kind: str, trouble: Trouble) -> Lines:
    work, since, at = kind.removesuffix("_failures"), trouble.since, trouble.run.at
    return (
        f"{work} recovered after {plural(int(trouble.facts['failures']), 'failure')}",
        f"Failed since: {moment(since)}, for {span(at, since)}",
        f"Recovered: {moment(at)}",
        f"What to do: nothing. {_LOADED if work == 'sync' else ''}".rstrip(),
    )


def _no_data(writer: MessageWriter, kind: str, trouble: Trouble) -> Lines:
    return (
        f"no new rows for {span(writer.now, trouble.since)}",
        f"Since: {moment(trouble.since)}, the last sync that loaded rows",
        f"Allowed: {trouble.facts['hours']} h (alerts.no_data_hours)",
        "What to do: check whether new files arrive in the archive "
        f"({writer.source.raw}) and whether syncs run: `datalake status`, `datalake check`.",
    )


def _data_again(writer: MessageWriter, kind: str, trouble: Trouble) -> Lines:
    since, at = trouble.since, trouble.run.at
    return (
        "new rows again",
        f"No rows since: {moment(since)}, for {span(at, since)}",
        f"Recovered: {moment(at)}",
        "What to do: nothing.",
    )


def _rejected(writer: MessageWriter, kind: str, trouble: Trouble) -> Lines:
    facts, run = trouble.facts, trouble.run.run_id
    return (
        f"{facts['percent']:g} % of the rows of a sync rejected",
        *_how_bad(kind, trouble, f"{facts['rejected']:,} of {facts['rows_in']:,} rows"),
        f"What to do: `datalake records --run {run} --status rejected` lists them with their "
        "reasons. Correct the sender or the limit, then replay to load them.",
    )


def _rescued(writer: MessageWriter, kind: str, trouble: Trouble) -> Lines:
    facts, run = trouble.facts, trouble.run.run_id
    return (
        f"{facts['percent']:g} % as many rescued cells as rows in a sync",
        *_how_bad(kind, trouble, f"{facts['rescued_cells']:,} cells in {facts['rows']:,} rows"),
        f"What to do: `datalake reports --run {run}` names the tables; nothing is lost, see their "
        "column rescued_data. `datalake retype` and a replay give a column another type.",
    )


def _how_bad(kind: str, trouble: Trouble, bad: str) -> Lines:
    record = {name: str(trouble.facts.get(f"record_{name}", "")) for name in RECORD}
    named = f" ({record['identifier']})" if record["identifier"] else ""
    where = f"First bad record: {record['place']}{named}: {record['reason']}"
    return (
        f"Since: the sync of {moment(trouble.since)}",
        f"How bad: {bad}, more than {trouble.facts['limit']:g} % (alerts.{kind}_percent)",
        where if record["place"] else "",
        f"  {record['content']}" if record["content"] else "",
    )


def _normal(writer: MessageWriter, kind: str, trouble: Trouble) -> Lines:
    what = "rejected rows" if kind == "rejected" else "rescued cells"
    return (
        f"{what} are back to normal: {trouble.facts['percent']:g} %",
        f"Above the limit since: the sync of {moment(trouble.since)}",
        "What to do: nothing for new rows; for earlier rows see the previous message.",
    )


def _check_fails(writer: MessageWriter, kind: str, trouble: Trouble) -> Lines:
    failing, facts = trouble.points, trouble.facts
    new = sorted(failing.keys() - set(trouble.reported))
    named = ", ".join(new[:_TABLES]) + (" …" if len(new) > _TABLES else "")
    more = f" ({len(failing)} in all)" if len(failing) > len(new) else ""
    verb = "warns of" if facts["severity"] == "warning" else "failed for"
    remedy = cut(str(facts["remedy"])) or "open the check in Dagster for its numbers."
    return (
        f"check {facts['check']} {verb} {plural(len(new), 'table')}{more}",
        f"Since: {moment(trouble.since)}",
        f"Tables: {named}",
        f"First: {new[0]}: {cut(failing[new[0]]) or 'no numbers'}" if new else "",
        f"What to do: {remedy}",
    )


def _check_passes(writer: MessageWriter, kind: str, trouble: Trouble) -> Lines:
    failed = plural(len(trouble.reported), "table")
    return (
        f"check {trouble.facts['check']} passes again",
        f"Failed since: {moment(trouble.since)}, for {failed}",
        "What to do: nothing.",
    )


RECORD = ("place", "reason", "identifier", "content")
"""What is shown of a bad record: its file and line or its table, and so on."""
_WORDS: dict[str, tuple[Callable[[MessageWriter, str, Trouble], Lines], ...]] = {
    "sync_failures": (_failing, _recovered),
    "replay_failures": (_failing, _recovered),
    "no_data": (_no_data, _data_again),
    "rejected": (_rejected, _normal),
    "rescued": (_rescued, _normal),
    "check": (_check_fails, _check_passes),
}
"""The texts of each kind of problem: while it is open, and when it is over."""


def _code(run: RunRef) -> str:
    return run.error_code or "Segment.Internal"

"""Lakes and histories for the tests of alerts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from eventlake.alerts.channels import NotSent
from eventlake.alerts.delivery import Evaluation
from eventlake.alerts.rules import Observed, state_after
from eventlake.alerts.run_status import CheckRun, EndedRun, Outcome, StatusLookup, unknown
from eventlake.alerts.state import AlertState, Message, Notification, read_alerts
from eventlake.alerts.wording import MessageWriter
from eventlake.lake import Lake
from eventlake.rules.counts import TableReport, UnitReport
from eventlake.runs.open_runs import close_run
from eventlake.settings.models import Source
from eventlake.state.report import Failure, RunFacts
from tests.support.lakes.settings import settings_of

BEGIN = datetime(2026, 10, 20, tzinfo=UTC)
REFUSED = Failure("Segment.InsufficientPermissions", "S3 bucket b: s3:PutObject was refused.")


@dataclass
class FakeChannel:
    """A channel to nowhere that keeps what was sent."""

    address: str
    sent: list[Message] = field(default_factory=list)
    down: bool = False
    dies: bool = False

    def send(self, message: Message) -> str:
        if self.down:
            raise NotSent("out of order")
        self.sent.append(message)
        if self.dies:
            raise KeyboardInterrupt
        return ""

    def check(self) -> str:
        return ""

    @property
    def titles(self) -> list[str]:
        return [message.title.removeprefix("shop: ") for message in self.sent]


Channels = tuple[FakeChannel, FakeChannel]


class WatchedLake:
    """One source, `S1` with slug `shop`."""

    def __init__(self, root: Path | str, storage: str = "", **alerts: Any) -> None:
        source = {"id": "S1", "slug": "shop", "alerts": alerts}
        self.lake = Lake.open(settings_of(storage or root, source))
        self.source: Source = self.lake.settings.sources[0]
        self.runs = 0

    def run(
        self,
        at: datetime,
        failure: Failure | None = None,
        replay: bool = False,
        dagster_run_id: str = "",
        rows: int = 0,
        rejected: int = 0,
        started: datetime | None = None,
    ) -> str:
        """A run that ended at a time, with its report; its id."""
        self.runs += 1
        started = started or at - timedelta(minutes=3)
        facts = RunFacts(
            "W1", "S1", "shop", f"R{self.runs}", started, "", "", dagster_run_id, replay
        )
        table = TableReport("page", "page", rows + rejected, row_count=rows, rejected=rejected)
        done = UnitReport({"shop.page": table}, rows + rejected, rejected=rejected)
        close_run(self.lake.storage, self.lake.catalog, facts, done, at, failure)
        return facts.run_id

    def look(
        self,
        now: datetime,
        environ: Mapping[str, str],
        statuses: StatusLookup = unknown,
        failures: Sequence[EndedRun] = (),
        check_runs: Sequence[CheckRun] = (),
        ui: str | None = None,
    ) -> list[str]:
        return Evaluation(self.lake, now, environ, ui, statuses).evaluate(
            self.source, failures, check_runs
        )

    @property
    def state(self) -> AlertState:
        return read_alerts(self.lake.storage, "S1")


HOUR = timedelta(hours=1)


@cache
def source_with(**alerts: Any) -> Source:
    given = {"email_to": "data@example.com", **alerts}
    source = {"id": "S1", "slug": "shop", "alerts": given}
    return settings_of("/nowhere", source).sources[0]


def run(number: int, letter: str, **facts: Any) -> EndedRun:
    """`F` and `f` fail as sync and replay, `K` and `k` finish; `x` and `X` do not matter."""
    outcomes = {"f": Outcome.FAILED, "k": Outcome.FINISHED, "x": Outcome.NO_MATTER}
    ended = BEGIN + number * HOUR
    given: dict[str, Any] = {
        "id": f"d{number}",
        "work": f"d{number}",
        "replay": letter.islower(),
        "outcome": outcomes[letter.lower()],
        "started": ended - timedelta(minutes=5),
        "ended": ended,
        "run_id": f"r{number}",
        "dagster_run_id": f"d{number}",
    }
    return EndedRun(**{**given, **facts})


def runs(word: str) -> list[EndedRun]:
    return [run(number, letter) for number, letter in enumerate(word)]


def evaluated(
    state: AlertState,
    now: datetime,
    ended_runs: Iterable[EndedRun] = (),
    check_runs: Sequence[CheckRun] = (),
    source: Source | None = None,
) -> AlertState:
    source = source or source_with()
    observed = Observed(list(ended_runs), check_runs)
    return state_after(state, observed, source.alerts, MessageWriter(source, now))


def watched_since(now: datetime = BEGIN) -> AlertState:
    """The state of a source after its first evaluation."""
    return evaluated(AlertState(), now)


def titles(notifications: Iterable[Notification]) -> list[str]:
    return [letter.message.title.removeprefix("shop: ") for letter in notifications]


def due(history: Iterable[EndedRun]) -> list[str]:
    """The titles of all messages of a history, counted without the rules."""
    found: list[str] = []
    rows: dict[bool, list[str]] = {False: [], True: []}
    for ended_run in history:
        name, row = "replay" if ended_run.replay else "sync", rows[ended_run.replay]
        if ended_run.outcome is Outcome.FINISHED:
            if row:
                ending = "" if len(row) == 1 else "s"
                found.append(f"{name} recovered after {len(row)} failure{ending}")
            row.clear()
        elif ended_run.outcome is Outcome.FAILED and ended_run.work not in row:
            row.append(ended_run.work)
            if len(row) == 1:
                found.append(f"{name} failed")
            elif len(row) in (5, 20):
                found.append(f"{len(row)} {name}s failed in a row")
    return found

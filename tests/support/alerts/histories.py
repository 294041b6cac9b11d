"""Histories in one word: each letter a run that has ended, told of an hour apart."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from eventlake.alerts.rules import Happened, state_after
from eventlake.alerts.run_status import Attempt, CheckRun, Outcome
from eventlake.alerts.state import AlertState, Letter
from eventlake.alerts.wording import Words
from eventlake.settings.models import Settings, Source

BEGIN = datetime(2026, 10, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)


@cache
def source_with(**alerts: Any) -> Source:
    given = {"email_to": "data@example.com", **alerts}
    source = {"id": "S1", "slug": "shop", "alerts": given}
    settings = {"workspace_id": "W1", "storage": "/nowhere", "sources": [source]}
    return Settings.model_validate(settings).sources[0]


def run(number: int, letter: str, **facts: Any) -> Attempt:
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
    return Attempt(**{**given, **facts})


def runs(word: str) -> list[Attempt]:
    return [run(number, letter) for number, letter in enumerate(word)]


def looked(
    state: AlertState,
    now: datetime,
    attempts: Iterable[Attempt] = (),
    check_runs: Sequence[CheckRun] = (),
    source: Source | None = None,
) -> AlertState:
    source = source or source_with()
    happened = Happened(list(attempts), check_runs)
    return state_after(state, happened, source.alerts, Words(source, now))


def watched_since(now: datetime = BEGIN) -> AlertState:
    """Of a source that somebody has just looked at for the first time."""
    return looked(AlertState(), now)


def titles(letters: Iterable[Letter]) -> list[str]:
    return [letter.message.title.removeprefix("shop: ") for letter in letters]

"""Freshness: whether a source has been silent for longer than it usually is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from eventlake.catalog.sync_reports import DATABASE, NAME
from eventlake.checks.view import verdict
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.schedules import next_due
from eventlake.runs.verify import CheckResult
from eventlake.settings.models import Source
from eventlake.state.ledger import read_ledger
from eventlake.state.manifest import made_at

HOUR = timedelta(hours=1)
TWO_HOURS = 2 * HOUR
_SYNCS_AHEAD = 14
LOOK_BACK_DAYS = 28
ON_THE_WAY = 4 * HOUR
"""What an hour may take from the source to the archive, and a sync to load it."""
_KNOWN_AFTER = timedelta(days=15)  # two weekends
_UNTIL_KNOWN = timedelta(days=3)


@dataclass(frozen=True, slots=True)
class Expected:
    """How old the newest event may be, and why so."""

    age: timedelta
    because: str


def check_freshness(lake: Lake, source: Source, now: datetime) -> CheckResult:
    """One source; a table of its own may be rare, and silence of it means nothing."""
    lake = lake.for_source(source)
    first_load = made_at(lake.storage, source.id, 1)
    return judge_freshness(source, loaded_hours(lake, source), now, first_load)


def judge_freshness(
    source: Source, hours: Iterable[datetime], now: datetime, first_load: datetime | None = None
) -> CheckResult:
    # Clocks of devices do not count, but servers, too, have dated events ahead.
    known = sorted({hour for hour in hours if hour <= now + HOUR})
    expected = expectation(known, source.freshness_hours, _between_syncs(source, now))
    problems: list[str] = []
    evidence: dict[str, object] = {
        "expected_within_hours": int(expected.age / HOUR),
        "because": expected.because,
    }
    judged = source.enabled and (source.is_scheduled or source.freshness_hours is not None)
    if not source.enabled:
        evidence["not_judged"] = "the source is switched off (`enabled: false`)"
    elif not judged:
        evidence["not_judged"] = "its syncs are not scheduled (`schedule: off`)"
    elif not known:
        evidence["not_judged"] = "nothing is loaded yet"
    elif first_load is not None and now - first_load < expected.age:
        judged = False  # an archive of old events, loaded for the first time
        evidence["not_judged"] = f"its first load was at {first_load:%Y-%m-%d %H:%M} UTC"
    if known:
        until = known[-1] + HOUR
        age = max(now - until, timedelta())
        evidence |= {"age_hours": round(age / HOUR, 1), "newest_hour": f"{known[-1]:%Y-%m-%dT%H}"}
        if judged and age > expected.age:
            problems = [f"no event since {until:%Y-%m-%d %H:%M} UTC, {age / HOUR:.0f} hours ago"]
    key = f"{DATABASE}.{NAME}.{source.name}"
    return verdict(key, "freshness", problems, evidence, _remedy(source))


def expectation(
    hours: Sequence[datetime], setting: int | None, between_syncs: timedelta = TWO_HOURS
) -> Expected:
    """By the setting; else by how long the source was silent before, of what is known of it."""
    if setting is not None:
        return Expected(setting * HOUR, "the setting `freshness_hours`")
    on_the_way = ON_THE_WAY + between_syncs
    if not hours or hours[-1] - hours[0] < _KNOWN_AFTER:
        told = f"less than {_KNOWN_AFTER.days} days of it are known"
        return Expected(max(_UNTIL_KNOWN, on_the_way), told)
    gaps = sorted(later - sooner - HOUR for sooner, later in pairwise(hours))
    # Of all silences but one: a single outage is not what is usual.
    usual = gaps[-2] if len(gaps) > 1 else timedelta()
    told = f"it was silent for {usual / HOUR:.0f} hours at most, but for once"
    return Expected(usual + on_the_way, f"{told}, in its last {LOOK_BACK_DAYS} days")


def _between_syncs(source: Source, now: datetime) -> timedelta:
    """The longest time between two of the next syncs; none where they are not scheduled."""
    due = [now]
    while len(due) <= _SYNCS_AHEAD and source.is_scheduled:
        following = next_due(source.schedule, source.schedule_timezone, due[-1])
        if following is None:
            break
        due.append(following)
    return max((later - sooner for sooner, later in pairwise(due[1:])), default=timedelta())


def loaded_hours(lake: Lake, source: Source) -> set[datetime]:
    """The hours of which events are loaded, from the newest day folders on which there are any."""
    pages = lake.storage.files(paths.ledger_pages(source.id))
    folders = sorted((page.name.removesuffix(".json") for page in pages), key=int)
    ledger = read_ledger(lake.storage, source.id, folders[-LOOK_BACK_DAYS:])
    hours = {hour for entry in ledger.values() for hour in entry.hours}
    found = {datetime.fromisoformat(hour).replace(tzinfo=UTC) for hour in hours}
    oldest = max(found, default=datetime.max.replace(tzinfo=UTC))
    return {hour for hour in found if hour > oldest - timedelta(days=LOOK_BACK_DAYS)}


def _remedy(source: Source) -> str:
    return (
        "`datalake status` tells whether files wait or syncs fail. If neither, look at what writes "
        f"the archive ({source.raw}). If the silence is right, set `freshness_hours` of the source."
    )

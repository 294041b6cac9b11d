"""Check `freshness`: whether a source has had no events for longer than usual."""

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
"""The time that events may take from the source to the archive and into the lake."""
_KNOWN_AFTER = timedelta(days=15)  # two weekends
_UNTIL_KNOWN = timedelta(days=3)


@dataclass(frozen=True, slots=True)
class Expected:
    """The maximum age of the newest event, and the reason."""

    age: timedelta
    because: str


def check_freshness(lake: Lake, source: Source, now: datetime) -> CheckResult:
    """Check a source as a whole, as the events of a single table may be rare."""
    lake = lake.for_source(source)
    first_load = made_at(lake.storage, source.id, 1)
    return judge_freshness(source, loaded_hours(lake, source, now), now, first_load)


def judge_freshness(
    source: Source, hours: Iterable[datetime], now: datetime, first_load: datetime | None = None
) -> CheckResult:
    # Timestamps of servers may lie in the future, too.
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
    """From the setting, or else from the longest gaps in the past."""
    if setting is not None:
        return Expected(setting * HOUR, "the setting `freshness_hours`")
    on_the_way = ON_THE_WAY + between_syncs
    if not hours or hours[-1] - hours[0] < _KNOWN_AFTER:
        because = f"less than {_KNOWN_AFTER.days} days of history"
        return Expected(max(_UNTIL_KNOWN, on_the_way), because)
    gaps = sorted(later - sooner - HOUR for sooner, later in pairwise(hours))
    # The second longest gap: a single outage is not usual.
    usual = gaps[-2] if len(gaps) > 1 else timedelta()
    because = f"gaps of at most {usual / HOUR:.0f} hours, except for one,"
    return Expected(usual + on_the_way, f"{because} in the last {LOOK_BACK_DAYS} days")


def _between_syncs(source: Source, now: datetime) -> timedelta:
    """The longest time between scheduled syncs; zero if they are not scheduled."""
    due = [now]
    while len(due) <= _SYNCS_AHEAD and source.is_scheduled:
        following = next_due(source.due, source.schedule_timezone, due[-1])
        if following is None:
            break
        due.append(following)
    return max((later - sooner for sooner, later in pairwise(due[1:])), default=timedelta())


def loaded_hours(lake: Lake, source: Source, now: datetime) -> set[datetime]:
    """The hours with loaded events up to now, of the newest day folders that have any."""
    pages = lake.storage.files(paths.ledger_pages(source.id))
    folders = sorted((page.name.removesuffix(".json") for page in pages), key=int)
    ledger = read_ledger(lake.storage, source.id, folders[-LOOK_BACK_DAYS:])
    hours = {hour for entry in ledger.values() for hour in entry.hours}
    found = {datetime.fromisoformat(hour).replace(tzinfo=UTC) for hour in hours}
    past = (hour for hour in found if hour <= now + HOUR)
    oldest = max(past, default=datetime.max.replace(tzinfo=UTC))
    return {hour for hour in found if hour > oldest - timedelta(days=LOOK_BACK_DAYS)}


def _remedy(source: Source) -> str:
    return (
        "`datalake status` shows whether files are waiting or syncs fail. If neither, check what "
        f"writes the archive ({source.raw}). If the gap is normal, set `freshness_hours`."
    )

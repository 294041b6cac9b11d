"""How a source stands right now: what its syncs did, what waits, who is at work."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from lake import paths
from lake.errors import LakeError
from lake.lake import Lake
from lake.report_history import RunReport, newest_reports
from lake.settings import Source
from lake.state.codec import decode
from lake.state.lease import Lease, read_lease
from lake.state.ledger import read_ledger
from lake.state.manifest import read_manifest
from lake.state.source_state import read_state
from lake.types import LakeType
from lake.work.layout import refuse_changed_layout
from lake.work.open_runs import OpenRun
from lake.work.plan import list_archive, plan_sync

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Raw files that the next sync would load, or why nobody can tell."""

    files: int = 0
    bytes: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class RunInProgress:
    """A run without a report; for a replay, how many of its days are published."""

    run: OpenRun
    days_done: int = 0
    days: int = 0

    @property
    def alive(self) -> bool:
        return self.run.holder.alive

    @property
    def kind(self) -> str:
        return "replay" if self.run.run.replay else "sync"


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """All that a person on call asks first."""

    source: Source
    last_sync: RunReport | None
    failures: tuple[RunReport, ...]  # since the last sync that finished, newest first
    loaded_until: datetime | None
    waiting: Waiting
    lease: Lease | None
    open_runs: tuple[RunInProgress, ...]
    wishes: dict[str, LakeType]  # types that wait for a replay, by database.table.column

    def lag(self, now: datetime) -> timedelta | None:
        """How far the newest hour in the lake lies back; an hour that still runs is no lag."""
        return None if self.loaded_until is None else max(now - self.loaded_until, timedelta())


def source_status(lake: Lake, source: Source) -> SourceStatus:
    """Read everything, change nothing."""
    lake = lake.for_source(source)
    syncs = (run for run in newest_reports(lake, {source.id}) if not run.is_replay)
    last = next(syncs, None)
    failures: tuple[RunReport, ...] = ()
    if last is not None and last.failed:
        failures = (last, *takewhile(lambda run: run.failed, syncs))
    return SourceStatus(
        source=source,
        last_sync=last,
        failures=failures,
        loaded_until=_loaded_until(lake, source),
        waiting=_waiting(lake, source),
        lease=read_lease(lake.storage, source.id),
        open_runs=tuple(_open_runs(lake, source)),
        wishes=_wishes(lake, source),
    )


def _wishes(lake: Lake, source: Source) -> dict[str, LakeType]:
    try:
        wishes = read_state(lake.storage, source.id).wishes
    except LakeError:
        return {}  # what cannot be read is told of what waits
    return {f"{table}.{c}": type for table, types in wishes.items() for c, type in types.items()}


def _waiting(lake: Lake, source: Source) -> Waiting:
    try:
        state = read_state(lake.storage, source.id)
        refuse_changed_layout(source, state)
        units = plan_sync(lake.storage, source, state).units
    except LakeError as error:
        return Waiting(problem=str(error))
    return Waiting(sum(len(unit.files) for unit in units), sum(unit.bytes for unit in units))


def _loaded_until(lake: Lake, source: Source) -> datetime | None:
    """The end of the newest hour of which a loaded file has rows."""
    try:
        folders = list_archive(lake.storage, source).folders
        ledger = read_ledger(lake.storage, source.id, [paths.day_folder(day) for day in folders])
    except LakeError:
        return None
    newest = max((hour for entry in ledger.values() for hour in entry.hours), default=None)
    if newest is None:
        return None
    return datetime.fromisoformat(newest).replace(tzinfo=UTC) + HOUR


def _open_runs(lake: Lake, source: Source) -> Iterator[RunInProgress]:
    for file in lake.storage.files(paths.open_runs(source.id)):
        if data := lake.storage.read(file.path):
            run = decode(data, OpenRun, file.path)
            first, end = run.run.replay_from, run.run.replay_to
            days = 0 if first is None or end is None else _days(first, end)
            done = min(_published(lake, run), days) if days else 0
            yield RunInProgress(run, done, days)


def _days(first: datetime, end: datetime) -> int:
    return ((end - timedelta(microseconds=1)).date() - first.date()).days + 1


def _published(lake: Lake, run: OpenRun) -> int:
    """How many units of a run are committed; giving tables other types is none."""
    number, done = run.after_manifest + 1, 0
    while (manifest := read_manifest(lake.storage, run.run.source_id, number)) is not None:
        done += manifest.run_id == run.run.run_id and not manifest.retyped
        number += 1
    return done

"""The status of a source: last syncs, waiting files, runs in progress."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice

from eventlake.alerts.history import current_troubles
from eventlake.alerts.state import Trouble
from eventlake.alerts.wording import MessageWriter
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.errors import LakeError
from eventlake.rules.partitions import DatePartition
from eventlake.rules.schedules import next_due
from eventlake.rules.text import headline, plural
from eventlake.rules.types import LakeType
from eventlake.runs.archive import Ignored, list_archive
from eventlake.runs.open_runs import OpenRun, open_runs
from eventlake.runs.plan import Changed, freed_warnings, plan_sync, replay_command
from eventlake.runs.report_history import RunReport, newest_reports
from eventlake.runs.unit import Window
from eventlake.settings.models import Source
from eventlake.state.lease import Lease, read_lease
from eventlake.state.ledger import read_ledger
from eventlake.state.partitions import Partitions
from eventlake.state.replays import OpenReplay
from eventlake.state.source_state import (
    SourceState,
    expected_first_sync,
    read_state,
    refuse_changed_layout,
)

HOUR = timedelta(hours=1)
_REPORTS = 50  # to look through


@dataclass(frozen=True, slots=True)
class Waiting:
    """The raw files that the next sync would load, or why they cannot be listed."""

    files: int = 0
    bytes: int = 0
    problem: str | None = None
    ignored: tuple[Ignored, ...] = ()  # which no sync will take
    changed: Changed = field(default_factory=dict)


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
        if self.run.upkeep:
            return "upkeep"
        return "replay" if self.run.run.replay else "sync"


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A replay that no run is continuing."""

    replay: OpenReplay

    @property
    def window(self) -> Window:
        return Window(self.replay.replay.start, self.replay.replay.end)

    @property
    def days(self) -> int:
        return _days(self.window.start, self.window.end)

    @property
    def last_run(self) -> str:
        newest = max(self.replay.days.values(), key=lambda done: done.manifest)
        return newest.run_id


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a source, in a sentence; every screen shows the same ones."""

    kind: str
    text: str
    since: datetime | None = None
    needs_attention: bool = True


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The status of a source."""

    source: Source
    at: datetime
    last_sync: RunReport | None
    last_load: RunReport | None  # the last sync that had rows
    troubles: dict[str, Trouble]  # the open problems by kind, as in `datalake alerts`
    loaded_until: datetime | None
    waiting: Waiting
    lease: Lease | None
    open_runs: tuple[RunInProgress, ...]
    interrupted: tuple[Interrupted, ...]
    next_sync: datetime | None  # by schedule
    moved: str | None  # a message if its tables are in another database
    requested_types: dict[str, LakeType]  # types that wait for a replay, by database.table.column
    to_replay: tuple[str, ...]  # copies that replays have freed, and how to load them
    damaged: tuple[str, ...]  # missing or unreadable files of its tables

    @property
    def failing(self) -> Trouble | None:
        """Failed syncs in a row."""
        return self.troubles.get("sync_failures")

    @property
    def lag(self) -> timedelta | None:
        """The age of the newest loaded hour; the current hour is no lag."""
        return None if self.loaded_until is None else max(self.at - self.loaded_until, timedelta())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The worst first."""
        return tuple(_problems(self))


def _problems(one: SourceStatus) -> Iterator[Problem]:
    yield from _troubles(one)
    waiting, source = one.waiting, one.source
    if waiting.problem:
        yield Problem("archive", waiting.problem)
    yield from (Problem("damaged", text) for text in one.damaged)
    yield from (Problem("ignored", f"not loaded: {i}") for i in waiting.ignored if not i.expected)
    if waiting.changed:
        yield Problem("changed", _changed(source, waiting.changed))
    yield from (Problem("to_replay", text) for text in one.to_replay)
    if one.moved:
        yield Problem("moved", one.moved)
    yield from (Problem("crashed", _crashed(run)) for run in one.open_runs if not run.alive)
    yield from (Problem("interrupted", _broken_off(replay)) for replay in one.interrupted)
    if load := _rejecting(one):
        yield Problem("rejected_rows", load, needs_attention=False)
    if one.requested_types:
        requested = ", ".join(f"{name} {type.sql}" for name, type in one.requested_types.items())
        text = f"types that wait for a replay of all days of their table: {requested}"
        yield Problem("requested_types", text, needs_attention=False)


def _troubles(one: SourceStatus) -> Iterator[Problem]:
    """The open problems that `datalake alerts` shows."""
    if one.failing:
        run, since = one.failing.run, one.failing.since
        times = plural(int(one.failing.facts["failures"]), "failure")
        yield Problem(
            "sync_failures",
            f"failing since {_minute(since)}, {times} in a row; {run.error_code}: "
            f"{headline(run.error)}",
            since,
        )
    writer = MessageWriter(one.source, one.at)
    for kind, trouble in one.troubles.items():
        if trouble != one.failing:
            title = writer.title(kind, trouble).removeprefix(f"{one.source.slug}: ")
            yield Problem(kind, f"since {_minute(trouble.since)}: {title}", trouble.since)


def _changed(source: Source, changed: Changed) -> str:
    days = {day for found in changed.values() for day in found}
    return (
        f"{plural(len(changed), 'raw file')} changed after loading, such as {min(changed)}; what "
        "was loaded stays. To take the new content, run: "
        f"{replay_command(source, min(days), max(days))} --accept-changes"
    )


def _crashed(run: RunInProgress) -> str:
    facts = run.run.run
    then = "the next run writes its report and continues"
    progress = f", {run.days_done} of {plural(run.days, 'day')} published" if run.days else ""
    if run.kind == "upkeep":
        then = "the next continues"
    return (
        f"{run.kind} {facts.run_id}, begun {_minute(facts.start_time)}, crashed{progress}; {then}"
    )


def _broken_off(one: Interrupted) -> str:
    tables = one.replay.replay.tables
    of = f" of {', '.join(tables)}" if tables else ""
    return (
        f"replay of {one.window}{of} interrupted after {len(one.replay.days)} of "
        f"{plural(one.days, 'day')} (run {one.last_run}); launch it again to continue"
    )


def _rejecting(one: SourceStatus) -> str | None:
    """Whether the last sync that had rows rejected one in a hundred of them, or more."""
    load = one.last_load
    if load is None or 100 * load.source.rejected < load.source.rows_in:
        return None
    share = load.source.rejected / load.source.rows_in
    return (
        f"{load.source.rejected:,} of {plural(load.source.rows_in, 'row')} ({share:.0%}) rejected "
        f"by the sync of {_minute(load.started)}; `datalake records --run {load.run_id} --status "
        "rejected` shows them"
    )


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def source_status(
    lake: Lake, source: Source, now: datetime, *, look_for_damage: bool = True
) -> SourceStatus:
    """Read everything, change nothing; only damage needs a listing of all data files."""
    lake = lake.for_source(source)
    last_sync, last_load = _last_syncs(lake, source)
    state = _state(lake, source)
    running = tuple(runs_in_progress(lake, source, state))
    return SourceStatus(
        source=source,
        at=now,
        last_sync=last_sync,
        last_load=last_load,
        troubles=current_troubles(lake, source, now),
        loaded_until=_loaded_until(lake, source, now),
        waiting=_waiting(lake, source),
        lease=read_lease(lake.storage, source.id),
        open_runs=running,
        interrupted=tuple(_interrupted(state, running)),
        next_sync=_next_sync(lake, source, now),
        moved=state.tables_elsewhere(source),
        requested_types={
            f"{t}.{c}": type
            for t, types in state.requested_types.items()
            for c, type in types.items()
        },
        to_replay=tuple(freed_warnings(source, state.freed)),
        damaged=damaged_files(lake, source, state) if look_for_damage else (),
    )


def _last_syncs(lake: Lake, source: Source) -> tuple[RunReport | None, RunReport | None]:
    """The last sync, and the last that loaded files."""
    last: RunReport | None = None
    for run in islice(newest_reports(lake, {source.id}), _REPORTS):
        if not (run.is_replay or run.damaged):
            last = last or run
            if run.source.rows_in and not run.failed:
                return last, run
    return last, None


def _state(lake: Lake, source: Source) -> SourceState:
    try:
        return read_state(lake.storage, source.id)
    except LakeError:
        return SourceState(source.id)  # `waiting` has the error


def _waiting(lake: Lake, source: Source) -> Waiting:
    try:
        state = read_state(lake.storage, source.id)
        refuse_changed_layout(source, state)
        plan = plan_sync(lake.storage, source, state)
    except LakeError as error:
        return Waiting(problem=str(error))
    files = sum(len(unit.files) for unit in plan.units)
    return Waiting(
        files, sum(unit.bytes for unit in plan.units), ignored=plan.ignored, changed=plan.changed
    )


def damaged_files(lake: Lake, source: Source, state: SourceState) -> tuple[str, ...]:
    """The messages about damaged files of a source, for `SourceStatus.damaged`."""
    return tuple(_damaged(lake, source, state))


def _damaged(lake: Lake, source: Source, state: SourceState) -> Iterator[str]:
    """Published data files that are missing or have another size, and damaged catalog files.

    Reads the partitions first: their files exist for some time, even if they are replaced.
    """
    held: dict[str, tuple[int, datetime]] = {}  # size and partition, by path
    for key, schema in state.tables.items():
        layout = DatePartition(state.layouts[key].date_partition)
        try:
            if not lake.catalog.follows and not lake.catalog.table(schema.database, schema.name):
                yield f"Table {key} is not in the catalog: `datalake recover --catalog` adds it."
            partitions = Partitions(lake.storage, lake.catalog).of(state, schema)
        except LakeError as error:
            yield str(error)
            continue
        lost = state.rows.get(key, 0) - sum(partition.rows for partition in partitions)
        if lost > 0 and not _has_changed(lake, state):
            yield (
                f"Table {key} lacks partitions with {lost:,} rows in the catalog: "
                "`datalake recover --catalog` adds them."
            )
        for one in partitions:
            start = layout.parse(one.values)
            held |= {f"{one.location}/{file.name}": (file.bytes, start) for file in one.held}
    listed = lake.storage.files(f"segment-data/data/{source.id}") if held else []
    there = {file.path: file.size for file in listed}
    wrong = {path: at for path, (size, at) in held.items() if there.get(path) != size}
    if wrong:
        days = [f"{at.date()}" for at in wrong.values()]
        count = f"{len(wrong):,} data {'file is' if len(wrong) == 1 else 'files are'}"
        yield (
            f"{count} gone or damaged, such as {min(wrong)}. To write their rows again, run: "
            f"{replay_command(source, min(days), max(days))}"
        )


def _has_changed(lake: Lake, state: SourceState) -> bool:
    """Whether a run has committed since the state was read."""
    return lake.storage.exists(paths.manifest(state.source_id, state.manifest + 1))


def _loaded_until(lake: Lake, source: Source, now: datetime) -> datetime | None:
    """The end of the newest hour with loaded rows, without rows from the future."""
    try:
        folders = list_archive(lake.storage, source).folders
        ledger = read_ledger(lake.storage, source.id, [paths.day_folder(day) for day in folders])
    except LakeError:
        return None
    this_hour = now.isoformat()[:13]
    hours = (hour for entry in ledger.values() for hour in entry.hours if hour <= this_hour)
    newest = max(hours, default=None)
    if newest is None:
        return None
    return datetime.fromisoformat(newest).replace(tzinfo=UTC) + HOUR


def _next_sync(lake: Lake, source: Source, now: datetime) -> datetime | None:
    """When the next sync is due; the first one may be due some hours after the source appears."""
    if not source.is_scheduled:
        return None
    first = expected_first_sync(lake.storage, source)
    if first is not None and first > now:
        return first
    return next_due(source.due, source.schedule_timezone, now)


def runs_in_progress(lake: Lake, source: Source, state: SourceState) -> Iterator[RunInProgress]:
    """Runs without a report yet, also those that have crashed."""
    for run in open_runs(lake.storage, source.id):
        first, end = run.run.replay_from, run.run.replay_to
        days = 0 if first is None or end is None else _days(first, end)
        yield RunInProgress(run, _days_done(run, state) if days else 0, days)


def _days_done(run: OpenRun, state: SourceState) -> int:
    """The published days of a replay, including earlier runs of it."""
    known = state.replays.find(run.replay) if run.replay else None
    return len(known.days) if known else 0


def _interrupted(state: SourceState, running: Iterable[RunInProgress]) -> Iterator[Interrupted]:
    alive = [run.run.replay for run in running if run.alive]
    for replay in state.replays.open:
        if replay.replay not in alive:
            yield Interrupted(replay)


def _days(first: datetime, end: datetime) -> int:
    return ((end - timedelta(microseconds=1)).date() - first.date()).days + 1

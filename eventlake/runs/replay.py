"""A replay: its days in sequence, its progress, and its end."""

from collections.abc import Collection, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby, takewhile

import msgspec

from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import CommitConflict
from eventlake.runs.context import Published, RunContext, now
from eventlake.runs.dedup import RowsMove
from eventlake.runs.plan import RawFiles, plan_replay, raw_files, replay_days
from eventlake.runs.raw_changes import RawChange, agreed, raw_changes, refusal, rows_held
from eventlake.runs.retype import Switches
from eventlake.runs.run import Run, run_to_end
from eventlake.runs.unit import Window
from eventlake.settings.models import Source
from eventlake.state.manifest import Manifest, read_manifest
from eventlake.state.replays import DoneDay, OpenReplay, RawVersion, Replay, ReplayStep
from eventlake.state.source_state import SourceState
from eventlake.state.suppression import Suppression

_IMMATERIAL = {
    *("enabled", "slug", "start", "tracking", "retention", "compaction", "alerts"),
    *("schedule", "schedule_timezone", "first_sync_hours", "unit_bytes"),
    "suppression",  # the suppressed people have a fingerprint of their own
    *("region", "emr_cluster_id", "glue_catalog_id", "iam_role_arn", "external_id"),
    *("emr_serverless_application_id", "execution_role_arn"),
    *("raw_role_arn", "raw_external_id", "fail_above_rejected_percent"),
}
"""Settings without effect on the tables; a change of any other restarts a replay."""


def replay(
    context: RunContext,
    window: Window,
    tables: frozenset[str] | None = None,
    accept_changes: bool = False,
) -> UnitReport:
    """Load a past range again from the raw archive and replace its rows, day by day."""
    return run_to_end(replay_units(context, window, tables, accept_changes))


def replay_units(
    context: RunContext,
    window: Window,
    tables: frozenset[str] | None = None,
    accept_changes: bool = False,
) -> Generator[Published, None, None]:
    """A replay, day by day, as soon as each is published; then the switch to requested types.

    Raw files that changed after they were loaded need consent.
    """
    run = Run(context)
    days = replay_days(context.source, window)
    replaying = Replaying(run, window, tables, accept_changes)
    raw = replaying.raw_files()  # refused before anything begins
    identity = replay_of(context.source, run.state, window, tables, run.suppression)
    with run.reported(identity):
        first_day = raw.archive.start(context.source, run.state)
        switches = Switches(context, run.state, window, tables, first_day)
        unready = switches.unready(run.state)
        replaying.progress = progress(context, run.state, raw, identity, days, unready)
        yield from replaying.days(switches)
        if not run.finished:
            yield from replaying.ending(switches)


@dataclass(frozen=True, slots=True)
class Progress:
    """A replay, the run that began it, and the days that are done."""

    replay: Replay
    begun: str
    done: frozenset[str] = frozenset()

    def step(self, window: Window | None = None, gone: Iterable[str] = ()) -> ReplayStep:
        """The step that a manifest records; with the days that it publishes."""
        days = {day.days[0]: day.is_whole_day for day in (window.by_day() if window else ())}
        raw = tuple(RawVersion(path, 0, None) for path in gone)
        return ReplayStep(self.replay, self.begun, days, raw)

    def has(self, state: SourceState, day: Window) -> DoneDay | None:
        """The other run that published a day: the same replay may run twice."""
        current = state.replays.find(self.replay)
        if current is None or current.begun != self.begun:
            return None
        return current.days.get(day.days[0])


def replay_of(
    source: Source,
    state: SourceState,
    window: Window,
    tables: frozenset[str] | None,
    suppression: Suppression | None = None,
) -> Replay:
    """What identifies a replay, whatever process or machine it runs on."""
    settings = source.model_dump(mode="json", exclude=_IMMATERIAL)
    requested_types = {
        schema.key: state.requested_types[schema.key]
        for table, schema in state.tables_of(source).items()
        if schema.key in state.requested_types and (tables is None or table in tables)
    }
    return Replay(
        start=window.start,
        end=window.end,
        tables=None if tables is None else tuple(sorted(tables)),
        settings=_fingerprint(settings),
        types=_fingerprint(requested_types),
        suppressed=suppression.fingerprint if suppression else "",
    )


def _fingerprint(value: object) -> str:
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:16]


def progress(
    context: RunContext,
    state: SourceState,
    raw: RawFiles,
    replay: Replay,
    days: Collection[Window],
    unready: Collection[str],
) -> Progress:
    """The progress of a replay when it starts; logs what it resumes, or why it does not.

    `unready` are days without files in the requested types that the replay should have written.
    """
    listener, anew = context.listener, Progress(replay, context.run_id)
    current = state.replays.find(replay)
    if current is None:
        for other in state.replays.open:
            if (other.replay.start, other.replay.end) == (replay.start, replay.end):
                differ = " and ".join(replay.differences(other.replay))
                listener.log(
                    f"A replay of the same range was interrupted (begun by run {other.begun}), but "
                    f"with other {differ}: this one begins at its first day."
                )
        return anew
    units = {day.days[0]: day for day in days}
    why = _changed(context, raw, current, units)
    if why is None and (lost := sorted({*current.days} & {*unready})):
        why = f"{lost[0]} no longer exists in the requested types"
    if why is not None:
        listener.warn(
            f"The replay that run {current.begun} began was interrupted and cannot be resumed: "
            f"{why}. It begins anew at its first day."
        )
        return anew
    listener.log(
        f"Resumes the replay that run {current.begun} began: {len(current.days)} of "
        f"{len(days)} days are in the lake ({_by_run(current)})."
    )
    done = takewhile(current.days.__contains__, units)  # a day is compared with earlier days
    return Progress(replay, current.begun, frozenset(done))


def _changed(
    context: RunContext, raw: RawFiles, current: OpenReplay, units: dict[str, Window]
) -> str | None:
    """Why finished days have to be repeated: changed raw files."""
    tables = None if current.replay.tables is None else frozenset(current.replay.tables)
    for day, done in sorted(current.days.items()):
        manifest = read_manifest(context.storage, context.source.id, done.manifest)
        if manifest is None or manifest.replay is None:
            return f"what {day} was made from is no longer known"
        read = {version.path: version for version in manifest.replay.raw}
        for path, version in read.items():
            if not raw.has(version):
                return f"{path}, of which {day} was made, is no longer the same"
        for file in plan_replay(raw, units[day], tables).files:
            entry = raw.ledger.get(file.path)
            synced = entry is not None and raw.has(entry)
            if file.path not in read and not synced:
                return f"{file.path} may have rows of {day}, and came later"
    return None


def _by_run(current: OpenReplay) -> str:
    """The finished days as ranges, each with its run."""
    days = sorted(current.days.items())
    parts: list[str] = []
    for run_id, group in groupby(days, key=lambda item: item[1].run_id):
        names = [day for day, _ in group]
        span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        parts.append(f"{span} by run {run_id}")
    return ", ".join(parts)


@dataclass
class Replaying:
    """A replay of some tables (None: all), and whether changed raw files were agreed to."""

    run: Run
    window: Window
    tables: frozenset[str] | None
    accept_changes: bool
    progress: Progress = field(init=False)

    def raw_files(self) -> RawFiles:
        """The current raw files; raises if files of the range changed after loading."""
        context = self.run.context
        raw = raw_files(context.storage, context.source, context.listener.log)
        if changes := self._require_consent(raw, self.window):
            context.listener.warn(agreed(changes))
        return raw

    def days(self, switches: Switches) -> Iterator[Published]:
        """Publish the remaining days one by one, or several at once if rows move between them."""
        done = max(self.progress.done, default="")
        for day in self.window.by_day():
            if day.days[0] <= done:
                continue
            with self.run.lease(f"replay of {day}"):
                published = self._day(day, switches)
            if published is not None:
                step = published.manifest.replay
                done = max(step.days) if step else done
                yield published

    def ending(self, switches: Switches) -> Iterator[Published]:
        """Switch tables to the requested types, if all is ready, and end the replay."""
        run = self.run
        for day in switches.left_out(run.catch_up()):
            with run.lease(f"replay of {day}"):
                published = self._publish(day, switches.tables, switches.tables)
            yield published
        with run.lease("end of the replay"):
            ended = self._end(switches)
        yield ended

    def _day(self, day: Window, switches: Switches) -> Published | None:
        done = self.progress.has(self.run.catch_up(), day)
        if done is not None:
            self.run.context.listener.log(f"{day}: run {done.run_id} has just done it")
            return None
        closes = not switches.possible(self.run.state)
        return self._publish(day, self.tables, switches.tables, self.window, closes)

    def _publish(
        self,
        day: Window,
        tables: frozenset[str] | None,
        switches: frozenset[str],
        range: Window | None = None,
        closes: bool = False,
    ) -> Published:
        """Replay one day; plans again if another run commits first, or rows move between days.

        The last day of the range ends the replay if it `closes` it. Without a range, the day is
        outside of the replay.
        """
        run, context = self.run, self.run.context
        while True:
            run.catch_up()
            raw = raw_files(context.storage, context.source, context.listener.log)
            if not self.accept_changes:
                self._require_consent(raw, day)
            step = self.progress.step(day, raw.gone(day)) if range else self.progress.step()
            unit = plan_replay(raw, day, tables, switches, step, range)
            try:
                return run.publish(unit, final=closes and day.end == self.window.end)
            except CommitConflict as conflict:
                context.listener.warn(str(conflict))
            except RowsMove as moved:
                context.listener.log(str(moved))
                day = moved.window

    def _require_consent(self, raw: RawFiles, window: Window) -> list[RawChange]:
        """Raw files that changed after loading: refused, unless agreed to or nothing is lost."""
        context, state = self.run.context, self.run.state
        changes = raw_changes(context.storage, state, raw, window)
        if changes and not self.accept_changes:
            rows = rows_held(context.partitions, context.source, state, window, self.tables)
            if rows:
                raise refusal(window, changes, rows)
        return changes

    def _end(self, switches: Switches) -> Published:
        run = self.run
        while True:
            state = run.catch_up()
            manifest = switches.manifest(state, run.done) or self._closing()
            manifest = msgspec.structs.replace(manifest, replay=self.progress.step())
            try:
                run.commit(manifest)
            except CommitConflict as conflict:
                run.context.listener.warn(str(conflict))
                continue
            for key in manifest.retyped:
                run.context.listener.log(f"{key} now has the requested types")
            return Published(manifest, UnitReport(), ())

    def _closing(self) -> Manifest:
        """Commit only the end of the replay: if launched again, it starts over."""
        run, source = self.run, self.run.context.source
        return msgspec.structs.replace(
            run.state.next_manifest(source, run.context.kind, run.context.facts),
            report=run.done,
            finish_time=now(),
        )

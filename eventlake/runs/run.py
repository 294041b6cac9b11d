"""A run in progress: its lease, its commits, its results, and its report."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date

import msgspec

from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import LakeError
from eventlake.rules.gc import gc_paused
from eventlake.rules.text import plural, size
from eventlake.runs.archive import Ignored
from eventlake.runs.clean_up import clean_up
from eventlake.runs.context import Published, RunContext, now
from eventlake.runs.dead_runs import close_dead_runs
from eventlake.runs.failures import close_failed, failure_of
from eventlake.runs.open_runs import close_run, close_upkeep, opened_run
from eventlake.runs.process import process
from eventlake.runs.publish import apply, catch_up
from eventlake.runs.record_log import last_numbers
from eventlake.runs.unit import Unit, UnitWork
from eventlake.runs.unknown_files import StateBehind
from eventlake.state.lease import Lease, held_lease, make_way, remove_dead_lease
from eventlake.state.manifest import IndexFile, Manifest, commit, note_abandoned
from eventlake.state.replays import Replay
from eventlake.state.source_state import SourceState, refuse_changed_layout
from eventlake.state.suppression import Suppression


@dataclass
class Run:
    """A run and its results so far."""

    context: RunContext
    done: UnitReport = field(default_factory=UnitReport)
    finished: bool = False
    log_files: dict[str, int] = field(default_factory=dict)
    made_ids: dict[object, tuple[IndexFile, ...]] = field(default_factory=dict)
    payload_types: dict[str, set[str]] = field(default_factory=dict)
    attempts: int = 0
    warned: dict[str, list[str]] = field(default_factory=dict)  # by kind
    state: SourceState = field(init=False)
    suppression: Suppression | None = field(init=False)  # as it was when the run was planned

    def __post_init__(self) -> None:
        context = self.context
        storage, catalog, source = context.storage, context.catalog, context.source
        for run_id in close_dead_runs(storage, catalog, source.id, now()):
            context.listener.warn(
                f"Run {run_id} had died without a report; it now has a failed one."
            )
        self.catch_up()
        self.look_up_people()
        refuse_changed_layout(source, self.state)

    def catch_up(self) -> SourceState:
        """Finish what another run left undone; returns the current state."""
        context = self.context
        self.state = catch_up(context.storage, context.catalog, context.source.id)
        return self.state

    def note_ignored(self, ignored: Sequence[Ignored]) -> None:
        """Record for the report which files of the archive are ignored."""
        texts = tuple(map(str, ignored))
        files = sum(one.files for one in ignored)
        self.done = msgspec.structs.replace(self.done, ignored_files=files, ignored=texts)

    def warn(self, warnings: Iterable[str]) -> None:
        """Log the first warning of each kind; those that follow in the run are counted."""
        for warning in warnings:
            alike = self.warned.setdefault(_kind(warning), [])
            alike.append(warning)
            if len(alike) == 1:
                self.context.listener.warn(warning)

    def _count_warnings(self) -> None:
        for first, *more in self.warned.values():
            if more:
                times = plural(len(more), "more warning")
                self.context.listener.warn(f"{times} like this one: {first}")
        self.warned.clear()

    def look_up_people(self) -> None:
        """Read the suppressed people; the run leaves them out from now on."""
        self.suppression = Suppression.of(self.context.storage, self.context.source)

    @contextmanager
    def reported(self, replay: Replay | None = None) -> Iterator[None]:
        """Whatever happens in the block, the run gets one report and leaves no staging."""
        context = self.context
        storage, catalog, facts = context.storage, context.catalog, context.facts
        before = self.state.manifest
        with opened_run(storage, facts, before, replay):
            try:
                yield
                if not self.finished:
                    close_run(storage, catalog, facts, self.done, now())
            except BaseException as error:
                failure = failure_of(error)
                close_failed(storage, catalog, facts, before, failure, self.catch_up)
                raise
            finally:
                self._count_warnings()
        self._clean_up()

    @contextmanager
    def unreported(self) -> Iterator[None]:
        """A run that loads nothing: listed while it is open, without a report."""
        context = self.context
        remove_dead_lease(context.storage, context.source.id)  # the lease may not be needed
        with opened_run(context.storage, context.facts, self.state.manifest, upkeep=True):
            try:
                yield
            except BaseException:
                with suppress(Exception):  # otherwise, the next run does it
                    self.catch_up()
                    close_upkeep(context.storage, context.facts)
                raise

    def _clean_up(self) -> None:
        """Remove what is due. The run is done, so errors are only warnings."""
        context = self.context
        try:
            done = clean_up(context.storage, context.catalog, context.source, self.state, now())
        except (LakeError, OSError) as error:
            context.listener.warn(f"Clean-up failed; the next run continues it. {error}")
            return
        if removed := done.replaced + done.abandoned:
            context.listener.log(
                f"Removed {plural(removed.files, 'file')}, {size(removed.bytes)}, that were "
                "replaced or left behind some time ago"
            )

    @contextmanager
    def lease(self, work: str) -> Iterator[None]:
        """Hold the lease of the source; a run that held it before lets waiting runs go first."""
        context = self.context
        if self.attempts:
            make_way(context.storage, context.source.id, context.run_id)

        def waiting(lease: Lease) -> None:
            context.listener.log(f"Waiting for {lease} on source {context.source.slug}")

        with held_lease(context.storage, context.source.id, context.run_id, work, waiting):
            yield

    def publish(self, unit: Unit, final: bool, start: date | None = None) -> Published:
        """Publish one unit: commit its manifest and apply it."""
        context = self.context
        # Files are named by this number, and a run that plans again restarts with its first unit.
        unit = replace(unit, number=self.attempts)
        self.attempts += 1
        flow = context.dataflow()
        work = UnitWork(
            context,
            unit,
            self.state,
            flow,
            start,
            self.suppression,
            self.log_files,
            made_ids=self.made_ids,
            payload_types=self.payload_types,
        )
        with gc_paused():
            try:
                prepared = process(work)
            except StateBehind as behind:
                note_abandoned(context.storage, context.source.id, context.run_id)
                self.commit(msgspec.structs.replace(behind.manifest, report=self.done))
                raise
            finally:
                flow.release()
            report = prepared.report.taken_along if unit.taken_along else prepared.report
            manifest = msgspec.structs.replace(
                prepared.manifest,
                report=self.done + report,
                finish_time=now() if final else None,
            )
            self.commit(manifest)
        self.warn(prepared.report.warnings)
        return Published(manifest, prepared.report, prepared.checks)

    def commit(self, manifest: Manifest) -> None:
        storage, catalog = self.context.storage, self.context.catalog
        storage.make_durable(manifest.written)
        commit(storage, manifest)
        self.done, self.finished = manifest.report, manifest.finish_time is not None
        self.log_files |= last_numbers(manifest.records)
        self.state = apply(storage, catalog, self.state, manifest)


_VARYING = re.compile(r"\d[\d,]*|\S+/\S*|\(in [^)]*\)")


def _kind(warning: str) -> str:
    """The kind of a warning: its text without numbers, paths and tables. Commands stay in it."""
    return warning if "`datalake" in warning else _VARYING.sub("", warning)


def run_to_end(units: Iterable[Published]) -> UnitReport:
    """Publish every unit; returns the report of the whole run."""
    done = UnitReport()
    for unit in units:
        done = unit.manifest.report
    return done

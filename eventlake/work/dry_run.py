"""A sync or replay that only says what it would change: all is counted, nothing is published.

It needs no lease: it reads one state of the lake and thinks the rest. What it writes lies in its
own staging, and goes.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date

import msgspec

from eventlake.rules import paths
from eventlake.rules.counts import UnitReport
from eventlake.rules.types import LakeType
from eventlake.state.manifest import Manifest, PartitionChange, read_manifest
from eventlake.state.source_state import SourceState, read_state, refuse_changed_layout
from eventlake.state.suppression import Suppression
from eventlake.work.plan import plan_replay, plan_sync, raw_files, replay_days
from eventlake.work.planned_catalog import PlannedCatalog
from eventlake.work.process import process
from eventlake.work.raw_changes import raw_changes, what_changed
from eventlake.work.resume import progress, replay_of
from eventlake.work.run_context import RunContext
from eventlake.work.switch import Switches
from eventlake.work.unit import Unit, Window
from eventlake.work.unit_work import UnitWork


class PlannedPartition(msgspec.Struct, frozen=True):
    """A partition's rows as they are and as they would be; None: it would be dropped."""

    table: str
    values: tuple[str, ...]
    rows_now: int
    rows_then: int | None


class PlannedUnit(msgspec.Struct, frozen=True):
    """What one unit of work would do."""

    label: str
    report: UnitReport
    partitions: tuple[PlannedPartition, ...]
    switches: dict[str, dict[str, LakeType]] = {}  # types that tables would get in the end


Planned = Generator[PlannedUnit, None, None]


def dry_sync(context: RunContext, days: tuple[date, date] | None = None) -> Planned:
    """What a sync would do, unit by unit."""
    with _rehearsal(context) as rehearsal:
        plan = plan_sync(context.storage, context.source, rehearsal.state, days)
        for warning in plan.warnings:
            context.listener.warn(warning)
        for unit in plan.units:
            yield rehearsal.unit(unit, plan.start)


def dry_replay(
    context: RunContext, window: Window, tables: frozenset[str] | None = None
) -> Planned:
    """What a replay would do, day by day; raw files that changed are told, not refused."""
    days = replay_days(context.source, window)
    raw = raw_files(context.storage, context.source)
    with _rehearsal(context) as rehearsal:
        state = rehearsal.state
        if changes := raw_changes(context.storage, state, raw, window):
            context.listener.warn(what_changed(window, changes))
        first_day = raw.archive.start(context.source, state)
        switches = Switches(rehearsal.context, state, window, tables, first_day)
        identity = replay_of(context.source, state, window, tables, rehearsal.suppression)
        unready = switches.unready(state)
        done = progress(context, state, raw, identity, days, unready).done
        for day in days:
            if day.days[0] not in done:
                unit = replace(plan_replay(raw, day, tables), switches=switches.tables)
                yield rehearsal.unit(unit)
        for day in switches.left_out(rehearsal.state):
            unit = plan_replay(raw, day, switches.tables)
            yield rehearsal.unit(replace(unit, switches=switches.tables))


@contextmanager
def _rehearsal(context: RunContext) -> "Iterator[_Rehearsal]":
    rehearsal = _Rehearsal(context)
    try:
        yield rehearsal
    finally:
        context.storage.delete_folder(paths.stage(context.source.id, context.run_id))
    if read_manifest(context.storage, context.source.id, rehearsal.number + 1) is not None:
        context.listener.warn(
            "Another run has changed the lake meanwhile: these numbers are those of before."
        )


class _Rehearsal:
    """The lake as it would be after each unit."""

    state: SourceState

    def __init__(self, context: RunContext) -> None:
        source = context.source
        self._catalog = PlannedCatalog(context.catalog, source.date_partition)
        self._units = 0
        self.context = replace(context, catalog=self._catalog)
        self.state = read_state(context.storage, source.id)
        # Of a run that has just died, or is about to, it may be committed and not applied.
        while manifest := read_manifest(context.storage, source.id, self.state.manifest + 1):
            self._apply(manifest)
        self.number = self.state.manifest
        refuse_changed_layout(source, self.state)
        self.suppression = Suppression.of(context.storage, source)

    def unit(self, unit: Unit, start: date | None = None) -> PlannedUnit:
        unit = replace(unit, number=self._units)
        self._units += 1
        before, flow = self.state, self.context.dataflow()
        work = UnitWork(self.context, unit, before, flow, start, self.suppression, dry=True)
        try:
            done = process(work)
        finally:
            flow.release()
        self._apply(done.manifest)
        for warning in done.report.warnings:
            self.context.listener.warn(warning)
        return PlannedUnit(
            label=unit.label,
            report=done.report,
            partitions=tuple(map(_planned, done.manifest.partitions)),
            switches={key: dict(before.wishes[key]) for key in done.manifest.switching}
            if unit.switches
            else {},
        )

    def _apply(self, manifest: Manifest) -> None:
        self.state = self.state.after(manifest)
        self._catalog.apply(self.state, manifest)


def _planned(change: PartitionChange) -> PlannedPartition:
    then = None if change.dropped else change.rows
    return PlannedPartition(change.table, change.values, change.rows_before, then)

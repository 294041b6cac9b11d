"""A sync or replay that only reports what it would change, and publishes nothing.

It needs no lease: it reads one state of the lake and simulates the commits. It writes only to its
own staging, which is removed.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date

import msgspec

from eventlake.rules import paths
from eventlake.rules.counts import CastCounts, TableReport, UnitReport
from eventlake.rules.types import LakeType
from eventlake.runs.context import RunContext
from eventlake.runs.dedup import RowsMove
from eventlake.runs.plan import plan_replay, plan_sync, raw_files, replay_days
from eventlake.runs.process import process
from eventlake.runs.raw_changes import raw_changes, what_changed
from eventlake.runs.replay import progress, replay_of
from eventlake.runs.retype import Switches
from eventlake.runs.unit import Unit, UnitWork, Window
from eventlake.state.manifest import Manifest, PartitionChange, read_manifest
from eventlake.state.source_state import (
    SourceState,
    read_state,
    refuse_changed_layout,
)
from eventlake.state.suppression import Suppression


class PlannedPartition(msgspec.Struct, frozen=True):
    """The rows of a partition now and then; None: it would be dropped."""

    table: str
    values: tuple[str, ...]
    rows_now: int
    rows_then: int | None


class PlannedUnit(msgspec.Struct, frozen=True):
    """The effect of one unit of work."""

    label: str
    report: UnitReport
    partitions: tuple[PlannedPartition, ...]
    switches: dict[str, dict[str, LakeType]] = {}  # types that tables would get in the end
    taken_along: bool = False  # a day outside of the range


Planned = Generator[PlannedUnit, None, None]


def dry_sync(context: RunContext, days: tuple[date, date] | None = None) -> Planned:
    """The effect of a sync, unit by unit."""
    with _rehearsal(context) as rehearsal:
        plan = plan_sync(context.storage, context.source, rehearsal.state, days)
        for warning in plan.warnings:
            context.listener.warn(warning)
        for unit in plan.units:
            yield rehearsal.unit(unit, plan.start)


def dry_replay(
    context: RunContext, window: Window, tables: frozenset[str] | None = None
) -> Planned:
    """The effect of a replay, day by day; changed raw files are reported, not refused."""
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
        until = max((day.end for day in days if day.days[0] in done), default=window.start)
        for day in days:
            while day.start >= until:
                unit = plan_replay(raw, day, tables, switches.tables, range=window)
                try:
                    planned = rehearsal.unit(unit)
                except RowsMove as moved:
                    day = moved.window
                    continue
                until = day.end
                yield planned
        for day in switches.left_out(rehearsal.state):
            yield rehearsal.unit(plan_replay(raw, day, switches.tables, switches.tables))


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
        self._units = 0
        self.context = context
        self.state = read_state(context.storage, source.id)
        # A crashed run may have committed a manifest that is not applied.
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
            switches={key: dict(before.requested_types[key]) for key in done.manifest.switching}
            if unit.switches
            else {},
            taken_along=unit.taken_along,
        )

    def _apply(self, manifest: Manifest) -> None:
        self.state = self.state.after(manifest)
        planned = self.context.partitions.with_plan(manifest).planned
        self.context = replace(self.context, planned=planned)


def _planned(change: PartitionChange) -> PlannedPartition:
    then = None if change.dropped else change.rows
    return PlannedPartition(change.table, change.values, change.rows_before, then)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """All units of a dry run."""

    report: UnitReport
    partitions: tuple[PlannedPartition, ...]  # that would be created, changed or dropped
    switches: dict[str, dict[str, LakeType]]  # types that tables would get in the end
    row_sums: dict[str, tuple[int, int]]  # by table: now and then, in these partitions

    @property
    def tables(self) -> list[str]:
        """Tables with rows to load, then tables that would only lose rows."""
        return list(dict.fromkeys([*self.report.tables, *(p.table for p in self.partitions)]))

    def table(self, key: str) -> TableReport:
        name = key.split(".", 1)[1]
        return self.report.tables.get(key, TableReport(name, name, rows_in=0))

    @property
    def losing_casts(self) -> dict[tuple[str, str], CastCounts]:
        """Columns, by table and name, with lossy or failed casts."""
        return {
            (key, column): counts
            for key, table in self.report.tables.items()
            for column, counts in table.casts.items()
            if counts.lossy or counts.failed
        }

    def rows(self, table: str) -> tuple[int, int]:
        """Rows now and then, in the partitions of a table that would change."""
        return self.row_sums.get(table, (0, 0))


def planned_run(units: Iterable[PlannedUnit]) -> PlannedRun:
    """A partition may be in several units of a sync: the last of them counts."""
    report, switches = UnitReport(), dict[str, dict[str, LakeType]]()
    partitions: dict[tuple[str, ...], PlannedPartition] = {}
    for unit in units:
        report += unit.report.taken_along if unit.taken_along else unit.report
        switches |= unit.switches
        for partition in unit.partitions:
            key = (partition.table, *partition.values)
            now = partitions.get(key, partition).rows_now
            partitions[key] = PlannedPartition(
                partition.table, partition.values, now, partition.rows_then
            )
    sums: dict[str, tuple[int, int]] = {}
    for partition in partitions.values():
        now, then = sums.get(partition.table, (0, 0))
        sums[partition.table] = now + partition.rows_now, then + (partition.rows_then or 0)
    in_order = tuple(partitions[key] for key in sorted(partitions))
    return PlannedRun(report, in_order, switches, sums)

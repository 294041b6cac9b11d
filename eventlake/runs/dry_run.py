"""A sync or replay that only reports what it would change: it counts, and publishes nothing.

It needs no lease: it reads one state of the lake and thinks the rest. What it writes lies in its
own staging, and goes.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date

import msgspec

from eventlake.catalog.base import (
    Catalog,
    CatalogPartition,
    CatalogTable,
    Days,
    partition_day,
)
from eventlake.rules import paths
from eventlake.rules.counts import CastCounts, TableReport, UnitReport
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import LakeType
from eventlake.runs.context import RunContext
from eventlake.runs.plan import plan_replay, plan_sync, raw_files, replay_days
from eventlake.runs.process import process
from eventlake.runs.publish import catalog_partition
from eventlake.runs.raw_changes import raw_changes, what_changed
from eventlake.runs.replay import progress, replay_of
from eventlake.runs.retype import Switches
from eventlake.runs.unit import Unit, UnitWork, Window
from eventlake.state.manifest import Manifest, PartitionChange, read_manifest
from eventlake.state.source_state import (
    SourceState,
    partition_name,
    read_state,
    refuse_changed_layout,
)
from eventlake.state.suppression import Suppression

PlannedPartitions = dict[str, CatalogPartition | None]
"""By partition; None is one that is dropped."""


class PlannedCatalog:
    """Answers like the catalog behind it, after changes that are nowhere but in here."""

    def __init__(self, real: Catalog, layout: DatePartition) -> None:
        self._real = real
        self._layout = layout
        self._tables: dict[str, PlannedPartitions] = {}

    def apply(self, after: SourceState, manifest: Manifest) -> None:
        """Remember what a manifest would do; `after` is the state it would lead to."""
        for schema in manifest.tables:
            self._tables.setdefault(schema.key, {})
        for change in manifest.partitions:
            planned = self._tables.setdefault(after.tables[change.table].key, {})
            planned[partition_name(change.values)] = (
                None if change.dropped else catalog_partition(change, manifest.number)
            )

    def databases(self) -> list[str]:
        return self._real.databases()

    def count_databases(self) -> int:
        return self._real.count_databases()

    def tables(self, database: str) -> list[CatalogTable]:
        return self._real.tables(database)

    def table(self, database: str, name: str) -> CatalogTable | None:
        return self._real.table(database, name)

    def names(self, database: str) -> set[str] | None:
        real = self._real.names(database)
        mine = {key.split(".", 1)[1] for key in self._tables if key.split(".", 1)[0] == database}
        return real if real is None and not mine else (real or set()) | mine

    def partitions(
        self, database: str, name: str, days: Days | None = None
    ) -> list[CatalogPartition]:
        planned = self._tables.get(f"{database}.{name}")
        if planned is None:
            return self._real.partitions(database, name, days)
        there = name in (self._real.names(database) or ())
        real = self._real.partitions(database, name, days) if there else []
        known: PlannedPartitions = {partition_name(p.values): p for p in real}
        known |= {key: p for key, p in planned.items() if p is None or self._within(p, days)}
        return sorted(_present(known.values()), key=lambda partition: partition.values)

    def leftovers(self, database: str, name: str) -> list[str]:
        return self._real.leftovers(database, name)

    def ensure_database(self, database: str) -> None:
        raise _changes_nothing()

    def create_table(self, table: CatalogTable) -> bool:
        raise _changes_nothing()

    def create_tables(self, tables: object) -> list[bool]:
        raise _changes_nothing()

    def restore(self, table: CatalogTable) -> None:
        raise _changes_nothing()

    def append_columns(self, database: str, name: str, columns: object) -> None:
        raise _changes_nothing()

    def put_partitions(self, database: str, name: str, partitions: object) -> None:
        raise _changes_nothing()

    def put_all(self, partitions: object) -> None:
        raise _changes_nothing()

    def drop_partitions(self, database: str, name: str, values: object, version: int) -> None:
        raise _changes_nothing()

    def retype(
        self, database: str, name: str, types: object, partitions: object, version: int
    ) -> None:
        raise _changes_nothing()

    def _within(self, partition: CatalogPartition, days: Days | None) -> bool:
        if days is None:
            return True
        return days[0] <= partition_day(self._layout.keys, partition.values) <= days[1]


def _changes_nothing() -> AssertionError:
    return AssertionError("a dry run changes no catalog")


def _present(partitions: Iterable[CatalogPartition | None]) -> list[CatalogPartition]:
    return [partition for partition in partitions if partition is not None]


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
    """What a replay would do, day by day; changed raw files are reported, not refused."""
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
            switches={key: dict(before.requested_types[key]) for key in done.manifest.switching}
            if unit.switches
            else {},
        )

    def _apply(self, manifest: Manifest) -> None:
        self.state = self.state.after(manifest)
        self._catalog.apply(self.state, manifest)


def _planned(change: PartitionChange) -> PlannedPartition:
    then = None if change.dropped else change.rows
    return PlannedPartition(change.table, change.values, change.rows_before, then)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """All units of a dry run."""

    report: UnitReport
    partitions: tuple[PlannedPartition, ...]  # that would be made, changed or dropped
    switches: dict[str, dict[str, LakeType]]  # types that tables would get in the end
    row_sums: dict[str, tuple[int, int]]  # by table: now and then, in these partitions

    @property
    def tables(self) -> list[str]:
        """Tables with rows to load, then those that would only lose some."""
        return list(dict.fromkeys([*self.report.tables, *(p.table for p in self.partitions)]))

    def table(self, key: str) -> TableReport:
        name = key.split(".", 1)[1]
        return self.report.tables.get(key, TableReport(name, name, rows_in=0))

    @property
    def losing_casts(self) -> dict[tuple[str, str], CastCounts]:
        """Columns, by table and name, in which values would lose something or not fit."""
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
    """One partition may be in several units of a sync: then is what the last of them leaves."""
    report, switches = UnitReport(), dict[str, dict[str, LakeType]]()
    partitions: dict[tuple[str, ...], PlannedPartition] = {}
    for unit in units:
        report += unit.report
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

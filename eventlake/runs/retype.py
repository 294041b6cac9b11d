"""Retype: switches a table to the requested types, all of its files and the catalog in one commit.

A replay of all days of the table writes shadows (copies in the requested types) of its partitions,
day by day, and finally moves all partitions to them. Days that no replay can cover, because they
are before the first day of the source or in the future, are included.

Until the switch, shadows have to match their partitions. So a replay writes each partition twice,
and a sync writes new partitions, and partitions with a shadow, twice. A manifest that changes a
partition without a shadow invalidates its shadow.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

import msgspec
from msgspec.structs import replace

from eventlake.catalog.base import CatalogPartition
from eventlake.load.blobs import rows_key
from eventlake.load.write import LoadedFile
from eventlake.rules.counts import UnitReport
from eventlake.rules.types import TableSchema
from eventlake.runs.clean_up import with_unused
from eventlake.runs.context import RunContext, now
from eventlake.runs.placement import Placement, Placer, new_files, partition_values
from eventlake.runs.resolve import ResolvedTable
from eventlake.runs.unit import UnitWork, Window
from eventlake.state.manifest import Manifest, PartitionChange
from eventlake.state.source_state import SourceState, partition_name

DAY = timedelta(days=1)


class Switches:
    """The tables that a replay switches, and the remaining work."""

    def __init__(
        self,
        context: RunContext,
        state: SourceState,
        window: Window,
        tables: frozenset[str] | None,
        first_day: date | None,
    ) -> None:
        self._context = context
        self._window = window
        self._first_day = first_day or date.min
        self._chosen = {
            table: schema
            for table, schema in state.tables_of(context.source).items()
            if tables is None or table in tables
        }
        self.tables = frozenset(
            table
            for table, schema in self._chosen.items()
            if schema.key in state.requested_types and self._covered(schema, state)
        )

    def possible(self, state: SourceState) -> bool:
        """Whether the run may end with a switch."""
        return bool(self.tables) or any(s.key in state.shadows for s in self._chosen.values())

    def left_out(self, state: SourceState) -> Iterator[Window]:
        """Days without shadows that no replay can cover."""
        days: set[date] = set()
        for schema in (self._chosen[table] for table in self.tables):
            stray = [p for p in self._partitions(schema, state) if self._is_stray(p)]
            days |= {self._day(p) for p in self._lacking(schema, state, stray)}
        for day in sorted(days - {date.max}):  # which has no next day
            midnight = datetime(day.year, day.month, day.day, tzinfo=self._window.start.tzinfo)
            yield Window(midnight, midnight + DAY)

    def unready(self, state: SourceState) -> set[str]:
        """Days that lack files in the requested types."""
        return {
            self._day(partition).isoformat()
            for schema in (self._chosen[table] for table in self.tables)
            for partition in self._lacking(schema, state, self._partitions(schema, state))
        }

    def manifest(self, state: SourceState, done: UnitReport) -> Manifest | None:
        """The manifest of the switch of all tables that are ready; warns about the others."""
        ready: list[TableSchema] = []
        for table, schema in self._chosen.items():
            if schema.key not in state.shadows:
                continue
            lacking = self._lacking(schema, state, self._partitions(schema, state))
            if not lacking:
                ready.append(state.tables[schema.key])
            elif table in self.tables:
                self._context.listener.warn(_not_yet(schema, lacking))
        if not ready:
            return None
        source = self._context.source
        manifest = replace(
            state.next_manifest(source, self._context.kind, self._context.facts),
            tables=tuple(s.with_types(state.requested_types[s.key]) for s in ready),
            partitions=tuple(change for schema in ready for change in self._moved(schema, state)),
            report=done,
            finish_time=now(),
            retyped=tuple(schema.key for schema in ready),
        )
        return with_unused(state, manifest, now())

    def _covered(self, schema: TableSchema, state: SourceState) -> bool:
        left_out = [
            partition
            for partition in self._partitions(schema, state)
            if not self._window.holds(self._start(partition)) and not self._is_stray(partition)
        ]
        if left_out:
            requested = ", ".join(
                f"{column} {type.sql}" for column, type in state.requested_types[schema.key].items()
            )
            days = sorted({self._day(partition) for partition in left_out})
            self._context.listener.warn(
                f"{schema.key} keeps its types, although {requested} is requested: this replay "
                f"leaves out {len(days)} of the table's days ({days[0]} to {days[-1]}), and files "
                "of one table have one type. Replay all of its days to switch."
            )
        return not left_out

    def _lacking(
        self, schema: TableSchema, state: SourceState, partitions: list[CatalogPartition]
    ) -> list[CatalogPartition]:
        """Partitions whose rows are not completely available in the requested types."""
        shadows = state.shadows.get(schema.key, {})
        with ThreadPoolExecutor(16) as pool:
            ready = pool.map(
                self._is_ready,
                partitions,
                (shadows.get(partition_name(p.values)) for p in partitions),
            )
            return [p for p, is_ready in zip(partitions, ready, strict=True) if not is_ready]

    def _moved(self, schema: TableSchema, state: SourceState) -> Iterator[PartitionChange]:
        """The changes that move all partitions of a table to their shadows."""
        before = {p.values: p.location for p in self._partitions(schema, state)}
        for shadow in state.shadows[schema.key].values():
            yield PartitionChange.whole(schema.key, shadow, before[shadow.values])

    def _is_ready(self, partition: CatalogPartition, shadow: CatalogPartition | None) -> bool:
        """Whether a shadow exists and matches its partition."""
        if shadow is None or (shadow.version, shadow.rows) != (partition.version, partition.rows):
            return False
        files = self._context.storage.files(shadow.location, recursive=False)
        return (len(files), sum(f.size for f in files)) == (shadow.files, shadow.bytes)

    def _partitions(self, schema: TableSchema, state: SourceState) -> list[CatalogPartition]:
        return self._context.partitions.of(state, schema)

    def _start(self, partition: CatalogPartition) -> datetime:
        return self._context.source.date_partition.parse(partition.values)

    def _day(self, partition: CatalogPartition) -> date:
        return self._start(partition).date()

    def _is_stray(self, partition: CatalogPartition) -> bool:
        """Whether a partition lies outside the days that can be replayed: the first to today."""
        today = self._context.facts.start_time.date()
        return not self._first_day <= self._day(partition) <= today


def _not_yet(schema: TableSchema, lacking: Iterable[CatalogPartition]) -> str:
    first, *more = (partition_name(partition.values) for partition in lacking)
    others = f" and {len(more)} more partitions" if more else ""
    return (
        f"{schema.key} keeps its types for now: {first}{others} came, or the request changed, "
        "while the replay was under way. Replay all of the table's days once more to switch."
    )


@dataclass(frozen=True, slots=True)
class Shadow:
    """The shadow of a partition: its folder, the paths of its new files, its current files."""

    location: str
    written_to: str
    before: CatalogPartition | None = None


@dataclass(frozen=True, slots=True)
class Shadows:
    """The part of a unit that is written a second time."""

    switching: tuple[str, ...] = ()  # keys of the tables
    schemas: dict[str, TableSchema] = field(default_factory=dict)  # in requested types
    by_key: dict[str, Shadow] = field(default_factory=dict)  # by key of the staged rows
    lasting: dict[str, str] = field(default_factory=dict)  # folders in which the run leaves rows

    @property
    def targets(self) -> dict[str, str]:
        """The paths of their files by key of the staged rows, without extension."""
        return {key: shadow.written_to for key, shadow in self.by_key.items()}

    def noted(self, manifest: Manifest, loaded: Iterable[LoadedFile]) -> Manifest:
        """The manifest of the unit, with its shadows."""
        changes = tuple(self._changes(loaded))
        return msgspec.structs.replace(manifest, switching=self.switching, shadows=changes)

    def _changes(self, loaded: Iterable[LoadedFile]) -> Iterable[PartitionChange]:
        files: dict[str, list[LoadedFile]] = {}
        for file in loaded:
            if file.shadow is not None:
                files.setdefault(rows_key(file.table, file.partition), []).append(file.shadow)
        for key, new in sorted(files.items()):
            shadow = self.by_key[key]
            before = shadow.before or CatalogPartition((), shadow.location, 0)
            yield PartitionChange(
                table=self.schemas[new[0].table].key,
                values=partition_values(new[0].partition),
                location=shadow.location,
                added=new_files(new, shadow.location),
                rows=before.rows + sum(file.rows for file in new),
                bytes=before.bytes + sum(file.size for file in new),
                files=before.files + len(new),
                rows_before=before.rows,
                kept=before.held,
            )


def shadows_of(
    work: UnitWork, resolved: Mapping[str, ResolvedTable], placements: Mapping[str, Placement]
) -> Shadows:
    """The partitions of a unit that get shadows, with the location of each."""
    state, unit = work.state, work.unit
    types = {t: w for t, s in work.tables.items() if (w := state.requested_types.get(s.key))}
    active = {t for t in types if t in unit.switches or work.tables[t].key in state.shadows}
    schemas = {t: resolved[t].schema.with_types(types[t]) for t in active if t in resolved}
    placer = Placer(work.context.source.id, work.context.run_id, unit)
    by_key: dict[str, Shadow] = {}
    for key, placement in placements.items():
        if placement.schema.table not in schemas:
            continue
        values = partition_values(placement.partition)
        held = state.shadows.get(placement.schema.key, {}).get(partition_name(values))
        if unit.window is not None or placement.before is None:
            folder = placer.version_folder(placement.schema, placement.partition, "-retyped")
            by_key[key] = Shadow(folder, placer.inside(folder))
        elif held is not None:
            aside = placer.aside(placement.schema, placement.partition, "retyped/")
            by_key[key] = Shadow(held.location, aside, held)
    switching = tuple(sorted(work.tables[table].key for table in active))
    lasting = {
        key: shadow.location
        for key, shadow in by_key.items()
        if placements[key].schema.table in unit.switches
    }
    return Shadows(switching, schemas, by_key, lasting)

"""Shadows: the rows of partitions in the types wished of their table, where no reader looks.

From the first day of a replay that is to switch a table until the switch, no unit changes a
partition and leaves a shadow of it behind that holds something else: a replay writes the partitions
it makes anew twice, and a sync those that are new and those that have a shadow. What a manifest
changes without saying more is without a shadow from then on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from eventlake.catalog.base import CatalogPartition
from eventlake.load.blobs import rows_key
from eventlake.load.write import LoadedFile
from eventlake.resolve import ResolvedTable
from eventlake.rules.types import TableSchema
from eventlake.state.manifest import Manifest, PartitionChange
from eventlake.state.source_state import partition_name
from eventlake.work.placing import Placement, Placer, new_files, partition_values
from eventlake.work.unit_work import UnitWork


@dataclass(frozen=True, slots=True)
class Shadow:
    """The folder of a partition's shadow, where its new files lie until then, what it holds."""

    location: str
    written_to: str
    before: CatalogPartition | None = None


@dataclass(frozen=True, slots=True)
class Shadows:
    """What of a unit is written a second time."""

    switching: tuple[str, ...] = ()  # keys of the tables
    schemas: dict[str, TableSchema] = field(default_factory=dict)  # as they are wished, by table
    places: dict[str, Shadow] = field(default_factory=dict)  # by key of the staged rows
    targets: dict[str, str] = field(default_factory=dict)  # the same, files without their ending
    lasting: dict[str, str] = field(default_factory=dict)  # folders in which the run leaves rows

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
            shadow = self.places[key]
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
            )


def shadows_of(
    work: UnitWork, resolved: Mapping[str, ResolvedTable], placements: Mapping[str, Placement]
) -> Shadows:
    """Which of a unit's partitions get shadows, and where these lie."""
    state, unit = work.state, work.unit
    wishes = {t: w for t, s in work.tables.items() if (w := state.wishes.get(s.key))}
    active = {t for t in wishes if t in unit.switches or work.tables[t].key in state.shadows}
    schemas = {t: resolved[t].schema.with_types(wishes[t]) for t in active if t in resolved}
    placer = Placer(work.context.source.id, work.context.run_id, unit)
    places: dict[str, Shadow] = {}
    targets: dict[str, str] = {}
    for key, placement in placements.items():
        if placement.schema.table not in schemas:
            continue
        values = partition_values(placement.partition)
        held = state.shadows.get(placement.schema.key, {}).get(partition_name(values))
        if unit.window is not None or placement.before is None:
            place = placer.version_folder(placement.schema, placement.partition, "-retyped")
            places[key] = Shadow(place, placer.inside(place))
        elif held is not None:
            aside = placer.aside(placement.schema, placement.partition, "retyped/")
            places[key] = Shadow(held.location, aside, held)
        else:
            continue
        targets[key] = places[key].written_to
    switching = tuple(sorted(work.tables[table].key for table in active))
    lasting = {
        key: shadow.location
        for key, shadow in places.items()
        if placements[key].schema.table in unit.switches
    }
    return Shadows(switching, schemas, places, targets, lasting)

"""The paths of the files of a unit, and the partitions that it extends, replaces or empties."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import msgspec

from eventlake.catalog.base import CatalogPartition
from eventlake.load.blobs import rows_key
from eventlake.load.seen import Seen
from eventlake.load.write import LoadedFile
from eventlake.rules import paths
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import TableSchema
from eventlake.runs.resolve import ResolvedTable
from eventlake.runs.unit import Unit, UnitWork
from eventlake.state.manifest import NewFile, PartitionChange

SPLIT_BYTES = 512 << 20
"""Staged bytes per file, about 256 MB of Parquet; more become several files."""


class Placement(msgspec.Struct, frozen=True):
    """The folder of a partition after the unit, and the paths of its new files until then, without
    number and extension."""

    schema: TableSchema
    partition: str
    location: str
    written_to: str
    splits: int
    before: CatalogPartition | None
    keeps: bool  # whether the current files of the partition stay

    @property
    def moves(self) -> bool:
        return self.before is not None and self.before.location != self.location


def splits(staged_bytes: int) -> int:
    return max(1, -(-staged_bytes // SPLIT_BYTES))


WAITING = 2
"""Number of folders with files to publish, and of threads that move them."""


@dataclass(frozen=True, slots=True)
class Placer:
    """Applies the rule of publication: additional files and new partitions go into the folder of
    the partition; everything else rewrites the partition into a version folder."""

    source_id: str
    run_id: str
    unit: Unit

    def placement(
        self,
        schema: TableSchema,
        partition: str,
        staged: int,
        before: CatalogPartition | None,
        own_folder: bool = True,
    ) -> Placement:
        count = splits(staged)
        replaces = self.unit.window is not None
        if not replaces and (before is None or count == 1) and (before or own_folder):
            location = (
                before.location
                if before
                else paths.partition_folder(self.source_id, schema.table, partition)
            )
            aside = self.aside(schema, partition)
            return Placement(schema, partition, location, aside, count, before, keeps=True)
        location = self.version_folder(schema, partition)
        stem = self.inside(location)
        return Placement(schema, partition, location, stem, count, before, keeps=not replaces)

    def aside(self, schema: TableSchema, partition: str, inside: str = "") -> str:
        """The folder in which files wait until they are moved to a folder that readers use.

        A few folders serve all tables: removing one takes some 3 ms on disks mounted with
        `discard`. More than one, because threads that move files out of the same folder block
        each other.
        """
        place = crc32(schema.table.encode()) % WAITING
        stage = f"{paths.stage(self.source_id, self.run_id)}/{self.unit.number}/{place}"
        return f"{stage}/{inside}{paths.unpublished_name(schema.table, partition, self.file_stem)}"

    def inside(self, folder: str) -> str:
        return f"{folder}/{self.file_stem}"

    def version_folder(self, schema: TableSchema, partition: str, kind: str = "") -> str:
        """A new version folder."""
        # A later unit of the same run may rewrite the same partition again.
        version = f"{self.run_id}-{self.unit.number}" if self.unit.number else self.run_id
        return paths.version_folder(self.source_id, version + kind, schema.table, partition)

    @property
    def file_stem(self) -> str:
        return f"{self.run_id}-{self.unit.number}"


def place_partitions(
    work: UnitWork, seen: Seen, resolved: dict[str, ResolvedTable]
) -> dict[str, Placement]:
    """The placement of each table and partition."""
    source = work.context.source
    placer = Placer(source.id, work.context.run_id, work.unit)
    placements: dict[str, Placement] = {}
    staged = {key: size for key, size in seen.staged_bytes().items() if key[0] in resolved}
    before = _before(work, seen, {table: resolved[table] for table, _ in staged})
    # Files of a dropped partition are still in its folder, and would return with it.
    dropped = {t: work.state.dropped.get(one.schema.key, ()) for t, one in resolved.items()}
    for (table, partition), size in sorted(staged.items()):
        schema = resolved[table].schema
        values = partition_values(partition)
        own_folder = schema.owns_folder and values not in dropped[table]
        placements[rows_key(table, partition)] = placer.placement(
            schema, partition, size, before.get((table, values)), own_folder
        )
    return placements


def _before(
    work: UnitWork, seen: Seen, resolved: dict[str, ResolvedTable]
) -> dict[tuple[str, tuple[str, ...]], CatalogPartition]:
    """The existing partitions of the days of the rows, by table and values."""
    if not resolved:
        return {}
    days = seen.days()
    old = {table: one.schema for table, one in resolved.items() if not one.is_new}
    found = work.partitions(old, (days[0], days[-1]))
    return {(table, p.values): p for table, held in found.items() for p in held}


@lru_cache(maxsize=10_000)  # the same hours, in every table
def partition_values(partition: str) -> tuple[str, ...]:
    """The values in a partition's path: `day=2026-10-01/hr=07`."""
    return tuple(part.split("=", 1)[1] for part in partition.split("/"))


def partition_dict(layout: DatePartition, partition: str) -> dict[str, str]:
    return dict(zip(layout.keys, partition_values(partition), strict=True))


def partition_changes(
    work: UnitWork, placements: Mapping[str, Placement], loaded: Iterable[LoadedFile]
) -> list[PartitionChange]:
    """The change of each partition that got files."""
    files: dict[str, list[LoadedFile]] = {}
    for file in loaded:
        if file.path:
            files.setdefault(rows_key(file.table, file.partition), []).append(file)
    if not work.dry:
        copies = [copy for key in sorted(files) for copy in _kept(placements[key])]
        work.context.storage.copy_all(copies)
    return [_change(placements[key], new) for key, new in sorted(files.items())]


def _kept(placement: Placement) -> list[tuple[str, str]]:
    """The files that move with their partition, each with its new path."""
    if not placement.moves or placement.before is None or not placement.keeps:
        return []
    before = placement.before
    return [(f"{before.location}/{f.name}", f"{placement.location}/{f.name}") for f in before.held]


def _change(placement: Placement, new: list[LoadedFile]) -> PartitionChange:
    before = placement.before if placement.keeps else None
    return PartitionChange(
        table=placement.schema.key,
        values=partition_values(placement.partition),
        location=placement.location,
        added=new_files(new, placement.location),
        rows=(before.rows if before else 0) + sum([file.rows for file in new]),
        bytes=(before.bytes if before else 0) + sum([file.size for file in new]),
        files=(before.files if before else 0) + len(new),
        rows_before=placement.before.rows if placement.before else 0,
        left=placement.before.location if placement.before and placement.moves else None,
        kept=before.held if before else (),
    )


def new_files(written: list[LoadedFile], location: str) -> tuple[NewFile, ...]:
    """Written files, each with its path in the final folder."""
    return tuple(
        NewFile(file.path, f"{location}/{paths.published_name(file.path)}", file.rows, file.size)
        for file in sorted(written, key=lambda file: paths.published_name(file.path))
    )


def emptied(work: UnitWork, loaded: list[LoadedFile]) -> list[PartitionChange]:
    """Partitions in the range of a replay that have no rows any more."""
    window = work.unit.window
    if window is None:
        return []
    source = work.context.source
    chosen = {
        table: schema
        for table, schema in work.tables.items()
        if work.unit.tables is None or table in work.unit.tables
    }
    filled = {(file.table, partition_values(file.partition)) for file in loaded if file.path}
    return [
        PartitionChange(chosen[table].key, p.values, p.location, (), 0, 0, 0, p.rows, dropped=True)
        for table, held in work.partitions(chosen, window.days).items()
        for p in held
        if window.holds(source.date_partition.parse(p.values)) and (table, p.values) not in filled
    ]

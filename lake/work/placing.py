"""Where a unit's files are written, and what becomes of each partition they belong to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lake import paths
from lake.catalog.base import CatalogPartition
from lake.loading.task import LoadedFile
from lake.partitions import DatePartition
from lake.schema import TableSchema
from lake.staging.table_rows import rows_key
from lake.state.manifest import NewFile, PartitionChange
from lake.storage import Storage
from lake.work.unit import Unit

SPLIT_BYTES = 512 << 20
"""Of staged rows, which make some 256 MB of Parquet: more become several files."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A partition's folder from now on, and where its new files lie until then."""

    schema: TableSchema
    partition: str
    location: str
    written_to: str
    splits: int
    before: CatalogPartition | None
    keeps: bool  # whether what the partition held stays in it

    @property
    def moves(self) -> bool:
        return self.before is not None and self.before.location != self.location


def splits(staged_bytes: int) -> int:
    return max(1, -(-staged_bytes // SPLIT_BYTES))


@dataclass(frozen=True, slots=True)
class Placer:
    """Decides by the rule of publication: one file more goes into the partition's folder, and so
    does all of a new partition; anything else makes the partition anew in a version folder."""

    source_id: str
    run_id: str
    unit: Unit

    def place(
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
            aside = f"{self._stage}/segment_type={schema.table}/{partition}"
            return Placement(schema, partition, location, aside, count, before, keeps=True)
        location = paths.version_folder(self.source_id, self._version, schema.table, partition)
        return Placement(schema, partition, location, location, count, before, keeps=not replaces)

    @property
    def _stage(self) -> str:
        return f"{paths.stage(self.source_id, self.run_id)}/{self.unit.number}"

    @property
    def _version(self) -> str:
        """A later unit of the same run may make the same partition anew once more."""
        return f"{self.run_id}-{self.unit.number}" if self.unit.number else self.run_id

    def file_stem(self, placement: Placement) -> str:
        return f"{placement.written_to}/{self.run_id}-{self.unit.number}"


def partition_values(partition: str) -> tuple[str, ...]:
    """The values in a partition's path: `day=2026-10-01/hr=07`."""
    return tuple(part.split("=", 1)[1] for part in partition.split("/"))


def partition_dict(layout: DatePartition, partition: str) -> dict[str, str]:
    return dict(zip(layout.keys, partition_values(partition), strict=True))


def partition_changes(
    storage: Storage, placements: Mapping[str, Placement], loaded: Iterable[LoadedFile]
) -> list[PartitionChange]:
    """What the manifest says of each partition that got files."""
    files: dict[str, list[LoadedFile]] = {}
    for file in loaded:
        if file.path:
            files.setdefault(rows_key(file.table, file.partition), []).append(file)
    return [_change(storage, placements[key], new) for key, new in sorted(files.items())]


def _change(storage: Storage, placement: Placement, new: list[LoadedFile]) -> PartitionChange:
    before = placement.before if placement.keeps else None
    if placement.moves and before is not None:
        for file in storage.files(before.location):
            storage.copy(file.path, f"{placement.location}/{file.name}")
    return PartitionChange(
        table=placement.schema.key,
        values=partition_values(placement.partition),
        location=placement.location,
        added=tuple(
            NewFile(f.path, f"{placement.location}/{f.path.rsplit('/', 1)[-1]}", f.rows, f.size)
            for f in sorted(new, key=lambda f: f.path)
        ),
        rows=(before.rows if before else 0) + sum(file.rows for file in new),
        bytes=(before.bytes if before else 0) + sum(file.size for file in new),
        files=(before.files if before else 0) + len(new),
        rows_before=placement.before.rows if placement.before else 0,
    )

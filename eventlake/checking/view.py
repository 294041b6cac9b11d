"""A table as its manifests, the catalog and its files tell it, at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from eventlake.catalog.base import CatalogPartition, CatalogTable
from eventlake.checking.files import LookedInto
from eventlake.rules import paths
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import TableSchema
from eventlake.state.manifest import PartitionChange

Values = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Promise:
    """What a manifest said about a partition."""

    manifest: int
    run_id: str
    change: PartitionChange


@dataclass(frozen=True)
class TableView:
    """All that the rules for a table need to know."""

    source_id: str
    schema: TableSchema
    layout: DatePartition
    manifest: int  # the last one
    rows: int  # by all manifests
    entry: CatalogTable | None
    partitions: tuple[CatalogPartition, ...]
    promises: Mapping[Values, Promise]  # of the manifests that were read
    dropped: frozenset[Values]  # by any manifest, at some time
    looked_into: tuple[LookedInto, ...]
    turns: int  # after how many runs all partitions were looked into

    @property
    def location(self) -> str:
        return paths.table_folder(self.source_id, self.schema.table)

    @cached_property
    def registered(self) -> dict[Values, CatalogPartition]:
        return {partition.values: partition for partition in self.partitions}

    def named(self, values: Values) -> str:
        return "/".join(map("=".join, zip(self.layout.keys, values, strict=False)))

    def is_place_of_ours(self, location: str) -> bool:
        """Whether a partition of the table may lie there."""
        own = f"/segment_type={self.schema.table}/"
        in_version = location.startswith(f"{paths.versions(self.source_id)}/") and own in location
        return in_version or location.startswith(f"{self.location}/")

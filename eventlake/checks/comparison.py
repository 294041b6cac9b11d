"""What a catalog has against what the lake's state has: one comparison for checks and repairs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import msgspec

from eventlake.catalog.base import CatalogPartition


@dataclass(frozen=True, slots=True)
class Comparison:
    """The partitions of one table that differ."""

    missing: tuple[CatalogPartition, ...]
    moved: tuple[tuple[CatalogPartition, CatalogPartition], ...]  # as found, and as wanted
    foreign: tuple[CatalogPartition, ...]

    @classmethod
    def of(cls, wanted: Iterable[CatalogPartition], found: Iterable[CatalogPartition]) -> Self:
        due = {partition.values: partition for partition in wanted}
        there = {partition.values: partition for partition in found}
        return cls(
            tuple(p for values, p in due.items() if values not in there),
            tuple((there[v], p) for v, p in due.items() if v in there and _differ(there[v], p)),
            tuple(p for values, p in there.items() if values not in due),
        )

    def to_put(self) -> list[CatalogPartition]:
        """What has to be put, with versions that count as the newest."""
        moved = (
            msgspec.structs.replace(wanted, version=max(found.version, wanted.version))
            for found, wanted in self.moved
        )
        return [*self.missing, *moved]


def _differ(found: CatalogPartition, wanted: CatalogPartition) -> bool:
    """But for the version, which a repair may have raised."""
    counts = [(p.location, p.rows, p.bytes, p.files) for p in (found, wanted)]
    return counts[0] != counts[1]

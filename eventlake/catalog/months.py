"""How a month of partitions changes: the newest manifest wins, in whatever order they come."""

from collections.abc import Iterable

import msgspec

from eventlake.catalog.base import CatalogPartition
from eventlake.catalog.documents import Dropped, Month

Values = tuple[str, ...]


def with_partitions(month: Month, new: Iterable[CatalogPartition]) -> Month:
    """The month with partitions added or moved, but for those a later manifest decided on."""
    partitions, dropped = _by_values(month)
    for partition in new:
        if partition.version >= _decided(partition.values, partitions, dropped):
            partitions[partition.values] = partition
            dropped.pop(partition.values, None)
    return _month(month, partitions, dropped)


def with_dropped(month: Month, gone: Iterable[Values], version: int) -> Month:
    """The month without some partitions; it remembers who dropped them, so they stay gone."""
    partitions, dropped = _by_values(month)
    for values in gone:
        if version >= _decided(values, partitions, dropped):
            partitions.pop(values, None)
            dropped[values] = Dropped(values, version)
    return _month(month, partitions, dropped)


Held = dict[Values, CatalogPartition]
Gone = dict[Values, Dropped]


def _by_values(month: Month) -> tuple[Held, Gone]:
    return {p.values: p for p in month.partitions}, {d.values: d for d in month.dropped}


def _decided(values: Values, partitions: Held, dropped: Gone) -> int:
    """The number of the last manifest that said anything about a partition; -1 for none."""
    last = partitions.get(values) or dropped.get(values)
    return last.version if last else -1


def _month(month: Month, partitions: Held, dropped: Gone) -> Month:
    return msgspec.structs.replace(
        month,
        partitions=tuple(partitions[values] for values in sorted(partitions)),
        dropped=tuple(dropped[values] for values in sorted(dropped)),
    )

"""Selects the partitions to compact: past days with many small files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eventlake.catalog.base import CatalogPartition
from eventlake.rules.types import TableSchema
from eventlake.settings.models import Compaction

TARGET_BYTES = 256 << 20
"""Maximum size of a file; larger partitions become several files of equal size."""
MOST_FILES = 200
"""Files of a partition that one run merges; the rest is left to the next run."""
UNIT_BYTES = 256 << 20
UNIT_PARTITIONS = 200
"""Size of a commit: small enough to repeat after a conflict, large enough for few manifests."""

_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A partition in the catalog."""

    schema: TableSchema
    partition: CatalogPartition

    @property
    def place(self) -> tuple[str, tuple[str, ...]]:
        return self.schema.key, self.partition.values

    @property
    def saved(self) -> int:
        """The number of files that compaction saves."""
        return self.partition.files - file_count(self.partition.bytes)


def file_count(size: int) -> int:
    """The number of files for a size in bytes."""
    return max(1, -(-size // TARGET_BYTES))


def candidates(
    partitions: Iterable[tuple[str, Candidate]], rule: Compaction, last_day: str
) -> list[Candidate]:
    """Partitions (each with its day) up to a day that have too many files; the worst first, and the
    newest first among equals."""
    found = [
        (one.saved, day, one)
        for day, one in partitions
        if day <= last_day and one.saved > 0 and _is_scattered(one.partition, rule)
    ]
    found.sort(key=lambda item: (item[0], item[1], item[2].place), reverse=True)
    return [one for _, _, one in found]


def _is_scattered(partition: CatalogPartition, rule: Compaction) -> bool:
    small = partition.bytes < partition.files * rule.below_mb * _MB
    return partition.files >= rule.min_files and small


def within(chosen: Iterable[Candidate], most_bytes: int) -> Iterator[Candidate]:
    """The first candidates within a size limit; always at least one."""
    left = most_bytes
    for number, one in enumerate(chosen):
        if number and one.partition.bytes > left:
            return
        left -= one.partition.bytes
        yield one


def units(chosen: Iterable[Candidate]) -> Iterator[list[Candidate]]:
    """Split into units, each of which is one commit."""
    unit: list[Candidate] = []
    size = 0
    for one in chosen:
        full = size + one.partition.bytes > UNIT_BYTES or len(unit) == UNIT_PARTITIONS
        if unit and full:
            yield unit
            unit, size = [], 0
        unit.append(one)
        size += one.partition.bytes
    if unit:
        yield unit

"""Which partitions are worth the work: many small files, and nobody is likely to add more."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eventlake.catalog.base import CatalogPartition
from eventlake.rules.types import TableSchema
from eventlake.settings.models import Compaction

TARGET_BYTES = 256 << 20
"""A file of a compacted partition has no more; what is larger becomes several of one size."""
MOST_FILES = 200
"""Files of one partition that are put together at once; what is beyond stays for another run."""
UNIT_BYTES = 256 << 20
UNIT_PARTITIONS = 200
"""What is committed as one: little enough to be lost in a race, so much that manifests are few."""

_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A partition of a table as the catalog has it."""

    schema: TableSchema
    partition: CatalogPartition

    @property
    def place(self) -> tuple[str, tuple[str, ...]]:
        return self.schema.key, self.partition.values

    @property
    def saved(self) -> int:
        """How many files fewer there would be."""
        return self.partition.files - file_count(self.partition.bytes)


def file_count(size: int) -> int:
    """As few as sensible for so many bytes."""
    return max(1, -(-size // TARGET_BYTES))


def candidates(
    partitions: Iterable[tuple[str, Candidate]], rule: Compaction, last_day: str
) -> list[Candidate]:
    """Partitions (each with its day) up to a day that have too many files; the worst come first,
    and of those that are alike the newest."""
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
    """As many as fit; the first fits always."""
    left = most_bytes
    for number, one in enumerate(chosen):
        if number and one.partition.bytes > left:
            return
        left -= one.partition.bytes
        yield one


def units(chosen: Iterable[Candidate]) -> Iterator[list[Candidate]]:
    """In portions that are committed as one."""
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

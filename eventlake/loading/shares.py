"""How staged rows are dealt out to loading tasks: whole tables where they are small."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from zlib import crc32

from eventlake.staging.blob import Blob
from eventlake.staging.rows_blob import parts_of, split_key, table_of

LARGEST = 64 << 20  # of staged rows that a task casts at once, unless a single partition has more
SMALLEST = 4 << 20
TASKS_PER_SLOT = 4


@dataclass(frozen=True, slots=True)
class Shares:
    """Rows of a table are worked on together, since casting and writing little costs as much as
    casting and writing some more. Large tables are dealt out by partition, and partitions that make
    several files by task of origin."""

    splits: Mapping[str, int] = field(default_factory=dict)  # key of staged rows → files, if many
    groups: Mapping[str, int] = field(default_factory=dict)  # table → groups, if many

    def divides(self, blob: Blob) -> bool:
        """Whether the partitions that a blob has rows of may go to different shares."""
        if not self.groups and not self.splits:
            return False
        parts = parts_of(blob)
        if len(parts) == 1:
            return False
        return table_of(blob) in self.groups or not self.splits.keys().isdisjoint(parts)

    def of(self, blob: Blob) -> str:
        """The share of a blob; begins with the number of the file it goes to, and a line break."""
        if files := self.splits.get(blob.key):
            return f"{blob.task % files}\n{blob.key}"
        table = table_of(blob)
        return f"0\n{table}\n{crc32(blob.key.encode()) % self.groups.get(table, 1)}"


def file_number(share: str) -> int:
    return int(share.split("\n", 1)[0])


def deal_out(staged: Mapping[str, int], splits: Mapping[str, int], slots: int) -> Shares:
    """Shares of staged rows (bytes by key) that keep all slots busy to the end."""
    tables: dict[str, int] = {}
    for key, size in staged.items():
        if key not in splits:
            table, _ = split_key(key)
            tables[table] = tables.get(table, 0) + size
    fair = sum(tables.values()) // (slots * TASKS_PER_SLOT)
    share = min(max(fair, SMALLEST), LARGEST)
    groups = {table: -(-size // share) for table, size in tables.items() if size > share}
    return Shares(splits, groups)

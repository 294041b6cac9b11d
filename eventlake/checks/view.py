"""A table as its manifests, the catalog and its files tell it, at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.catalog.base import CatalogPartition, CatalogTable
from eventlake.rules import paths
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import TableSchema
from eventlake.runs.verify import CheckResult, Severity
from eventlake.state.manifest import PartitionChange
from eventlake.storage import Storage, StoredFile


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file as its footer tells it, or why it cannot be read."""

    name: str
    bytes: int
    columns: pa.Schema | None = None
    rows: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class LookedInto:
    """A partition and the files in its folder."""

    partition: CatalogPartition
    files: tuple[DataFile, ...]


def look_into(storage: Storage, partitions: Sequence[CatalogPartition]) -> list[LookedInto]:
    return storage.each(partial(_looked_into, storage), partitions)


def _looked_into(storage: Storage, partition: CatalogPartition) -> LookedInto:
    files = storage.files(partition.location, recursive=False)
    return LookedInto(partition, tuple(_footer(storage, file) for file in files))


def _footer(storage: Storage, file: StoredFile) -> DataFile:
    try:
        with storage.open_input(file.path) as stream:
            footer = pq.read_metadata(stream)
        columns = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        return DataFile(file.name, file.size, problem=str(error).splitlines()[0])
    return DataFile(file.name, file.size, columns, footer.num_rows)


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
    is_partial: bool = False  # only the partitions that a run has just loaded

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


TABLE_RULES = {
    "drift": "The catalog entry and the Parquet footers say what the table's schema says: columns, "
    "types, order, location.",
    "partitions": "Every partition that was published is registered, and no other; its files are "
    "there and can be read.",
    "small_files": "No partition of a past day is cut into small files.",
    "schema_change": "No column was added within the last day, except to a new table.",
}
"""What each check of a table holds."""

SOURCE_RULES = {
    "freshness": "The newest event is not older than is usual for the source.",
}
"""What each check of a source holds."""

# With these a query fails or gives a wrong answer; all else is for a person to look at.
_WRONG_DATA = frozenset({"drift", "partitions"})
_EXAMPLES = 5


def verdict(
    table: str, check: str, problems: Sequence[str], evidence: dict[str, Any], remedy: str
) -> CheckResult:
    """Passed without problems; else the first of them, and what to do about them."""
    told = {"problems": len(problems), **evidence}
    if problems:
        told |= {"first_problems": tuple(problems[:_EXAMPLES]), "what_to_do": remedy}
    severity = Severity.ERROR if check in _WRONG_DATA else Severity.WARN
    return CheckResult(table, check, not problems, told, severity)


T = TypeVar("T")

PARTITIONS_AT_MOST = 4_000
"""Of all tables of a source in one run: some minutes of work on S3, seconds in a folder."""
_LEAST_SHARE = 4


def share_of(tables: int) -> int:
    """How many partitions of each table are looked into."""
    return max(_LEAST_SHARE, PARTITIONS_AT_MOST // max(tables, 1))


def turn_of(now: datetime) -> int:
    """Which of the slices is due: another every day, whatever the hour of the check."""
    return now.date().toordinal()


def sample(items: Sequence[T], share: int, turn: int) -> list[T]:
    """About `share` of the items, in order: the last half of it, and a slice of those before.

    After as many turns as there are slices, every item has been in one.
    """
    newest = items[-(share // 2) :] if share // 2 else items[len(items) :]
    before = items[: len(items) - len(newest)]
    return [*before[turn % slices(len(items), share) :: slices(len(items), share)], *newest]


def slices(items: int, share: int) -> int:
    """After how many turns all items have been looked at."""
    before = items - min(items, share // 2)
    return max(1, -(-before // (share - share // 2)))

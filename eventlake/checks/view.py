"""A snapshot of a table for its checks: state, catalog entry, and a sample of its files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.catalog.base import CatalogPartition, CatalogTable
from eventlake.rules import paths
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import TableSchema
from eventlake.runs.verify import CheckResult, Severity
from eventlake.settings.models import Source
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage, StoredFile


@dataclass(frozen=True, slots=True)
class DataFile:
    """The footer of a file, or why it cannot be read."""

    name: str
    bytes: int
    columns: pa.Schema | None = None
    rows: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """A partition and the files in its folder."""

    partition: CatalogPartition
    files: tuple[DataFile, ...]


def read_footers(storage: Storage, partitions: Sequence[CatalogPartition]) -> list[PartitionFiles]:
    return storage.each(partial(_read_partition, storage), partitions)


def _read_partition(storage: Storage, partition: CatalogPartition) -> PartitionFiles:
    files = storage.files(partition.location, recursive=False)
    return PartitionFiles(partition, tuple(_footer(storage, file) for file in files))


def _footer(storage: Storage, file: StoredFile) -> DataFile:
    try:
        with storage.open_input(file.path) as stream:
            footer = pq.read_metadata(stream)
        columns = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        return DataFile(file.name, file.size, problem=str(error).splitlines()[0])
    return DataFile(file.name, file.size, columns, footer.num_rows)


Values = tuple[str, ...]


@dataclass(frozen=True)
class TableView:
    """The input of the checks of a table."""

    source_id: str
    schema: TableSchema
    layout: DatePartition
    manifest: int  # the last one
    rows: int  # by all manifests
    entry: CatalogTable | None
    partitions: tuple[CatalogPartition, ...]  # as the catalog has them
    published: tuple[CatalogPartition, ...]  # as the state has them
    sampled: tuple[PartitionFiles, ...]
    days_for_all: int  # after which all partitions have been in the sample
    is_partial: bool  # only the partitions that a run has just loaded

    @classmethod
    def of(
        cls,
        state: SourceState,
        key: str,
        entry: CatalogTable | None,
        partitions: Iterable[CatalogPartition],
        published: Iterable[CatalogPartition],
        sampled: Iterable[PartitionFiles] = (),
        days_for_all: int = 0,
        is_partial: bool = False,
    ) -> Self:
        layout, rows = DatePartition(state.layouts[key].date_partition), state.rows.get(key, 0)
        held = (tuple(partitions), tuple(published), tuple(sampled))
        identity = (state.source_id, state.tables[key], layout, state.manifest, rows, entry)
        return cls(*identity, *held, days_for_all, is_partial)

    @property
    def location(self) -> str:
        return paths.table_folder(self.source_id, self.schema.table)

    def named(self, values: Values) -> str:
        return "/".join(map("=".join, zip(self.layout.keys, values, strict=False)))

    def is_own_folder(self, partition: CatalogPartition) -> bool:
        """Whether a partition lies in a folder of its own: the documented one, or a version."""
        own = f"/segment_type={self.schema.table}/{self.named(partition.values)}"
        data = f"segment-data/data/{self.source_id}"
        return partition.location.startswith(f"{data}/") and partition.location.endswith(own)


TABLE_RULES = {
    "drift": "The catalog entry and the Parquet footers match the table's schema: columns, types, "
    "order, location.",
    "partitions": "The catalog has exactly the published partitions; their files exist and can be "
    "read.",
    "small_files": "No partition of a past day consists of many small files.",
    "schema_change": "No column was added within the last day, except to a new table.",
}
"""The checks of a table, with descriptions."""

SILENT_COLUMNS = "silent_columns"
OPTIONAL_RULES = {
    SILENT_COLUMNS: "No column that had values on earlier days has had none for two days."
}
"""The checks of a table that are off by default."""


def table_rules(source: Source) -> dict[str, str]:
    """The checks of the tables of a source."""
    return TABLE_RULES | (OPTIONAL_RULES if source.alerts.silent_columns else {})


SOURCE_RULES = {
    "freshness": "The newest event is not older than usual for the source.",
}
"""The checks of a source, with descriptions."""

# With these problems a query fails or is wrong; all others are warnings.
_WRONG_DATA = frozenset({"drift", "partitions"})
_EXAMPLES = 5


def verdict(
    table: str, check: str, problems: Sequence[str], evidence: dict[str, Any], remedy: str
) -> CheckResult:
    """The result of a check: passed without problems, or else the first problems and a remedy."""
    shown = {"problems": len(problems), **evidence}
    if problems:
        shown |= {"first_problems": tuple(problems[:_EXAMPLES]), "what_to_do": remedy}
    severity = Severity.ERROR if check in _WRONG_DATA else Severity.WARN
    return CheckResult(table, check, not problems, shown, severity)


T = TypeVar("T")

PARTITIONS_AT_MOST = 4_000
"""Per source and run: some minutes of work on S3, seconds in a local folder."""
_LEAST_SHARE = 4


def share_of(tables: int) -> int:
    """How many partitions of each table are in the sample."""
    return max(_LEAST_SHARE, PARTITIONS_AT_MOST // max(tables, 1))


def daily_slice(now: datetime) -> int:
    """The number of the slice to sample: another one every day."""
    return now.date().toordinal()


def sample(items: Sequence[T], share: int, turn: int) -> list[T]:
    """About `share` of the items, in order: half of it the newest ones, half a slice of the others.

    After as many days as there are slices, every item has been in a sample.
    """
    newest = items[-(share // 2) :] if share // 2 else items[len(items) :]
    before = items[: len(items) - len(newest)]
    return [*before[turn % slices(len(items), share) :: slices(len(items), share)], *newest]


def slices(items: int, share: int) -> int:
    """After how many days all items have been in a sample."""
    before = items - min(items, share // 2)
    return max(1, -(-before // (share - share // 2)))

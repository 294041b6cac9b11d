"""How many rows have a value in each column: from the footers of files, not from their rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq

from eventlake.catalog.base import CatalogPartition, CatalogTable, partition_day
from eventlake.storage import Storage

_PARTITIONS = 100  # whose footers are read, at most: the newest of each day


@dataclass(frozen=True, slots=True)
class Fill:
    """Rows, and rows with a value by column, by day; files without a column have no value of it."""

    rows: dict[str, int]
    filled: dict[str, dict[str, int]]

    @property
    def days(self) -> tuple[str, ...]:
        return tuple(sorted(self.rows))

    def of(self, column: str, days: Iterable[str] | None = None) -> float | None:
        """The share of rows with a value; None without rows."""
        chosen = self.days if days is None else tuple(days)
        rows = sum(self.rows[day] for day in chosen)
        return sum(self.filled[day].get(column, 0) for day in chosen) / rows if rows else None

    def course(self, column: str) -> list[float]:
        """The share of each day."""
        return [self.of(column, [day]) or 0.0 for day in self.days]

    def is_silent(self, column: str) -> bool:
        """Whether a column that had values on the days before has none on the last two."""
        early, late = self.days[:-2], self.days[-2:]
        return bool(early) and bool(self.of(column, early)) and not self.of(column, late)


def read_fill(
    storage: Storage, table: CatalogTable, partitions: Sequence[CatalogPartition], days: int
) -> Fill:
    """The newest days of a table, a bounded number of files."""
    by_day: dict[str, list[CatalogPartition]] = {}
    for one in partitions if table.format == "parquet" else ():
        by_day.setdefault(partition_day(table.partition_keys, one.values), []).append(one)
    newest = sorted(by_day)[-days:]
    each = max(1, _PARTITIONS // max(1, len(newest)))
    found = Fill(dict.fromkeys(newest, 0), {day: {} for day in newest})
    chosen = [(day, one) for day in newest for one in by_day[day][-each:]]
    counts = storage.each(lambda one: _counts(storage, one[1]), chosen)
    for (day, _), (rows, filled) in zip(chosen, counts, strict=True):
        found.rows[day] += rows
        for column, count in filled.items():
            found.filled[day][column] = found.filled[day].get(column, 0) + count
    return found


def _counts(storage: Storage, partition: CatalogPartition) -> tuple[int, dict[str, int]]:
    rows, filled = 0, dict[str, int]()
    for file in storage.files(partition.location, recursive=False):
        with storage.open_input(file.path) as stream:
            footer = pq.read_metadata(stream)
        rows += footer.num_rows
        for group in range(footer.num_row_groups):
            chunks = footer.row_group(group)
            for n in range(chunks.num_columns):
                chunk = chunks.column(n)
                known = chunk.statistics is not None and chunk.statistics.has_null_count
                nulls = chunk.statistics.null_count if known else 0
                name = chunk.path_in_schema
                filled[name] = filled.get(name, 0) + chunk.num_values - nulls
    return rows, filled

"""How many rows have a value in each column: from the footers of files, not from their rows."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import pyarrow.parquet as pq

from eventlake.catalog.base import CatalogPartition, CatalogTable, partition_day
from eventlake.checks.view import SILENT_COLUMNS, verdict
from eventlake.rules.text import percent
from eventlake.runs.verify import CheckResult
from eventlake.storage import Storage

_FILES = 400  # partitions whose footers are read, about: the newest of each day
_CHECKED_DAYS = 14
_EARLIER_DAYS = 3
_LATE_DAYS = 2
_REMEDY = (
    "Ask the sender whether the field is gone on purpose. If it comes with another type, the page "
    "of the column in the console shows rescued values; `datalake retype` gives it that type."
)
_EXPECTED = 7.0  # values; that none comes by chance is less likely than 1 in 1,000


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

    def by_day(self, column: str) -> dict[str, float]:
        """The share of each day."""
        return {day: self.of(column, [day]) or 0.0 for day in self.days}

    def is_silent(self, column: str) -> bool:
        """Whether a column that had values on earlier days has none on the last two.

        So few rows that this may be chance do not count.
        """
        early, late = self.days[:-_LATE_DAYS], self.days[-_LATE_DAYS:]
        share = self.of(column, early) or 0.0
        if len(early) < _EARLIER_DAYS or self.of(column, late):
            return False
        return share * sum(self.rows[day] for day in late) >= _EXPECTED

    def silent(self) -> list[str]:
        """The columns that went silent, by name."""
        known = {column for counts in self.filled.values() for column in counts}
        return sorted(column for column in known if self.is_silent(column))


def check_silent_columns(
    storage: Storage, entry: CatalogTable, partitions: Sequence[CatalogPartition], most: int
) -> CheckResult:
    """Columns that had values and have none any more; reads footers only."""
    fill = read_fill(storage, entry, partitions, _CHECKED_DAYS, most)
    problems = [
        f"{name}: {percent(fill.of(name, fill.days[:-_LATE_DAYS]))} of rows until "
        f"{fill.days[-_LATE_DAYS - 1]}, none since"
        for name in fill.silent()
    ]
    evidence = {"days": len(fill.days), "rows": sum(fill.rows.values())}
    return verdict(entry.full_name, SILENT_COLUMNS, problems, evidence, _REMEDY)


def read_fill(
    storage: Storage,
    table: CatalogTable,
    partitions: Sequence[CatalogPartition],
    days: int,
    most: int = _FILES,
) -> Fill:
    """The newest days that have rows; of a day with many partitions, the newest ones."""
    by_day: dict[str, list[CatalogPartition]] = {}
    for one in partitions if table.format == "parquet" else ():
        by_day.setdefault(partition_day(table.partition_keys, one.values), []).append(one)
    newest = sorted(by_day)[-days:]
    each = max(1, most // max(1, len(newest)))
    chosen = [(day, one) for day in newest for one in by_day[day][-each:]]
    rows = dict.fromkeys(newest, 0)
    filled: dict[str, dict[str, int]] = {day: {} for day in newest}
    counts = storage.each(lambda one: filled_rows(storage, one[1]), chosen)
    for (day, _), (count, values) in zip(chosen, counts, strict=True):
        rows[day] += count
        for column, some in values.items():
            filled[day][column] = filled[day].get(column, 0) + some
    return Fill(rows, filled)


def filled_rows(storage: Storage, partition: CatalogPartition) -> tuple[int, dict[str, int]]:
    """The rows of a partition, and how many of them have a value by column."""
    files = [(f"{partition.location}/{file.name}", file.bytes) for file in partition.held] or [
        (file.path, file.size) for file in storage.files(partition.location, recursive=False)
    ]
    rows, filled = 0, dict[str, int]()
    for path, bytes in files:
        count, values = _FOOTERS.read(storage, path, bytes)
        rows += count
        for column, some in values.items():
            filled[column] = filled.get(column, 0) + some
    return rows, filled


_Counts = tuple[int, Mapping[str, int]]


class _Footers:
    """The counts of the files read last: data files never change."""

    def __init__(self, most: int = 5_000) -> None:
        self._kept: OrderedDict[tuple[str, int], _Counts] = OrderedDict()
        self._most, self._lock = most, Lock()

    def read(self, storage: Storage, path: str, bytes: int) -> _Counts:
        key = storage.full(path), bytes
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        counts = _counts(storage, path)
        with self._lock:
            self._kept[key] = counts
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return counts


_FOOTERS = _Footers()


def _counts(storage: Storage, path: str) -> _Counts:
    with storage.open_input(path) as stream:
        footer = pq.read_metadata(stream)
    filled = dict[str, int]()
    for group in range(footer.num_row_groups):
        chunks = footer.row_group(group)
        for n in range(chunks.num_columns):
            chunk = chunks.column(n)
            known = chunk.statistics is not None and chunk.statistics.has_null_count
            nulls = chunk.statistics.null_count if known else 0
            name = chunk.path_in_schema
            filled[name] = filled.get(name, 0) + chunk.num_values - nulls
    return footer.num_rows, filled

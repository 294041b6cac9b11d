"""The records of a run as Python sees them: suppressed people's payloads are never shown."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from eventlake.lake import Lake
from eventlake.load.record_log import SCHEMA, BatchType
from eventlake.records import logs
from eventlake.records.logs import Cursor, LogFile, RunLog
from eventlake.records.payloads import redacted, with_payloads
from eventlake.rules.suppression import People
from eventlake.runs.archive import archive_storage
from eventlake.state.suppression import suppressed_people


@dataclass(slots=True)
class NotLoaded:
    """Lines that were not loaded for one reason."""

    status: str
    reason: str
    first: str  # raw file and line
    records: int = 0


@dataclass(frozen=True, slots=True)
class Records:
    """What became of each raw line that a run has read; iterating reads all, some at a time.

    >>> records = my.records("latest")
    >>> records.by_status()
    {'succeeded': 115, 'rejected': 19, 'DUPLICATE': 11, 'NULL': 2}
    >>> records.of("NULL").arrow()["status_message"].to_pylist()
    ['`messageId` is missing or empty.', '`messageId` is missing or empty.']
    """

    lake: Lake  # with the access of its source
    log: RunLog
    people: People | None
    types: frozenset[BatchType] = frozenset(BatchType)

    @classmethod
    def of_log(cls, lake: Lake, log: RunLog) -> "Records":
        lake = lake.for_source(log.source)
        return cls(lake, log, suppressed_people(lake.storage, log.source))

    def of(self, *statuses: str) -> "Records":
        """Only those with a status: succeeded, rejected, NULL, DUPLICATE, suppressed, skipped."""
        return replace(self, types=logs.batch_types(statuses))

    @property
    def files(self) -> list[LogFile]:
        return self.log.of(self.types)

    def counts(self) -> dict[BatchType, int]:
        """The number of records by type, of all types."""
        return logs.count(self.lake.storage, self.log.files)

    def by_status(self) -> dict[str, int]:
        """The number of records by status."""
        found: dict[str, int] = {}
        for kind, count in self.counts().items():
            found[kind.status] = found.get(kind.status, 0) + count
        return found

    def not_loaded(self) -> list[NotLoaded]:
        """What was not loaded, by reason, the most frequent first."""
        found: dict[tuple[str, str], NotLoaded] = {}
        files = self.log.of(frozenset(BatchType) - {BatchType.LOADED})
        names = ("status", "status_message", "raw_file", "raw_line")
        for table in logs.read(self.lake.storage, files):
            columns = (table[name].to_pylist() for name in names)
            for status, message, file, line in zip(*columns, strict=True):
                reason = (message or "").partition(": ")[0].removesuffix(".")
                one = NotLoaded(status, reason, f"{file}:{line}")
                found.setdefault((status, reason), one).records += 1
        return sorted(found.values(), key=lambda one: -one.records)

    def __iter__(self) -> Iterator[pa.Table]:
        return self._shown(logs.read(self.lake.storage, self.files))

    def arrow(self) -> pa.Table:
        """All records in memory."""
        return pa.concat_tables([SCHEMA.empty_table(), *self])

    def page(
        self, at: Cursor | None = None, size: int = 50, text: str = ""
    ) -> tuple[pa.Table, Cursor | None]:
        """Some records from a cursor on, and the cursor of the next; with a text, those with it."""
        storage, at = self.lake.storage, at or Cursor()
        return logs.page(storage, self.files, at, size, text, self._shown)

    def sample(self, size: int) -> Iterator[pa.Table]:
        """A number of records, evenly spread over all."""
        return self._shown(logs.sample(self.lake.storage, self.files, size))

    def find(self, identifier: str) -> tuple[list[dict[str, Any]], list[str]]:
        """The records of an id with their payloads, and reasons why payloads are missing."""
        storage, source = self.lake.storage, self.log.source
        tables = [table for _, table in logs.search(storage, self.files, identifier)]
        found = [record for table in self._shown(tables) for record in table.to_pylist()]
        archive = archive_storage(storage, source)
        others = logs.run_logs(self.lake, source) if found else []
        return with_payloads(storage, others, found, source.limits, self.people, archive)

    def download(self, path: str | Path) -> int:
        """Write them to a .csv, .jsonl or .parquet file; returns their number."""
        return logs.download(self, Path(path))

    @property
    def _shown(self) -> "partial[Iterator[pa.Table]]":
        return partial(redacted, people=self.people)


def written(records: Iterable[dict[str, Any]], path: Path) -> int:
    """Write some records, already redacted, to a file."""
    return logs.download([pa.Table.from_pylist(list(records), SCHEMA)], path)

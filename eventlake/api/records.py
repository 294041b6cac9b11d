"""The records of a run as Python sees them: suppressed people's payloads are never shown."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.api.past import Past
from eventlake.api.tables import find_table
from eventlake.lake import Lake
from eventlake.load.record_log import SCHEMA, BatchType
from eventlake.records import logs
from eventlake.records.logs import Cursor, LogFile, RunLog
from eventlake.records.payloads import redacted, with_payloads
from eventlake.rules import paths
from eventlake.rules.names import MESSAGE_ID
from eventlake.rules.suppression import People
from eventlake.runs.archive import archive_storage
from eventlake.runs.report_history import read_reports
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

    def of_user(self, user: str, most: int = 200) -> pa.Table:
        """Records of events that name a user as `userId` or `anonymousId`, some of them at most.

        Of what was loaded, the tables know the user; of the rest, the payload does.
        """
        storage, loaded = self.lake.storage, self.log.of(self.types & {BatchType.LOADED})
        ids = self._ids_of(user, most) if loaded else []
        found = [table for _, table in logs.search_several(storage, loaded, ids)] if ids else []
        others = self.log.of(self.types - {BatchType.LOADED})
        quoted = msgspec.json.encode(user).decode()
        found += logs.first(logs.containing(self._shown(logs.read(storage, others)), quoted), most)
        return pa.concat_tables([SCHEMA.empty_table(), *self._shown(found)])[:most]

    def _ids_of(self, user: str, most: int) -> list[str]:
        """The message ids of rows of a user in the partitions that the run has written to."""
        source, run = self.log.source, self.log.run
        path = paths.report(source.id, f"{run.started_at:%Y-%m-%d}", self.log.run_id)
        lines = [line for one in read_reports(self.lake.storage, [path]) for line in one.tables]
        id = MESSAGE_ID.name(source.naming)
        named = (pc.field("user_id") == user) | (pc.field("anonymous_id") == user)
        found: list[str] = []
        for line in lines:
            table = find_table(self.lake, line.database, line.table_name, Past())
            written = {tuple(one.values()) for one in line.partitions or ()}
            partitions = [one for one in table.partitions() if one.values in written]
            found += table.rows_of(partitions, filter=named)[id].drop_null().to_pylist()
            if len(found) >= most:
                break
        return found

    def matching(self, text: str) -> Iterator[pa.Table]:
        """All records with a text, in any case, in their reason or payload."""
        return logs.containing(self, text)

    def download(self, path: str | Path) -> int:
        """Write them to a .csv, .jsonl or .parquet file; returns their number."""
        return logs.download(self, Path(path))

    @property
    def _shown(self) -> "partial[Iterator[pa.Table]]":
        return partial(redacted, people=self.people)


def written(records: Iterable[dict[str, Any]], path: Path) -> int:
    """Write some records, already redacted, to a file."""
    return logs.download([pa.Table.from_pylist(list(records), SCHEMA)], path)

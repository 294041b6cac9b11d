"""Where is my event? All that logs, index and tables know of one message id."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from eventlake.lake import Lake
from eventlake.load.record_log import BatchType
from eventlake.settings.models.models import Source
from eventlake.state.source_state import read_state
from eventlake.tracking.in_lake import LakeRow, days_around, lake_rows
from eventlake.tracking.logs import RunLog, run_logs
from eventlake.tracking.reading import search


class Fate(StrEnum):
    """What has become, since then, of a record that was loaded."""

    IN_LAKE = "in the lake"
    REPLACED = "replaced by another file"
    GONE = "no longer in the lake"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A record of the log: one line of the archive in one run."""

    log: RunLog
    batch_type: BatchType
    record: dict[str, Any]
    now: Fate | None = None
    now_in: str | None = None  # the data file

    @property
    def when(self) -> datetime:
        moment: datetime = self.record["batch_ended_at"]
        return moment


@dataclass(frozen=True, slots=True)
class Searched:
    """Where was looked: so many logs since the oldest run, so many days of the index."""

    runs: int
    since: datetime | None
    index_days: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What one source has of an id: every occurrence in its logs, every row in its tables."""

    source: Source
    occurrences: tuple[Occurrence, ...]
    rows: tuple[LakeRow, ...]
    searched: Searched

    def __bool__(self) -> bool:
        return bool(self.occurrences or self.rows)


def find(lake: Lake, source: Source, message_id: str) -> Found:
    """Look in all logs of a source, and in the lake as it is now."""
    lake = lake.for_source(source)
    logs = run_logs(lake, source)
    records = _records(lake, logs, message_id)
    # What the logs tell narrows the search, but for copies within the window whose log is gone.
    days = {_day(r["partition"]) for _, _, r in records if r["partition"] is not None}
    near = days_around(days, source.dedup_days) if days else None
    rows = lake_rows(lake, source, message_id, near)
    searched = Searched(
        len(logs),
        min((log.run.started_at for log in logs), default=None),
        tuple(sorted(read_state(lake.storage, source.id).index)),
    )
    occurrences = tuple(_occurrence(log, kind, record, rows) for log, kind, record in records)
    return Found(source, occurrences, tuple(rows), searched)


def _records(
    lake: Lake, logs: Sequence[RunLog], message_id: str
) -> list[tuple[RunLog, BatchType, dict[str, Any]]]:
    """What the logs say, in order of time."""
    owner = {file.path: log for log in logs for file in log.files}
    files = [file for log in logs for file in log.files]
    found = [
        (owner[file.path], file.batch_type, record)
        for file, table in search(lake.storage, files, message_id)
        for record in table.to_pylist()
    ]
    return sorted(
        found,
        key=lambda one: (
            one[0].run.started_at,
            one[0].run_id,
            one[2]["raw_file"],
            one[2]["raw_line"],
        ),
    )


def _day(partition: str) -> str:
    """The day of `day=2026-10-01/hr=07` or `year=2026/month=10/day=01`."""
    named = dict(part.split("=", 1) for part in partition.split("/"))
    return "-".join(named[key] for key in ("year", "month", "day") if key in named)


def _occurrence(
    log: RunLog, batch_type: BatchType, record: dict[str, Any], rows: Sequence[LakeRow]
) -> Occurrence:
    """A loaded record is compared with where the catalog leads to: a replay may have been there."""
    if batch_type is not BatchType.LOADED:
        return Occurrence(log, batch_type, record)
    place = (record["table_name"], record["partition"])
    here = [row for row in rows if (row.table_name, row.partition) == place]
    name = record["data_file"].rsplit("/", 1)[-1]
    # A file that was moved with its partition keeps its name.
    same = next((row for row in here if row.data_file.rsplit("/", 1)[-1] == name), None)
    if same is not None:
        return Occurrence(log, batch_type, record, Fate.IN_LAKE, same.data_file)
    if here:
        return Occurrence(log, batch_type, record, Fate.REPLACED, here[0].data_file)
    return Occurrence(log, batch_type, record, Fate.GONE)

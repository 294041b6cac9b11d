"""Finds an event by message id in record logs, id index and tables."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.catalog.base import partition_day
from eventlake.columnar.id_hashes import bucket_numbers, hash_id, words
from eventlake.lake import Lake
from eventlake.load.record_log import BatchType
from eventlake.records.logs import RunLog, run_logs, search
from eventlake.rules.errors import DamagedFile
from eventlake.rules.names import MESSAGE_ID, RECEIVED_AT, Naming
from eventlake.rules.partitions import DatePartition
from eventlake.settings.models import Source
from eventlake.state.id_index import read_index
from eventlake.state.source_state import Layout, SourceState, read_state
from eventlake.storage import Storage

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LakeRow:
    """A row of an event table, and its data file."""

    database: str
    table_name: str
    partition: str
    data_file: str
    received_at: datetime

    @property
    def run_id(self) -> str:
        """The run that wrote it; data files are named `<run>-<unit>-<part>.parquet`."""
        return self.data_file.rsplit("/", 1)[-1].rsplit("-", 2)[0]


@dataclass(frozen=True, slots=True)
class _DataFile:
    """A file that may hold the id."""

    database: str
    table_name: str
    partition: str
    path: str
    naming: Naming


def days_around(days: Iterable[str], reach: int) -> set[str]:
    """These days, and those within a number of days of one of them."""
    near: set[str] = set()
    for day in map(date.fromisoformat, days):
        first = max(day.toordinal() - reach, 1)
        last = min(day.toordinal() + reach, date.max.toordinal())
        near.update(str(date.fromordinal(n)) for n in range(first, last + 1))
    return near


def lake_rows(
    lake: Lake, source: Source, message_id: str, days: Collection[str] | None = None
) -> list[LakeRow]:
    """The rows with this id, by when they were received; of some days only, if given."""
    state = read_state(lake.storage, source.id)
    times = _index_times(lake.storage, state, message_id, days)
    files = list(_files(lake, state, times, days))
    with ThreadPoolExecutor(8) as pool:
        parts = pool.map(lambda file: list(_rows(lake.storage, file, message_id)), files)
        found = [row for part in parts for row in part]
    return sorted(found, key=lambda row: (row.received_at, row.data_file))


def _index_times(
    storage: Storage, state: SourceState, message_id: str, days: Collection[str] | None
) -> dict[str, list[datetime]]:
    """The times of the id in the index by day; days whose index is not whole are left out."""
    asked = pa.array([hash_id(message_id)], pa.binary(16))
    (bucket,), (wanted,) = bucket_numbers(asked).tolist(), words(asked)
    times: dict[str, list[datetime]] = {}
    for day, files in state.index.items():
        if days is not None and day not in days:
            continue
        try:
            found = read_index(storage, files, (bucket, bucket + 1))
        except (FileNotFoundError, DamagedFile):
            continue  # all files of the day are searched
        mine = (found.ids == wanted).all(axis=1)
        times[day] = [_moment(us) for us in found.received[mine].tolist()]
    return times


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _files(
    lake: Lake, state: SourceState, times: dict[str, list[datetime]], days: Collection[str] | None
) -> Iterator[_DataFile]:
    """The files of partitions that have the id by the index, or that the index does not cover."""
    span = None if days is None else (min(days), max(days))
    for key, schema in state.tables.items():
        made_with: Layout = state.layouts[key]
        layout, naming = DatePartition(made_with.date_partition), Naming(made_with.naming)
        for partition in lake.catalog.partitions(schema.database, schema.name, span):
            day = partition_day(layout.keys, partition.values)
            if days is not None and day not in days:
                continue
            known = times.get(day)
            if known is None or partition.values in map(layout.values, known):
                path = layout.path(layout.parse(partition.values))
                for file in lake.storage.files(partition.location, recursive=False):
                    yield _DataFile(schema.database, schema.name, path, file.path, naming)


def _rows(storage: Storage, file: _DataFile, message_id: str) -> Iterator[LakeRow]:
    names = [column.name(file.naming) for column in (MESSAGE_ID, RECEIVED_AT)]
    with storage.open_input(file.path) as stream:
        parquet = pq.ParquetFile(stream, pre_buffer=True)
        ids, received = parquet.read(names).select(names).columns
    for us in received.cast(pa.int64()).filter(pc.equal(ids, message_id)).to_pylist():
        yield LakeRow(file.database, file.table_name, file.partition, file.path, _moment(us))


class Outcome(StrEnum):
    """The current state of a loaded record."""

    IN_LAKE = "in the lake"
    REPLACED = "replaced by another file"
    GONE = "no longer in the lake"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A record of the log: one line of the archive in one run."""

    log: RunLog
    batch_type: BatchType
    record: dict[str, Any]
    now: Outcome | None = None
    now_in: str | None = None  # the data file

    @property
    def when(self) -> datetime:
        moment: datetime = self.record["batch_ended_at"]
        return moment


@dataclass(frozen=True, slots=True)
class Searched:
    """The scope of the search: logs since the oldest run, and days of the index."""

    runs: int
    since: datetime | None
    index_days: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """All occurrences of an id in the logs and tables of a source."""

    source: Source
    occurrences: tuple[Occurrence, ...]
    rows: tuple[LakeRow, ...]
    searched: Searched

    def __bool__(self) -> bool:
        return bool(self.occurrences or self.rows)


def find(lake: Lake, source: Source, message_id: str) -> Found:
    """Search all logs of a source, and its current tables."""
    lake = lake.for_source(source)
    logs = run_logs(lake, source)
    records = _records(lake, logs, message_id)
    # The logs narrow the search to the window, where copies may be whose log has expired.
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
    """The occurrences in the logs, by time."""
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
    """A loaded record is compared with the current files: a replay may have replaced its own."""
    if batch_type is not BatchType.LOADED:
        return Occurrence(log, batch_type, record)
    place = (record["table_name"], record["partition"])
    here = [row for row in rows if (row.table_name, row.partition) == place]
    name = record["data_file"].rsplit("/", 1)[-1]
    # A file that was moved with its partition keeps its name.
    same = next((row for row in here if row.data_file.rsplit("/", 1)[-1] == name), None)
    if same is not None:
        return Occurrence(log, batch_type, record, Outcome.IN_LAKE, same.data_file)
    if here:
        return Occurrence(log, batch_type, record, Outcome.REPLACED, here[0].data_file)
    return Occurrence(log, batch_type, record, Outcome.GONE)

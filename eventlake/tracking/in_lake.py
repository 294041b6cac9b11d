"""Where in the tables a message id is now, by the id index and the tables' own columns."""

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.catalog.base import partition_day
from eventlake.columnar.id_hashes import bucket_numbers, hash_id, words
from eventlake.lake import Lake
from eventlake.rules.names import MESSAGE_ID, RECEIVED_AT, Naming
from eventlake.rules.partitions import DatePartition
from eventlake.settings.models.models import Source
from eventlake.state.id_index import read_index
from eventlake.state.source_state import Layout, SourceState, read_state
from eventlake.storage import Storage

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LakeRow:
    """A row of an event table, and the file that the catalog leads to."""

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
    """These days and those at most so many days from one of them."""
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
    """By day, when the index has the id as received; a day whose index is not whole is left out."""
    asked = pa.array([hash_id(message_id)], pa.binary(16))
    (bucket,), (wanted,) = bucket_numbers(asked).tolist(), words(asked)
    times: dict[str, list[datetime]] = {}
    for day, files in state.index.items():
        if days is not None and day not in days:
            continue
        try:
            found = read_index(storage, files, (bucket, bucket + 1))
        except FileNotFoundError:
            continue
        mine = (found.ids == wanted).all(axis=1)
        times[day] = [_moment(us) for us in found.received[mine].tolist()]
    return times


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _files(
    lake: Lake, state: SourceState, times: dict[str, list[datetime]], days: Collection[str] | None
) -> Iterator[_DataFile]:
    """The files of the partitions in which the index has the id, or of which it knows nothing."""
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

"""The dedup pass of a unit: which rows are duplicates, and what the id index gains."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.columnar.id_hashes import BUCKETS, hash_id
from eventlake.load.dedup import DedupJob, TableIds
from eventlake.load.seen import Seen
from eventlake.rules.names import MESSAGE_ID, RECEIVED_AT
from eventlake.runs.unit import UnitWork
from eventlake.settings.models import Source
from eventlake.state.id_index import SCHEMA, UNKNOWN, write_index
from eventlake.state.manifest import IndexFile
from eventlake.storage import Storage, StoredFile


def read_ids(storage: Storage, source: Source, files: Iterable[StoredFile]) -> pa.Table:
    """Hashes of the message ids in some data files, with the times they were received."""
    names = [c.name(source.naming) for c in (MESSAGE_ID, RECEIVED_AT)]
    parts = storage.each(lambda file: _ids(storage, file, *names), list(files))
    return pa.concat_tables([SCHEMA.empty_table(), *parts])


def _ids(storage: Storage, file: StoredFile, id_column: str, received_column: str) -> pa.Table:
    with storage.open_input(file.path) as stream:
        rows = pq.ParquetFile(stream, pre_buffer=True).read(columns=[id_column, received_column])
    hashes = pa.array([hash_id(text) for text in rows[id_column].to_pylist()], pa.binary(16))
    received = rows[received_column].cast(pa.int64()).combine_chunks()
    unknown = pa.repeat(pa.scalar(UNKNOWN, pa.uint32()), len(hashes))
    columns = {"id": hashes, "received": received, "payload": unknown}
    return pa.table(columns, schema=SCHEMA)


@dataclass(frozen=True, slots=True)
class IndexWindow:
    """Index files to compare with; those made here; days whose old files are no longer valid."""

    files: tuple[IndexFile, ...]
    made: tuple[IndexFile, ...] = ()
    replaced: tuple[str, ...] = ()


def index_window(work: UnitWork, days: Sequence[str]) -> IndexWindow:
    """The index of the days around the rows, without the rows that a replay is to replace."""
    window = work.unit.window
    replayed = [window.days[0]] if window else []
    around = _around([*days, *replayed], work.context.source.dedup_days)
    storage = work.context.storage
    indexed = [file.path for day in around for file in work.state.index.get(day, ())]
    there = dict(zip(indexed, storage.each(storage.exists, indexed), strict=True))
    files: list[IndexFile] = []
    made: list[IndexFile] = []
    replaced: list[str] = []
    for day in around:
        known = work.state.index.get(day, ())
        if day in replayed or _is_unknown(work, day) or not all(there[f.path] for f in known):
            anew = list(_made_from_lake(work, day))
            made += anew
            replaced.append(day)
            known = tuple(anew)
        files += known
    return IndexWindow(tuple(files), tuple(made), tuple(replaced))


def _is_unknown(work: UnitWork, day: str) -> bool:
    """Whether a day was dropped from the index, so that only the tables have its ids."""
    return day < (work.state.index_from or "") and day not in work.state.index


def _around(days: Sequence[str], reach: int) -> list[str]:
    """The days at most so far from one of these; the calendar ends at both sides."""
    found = {
        date.fromordinal(ordinal)
        for day in map(date.fromisoformat, days)
        for ordinal in range(day.toordinal() - reach, day.toordinal() + reach + 1)
        if date.min.toordinal() <= ordinal <= date.max.toordinal()
    }
    return sorted(map(str, found))


def _made_from_lake(work: UnitWork, day: str) -> Iterable[IndexFile]:
    """The ids of a day from the tables' own columns, but for partitions the unit replaces."""
    source, storage, unit = work.context.source, work.context.storage, work.unit
    folders: list[str] = []
    for table, partitions in work.partitions(work.tables, (day, day)).items():
        for partition in partitions:
            start = source.date_partition.parse(partition.values)
            chosen = unit.tables is None or table in unit.tables
            if not (unit.window and chosen and unit.window.holds(start)):
                folders.append(partition.location)
    held = storage.each(lambda folder: storage.files(folder, recursive=False), folders)
    ids = read_ids(storage, source, [file for files in held for file in files])
    if len(ids):
        name, folder = f"{work.name}-remade", work.index_folder
        yield from write_index(storage, source.id, name, ids, folder=folder)


IDS_PER_GROUP = 250_000
LOOKED_BACK_PER_GROUP = 4_000_000
"""Of the lake's ids that a task compares with, some 60 bytes each while it does."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What the dedup pass found: rows to drop, ids by table, what the index gains."""

    positions: np.ndarray
    other_payload: np.ndarray  # those with another payload than the kept event
    tables: dict[str, TableIds]
    added: tuple[IndexFile, ...]
    window: IndexWindow


def deduplicate(work: UnitWork, seen: Seen) -> Duplicates:
    """Compare the rows of the unit with each other and with the lake."""
    context = work.context
    window = index_window(work, seen.days())
    staged = sum(seen.staged_rows().values())
    looked_back = sum(file.ids for file in window.files)
    job = DedupJob(
        storage=context.storage,
        source_id=context.source.id,
        unit=work.name,
        groups=groups_for(staged, looked_back),
        window_us=timedelta(days=context.source.dedup_days) // timedelta(microseconds=1),
        index=window.files,
        index_folder=work.index_folder,
    )
    parts = work.flow.dedup(job) if staged else []
    tables: dict[str, TableIds] = {}
    for part in parts:
        for table, ids in part.tables.items():
            tables[table] = tables.get(table, TableIds()) + ids
    added = tuple(file for part in parts for file in part.index)
    return Duplicates(
        _sorted_positions(part.positions for part in parts),
        _sorted_positions(part.other_payload for part in parts),
        tables,
        (*window.made, *added),
        window,
    )


def groups_for(staged: int, looked_back: int) -> int:
    """So many tasks that none has too many ids, new ones or old; at most one for each bucket."""
    groups = 1
    while groups < BUCKETS and (
        groups * IDS_PER_GROUP < staged or groups * LOOKED_BACK_PER_GROUP < looked_back
    ):
        groups *= 2
    return groups


def _sorted_positions(parts: Iterable[bytes]) -> np.ndarray:
    return np.sort(np.frombuffer(b"".join(parts), np.uint64))

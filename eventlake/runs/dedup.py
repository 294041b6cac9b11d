"""The dedup pass of a unit: finds duplicates, and creates the additions to the id index.

A replay also searches the raw archive for copies of rows that it removes because their raw lines
are gone: such a copy was a duplicate, and is none any more. Copies in the range of the replay are
published together with the removal, so that readers find the row at any time. Copies outside wait
for a replay of their own, which the run asks for.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.columnar.id_hashes import BUCKETS, hash_id
from eventlake.load.dedup import DedupJob, TableIds
from eventlake.load.seen import Seen
from eventlake.load.stage_job import StageJob
from eventlake.rules.duplicates import Events, have_twins
from eventlake.rules.errors import DamagedFile
from eventlake.rules.names import MESSAGE_ID, RECEIVED_AT
from eventlake.rules.partitions import DAY_US
from eventlake.runs.unit import UnitWork, Window, tasks
from eventlake.settings.models import Source
from eventlake.state.id_index import (
    ALL,
    SCHEMA,
    UNKNOWN,
    Buckets,
    day_of,
    read_index,
    whole_files,
    write_index,
)
from eventlake.state.manifest import IndexFile
from eventlake.storage import Storage, StoredFile


def read_ids(storage: Storage, source: Source, files: Iterable[StoredFile]) -> pa.Table:
    """The hashes of the message ids in some data files, with their times."""
    names = [c.name(source.naming) for c in (MESSAGE_ID, RECEIVED_AT)]
    parts = storage.each(lambda file: _ids(storage, file, *names), list(files))
    return pa.concat_tables([SCHEMA.empty_table(), *parts])


def _ids(storage: Storage, file: StoredFile, id_column: str, received_column: str) -> pa.Table:
    try:
        with storage.open_input(file.path) as stream:
            parquet = pq.ParquetFile(stream, pre_buffer=True)
            rows = parquet.read(columns=[id_column, received_column])
    except pa.ArrowInvalid as error:
        raise DamagedFile(
            f"{file.path} cannot be read: {str(error).rstrip('.')}. It was damaged: replay its day "
            "to write its rows again."
        ) from None
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
    old: tuple[IndexFile, ...] = ()  # of a replay: the current rows of its days


def index_window(work: UnitWork, days: Sequence[str]) -> IndexWindow:
    """The index of the days around the rows, without any row that the replay replaces.

    Later days of the replay are still in the lake, and stay in the index for syncs.
    """
    unit = work.unit
    replayed = [day.days[0] for day in unit.window.by_day()] if unit.window else []
    around = around_days([*days, *replayed], work.context.source.dedup_days)
    known = _known_days(work, around)
    files: list[IndexFile] = []
    made: list[IndexFile] = []
    replaced: list[str] = []
    old: list[IndexFile] = []
    for day in around:
        if unit.has_day(day):
            lake = known.get(day)
            old += _made_from_lake(work, day, "old", work.ids_folder) if lake is None else lake
        elif unit.pending is not None and unit.pending.has_day(day):
            files += _left_on(work, day)
            continue
        elif day in known:
            files += known[day]
            continue
        anew = [*_made_from_lake(work, day, "remade", work.index_folder, unit.replaces)]
        files += anew
        made += anew
        replaced.append(day)
    return IndexWindow(tuple(files), tuple(made), tuple(replaced), tuple(old))


def _left_on(work: UnitWork, day: str) -> tuple[IndexFile, ...]:
    """The ids that a replay leaves on a later day; updated only if rows were added."""
    unit, made = work.unit, work.made_ids
    key = (day, unit.range, unit.tables, work.state.index.get(day, ()))
    if key not in made:
        made[key] = tuple(_made_from_lake(work, day, "left", work.ids_folder, unit.replaces))
    return made[key]


def _known_days(work: UnitWork, days: Iterable[str]) -> dict[str, tuple[IndexFile, ...]]:
    """The days with a complete index: no file is missing or damaged, and it was not dropped."""
    state = work.state
    dropped = state.index_from or ""
    found = {d: state.index.get(d, ()) for d in days if d in state.index or d >= dropped}
    whole = whole_files(work.context.storage, (f for files in found.values() for f in files))
    return {day: files for day, files in found.items() if all(f.path in whole for f in files)}


def around_days(days: Sequence[str], reach: int) -> list[str]:
    """All days within `reach` of one of these, as far as the calendar goes."""
    found = {
        date.fromordinal(ordinal)
        for day in map(date.fromisoformat, days)
        for ordinal in range(day.toordinal() - reach, day.toordinal() + reach + 1)
        if date.min.toordinal() <= ordinal <= date.max.toordinal()
    }
    return sorted(map(str, found))


def _made_from_lake(
    work: UnitWork,
    day: str,
    kind: str,
    folder: str | None,
    without: Callable[[str, datetime], bool] = lambda table, start: False,
) -> Iterable[IndexFile]:
    """The ids of a day from the columns of the tables, without some partitions."""
    source, storage = work.context.source, work.context.storage
    if without == work.unit.replaces and work.unit.replaces_day(day):
        return
    folders: list[str] = []
    for table, partitions in work.partitions(work.tables, (day, day)).items():
        for partition in partitions:
            if not without(table, source.date_partition.parse(partition.values)):
                folders.append(partition.location)
    held = storage.each(lambda folder: storage.files(folder, recursive=False), folders)
    files = [file for files in held for file in files if file.name.endswith(".parquet")]
    if work.unit.has_day(day) and without != work.unit.replaces:  # of what it replaces
        files = [file for file in files if _is_whole(storage, file)]
    ids = read_ids(storage, source, files)
    if len(ids):
        yield from write_index(storage, source.id, f"{work.name}-{kind}", ids, folder=folder)


def _is_whole(storage: Storage, file: StoredFile) -> bool:
    """Whether a data file can be read; a replay may be about to replace a damaged one."""
    try:
        with storage.open_input(file.path) as stream:
            pq.read_metadata(stream)
    except pa.ArrowInvalid:
        return False
    return True


IDS_PER_GROUP = 250_000
LOOKED_BACK_PER_GROUP = 4_000_000
"""The maximum number of the lake's ids that a task compares with, about 60 bytes each."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """The result of the dedup pass: rows to drop, ids by table, additions to the index."""

    positions: np.ndarray
    other_payload: np.ndarray  # those with another payload than the kept event
    tables: dict[str, TableIds]
    added: tuple[IndexFile, ...]
    window: IndexWindow
    gone: Events  # rows that a replay removes
    lost: Events  # those of which no copy remains in the lake


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
        window_us=context.source.dedup_days * DAY_US,
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
        *_taken_away(job, window, added),
    )


def _taken_away(
    job: DedupJob, window: IndexWindow, added: tuple[IndexFile, ...]
) -> tuple[Events, Events]:
    """The removed rows, and those without a remaining copy; usually there are none."""
    job = replace(job, groups=groups_for(sum(file.ids for file in window.old), 0))
    gone, lost = [indexed(job.storage, ())], [indexed(job.storage, ())]
    for group in range(job.groups) if window.old else ():
        buckets = job.buckets(group)
        for found, apart in ((gone, 0), (lost, job.window_us)):
            rows = gone[-1] if apart else indexed(job.storage, window.old, buckets)
            for kept in (added, window.files):
                if len(rows.ids):  # usually the second part is not read
                    others = indexed(job.storage, kept, buckets)
                    rows = rows.where(~have_twins(rows, others, apart))
            found.append(rows)
    return Events.joined(gone), Events.joined(lost)


def index_after(work: UnitWork, duplicates: Duplicates, days: Sequence[str]) -> list[IndexFile]:
    """The index of some days after the unit."""
    left = [day for day in days if day not in duplicates.window.replaced]
    known = _known_days(work, left)
    files = [file for file in duplicates.added if file.day in days]
    for day in left:
        files += (
            known[day] if day in known else _made_from_lake(work, day, "as is", work.ids_folder)
        )
    return files


def indexed(storage: Storage, files: Iterable[IndexFile], buckets: Buckets = ALL) -> Events:
    """The events in some buckets of index files."""
    entries = read_index(storage, files, buckets)
    return Events(entries.ids, entries.received)


def groups_for(staged: int, looked_back: int) -> int:
    """The number of tasks that limits the ids per task; at most one task per bucket."""
    groups = 1
    while groups < BUCKETS and (
        groups * IDS_PER_GROUP < staged or groups * LOOKED_BACK_PER_GROUP < looked_back
    ):
        groups *= 2
    return groups


def _sorted_positions(parts: Iterable[bytes]) -> np.ndarray:
    return np.sort(np.frombuffer(b"".join(parts), np.uint64))


ALL_KEPT = -1
"""A dedup window in which not even an event at the same moment is a duplicate."""


class RowsMove(Exception):
    """Rows of a unit moved to other days of the replay, so these days belong to the unit."""

    def __init__(self, window: Window) -> None:
        super().__init__(f"Rows move to other days: {window} is published as one")
        self.window = window


def freed_copies(work: UnitWork, job: StageJob, duplicates: Duplicates) -> dict[str, int]:
    """The days with copies that another replay has to load, and their numbers.

    `job` is the staging job of the unit. Raises `RowsMove` if the range of the replay itself has
    copies of lost rows.
    """
    unit, days = work.unit, work.context.source.dedup_days
    if not len(duplicates.gone.ids) or unit.window is None:
        return {}
    range = unit.range or unit.window
    window_us = days * DAY_US

    def copies(rows: Events, window: Window, tables: frozenset[str] | None) -> Events:
        raw = _raw_events(work, replace(job, tables=tables), window)
        return Events.joined([events.where(have_twins(events, rows, window_us)) for events in raw])

    lost, parts = {*around_days(_days(duplicates.lost), days)}, [*range.by_day()]
    others = [p for p in parts if p.days[0] in lost and not unit.window.holds(p.start)]
    if moved := [p for p in others if len(copies(duplicates.lost, p, unit.tables).ids)]:
        raise RowsMove(_together(parts, [*unit.window.by_day()], moved))
    freed: dict[str, int] = {}
    for day in around_days(_days(duplicates.gone), days):
        if unit.tables is not None or not range.holds_day(day):
            found = copies(duplicates.gone, Window.of_day(day), None)
            if len(found.ids):
                files = index_after(work, duplicates, around_days([day], days))
                lake = indexed(work.context.storage, files)
                found = found.where(~have_twins(found, lake, window_us))
            freed |= {day: len(found.ids)} if len(found.ids) else {}
    return freed


def _days(events: Events) -> list[str]:
    return [day_of(day * DAY_US) for day in np.unique(events.received // DAY_US).tolist()]


def _together(days: list[Window], so_far: list[Window], more: list[Window]) -> Window:
    """All days from the first to the last, and at least twice as many as before."""
    places = sorted(days.index(day) for day in (*so_far, *more))
    last = max(places[-1], places[0] + 2 * len(so_far) - 1)
    return Window(days[places[0]].start, days[min(last, len(days) - 1)].end)


def _raw_events(work: UnitWork, job: StageJob, window: Window) -> Iterator[Events]:
    """All events of a range that could be loaded from the archive, by groups of ids."""
    job = replace(job, window=window.in_us, ids_only=True, keep_lines=False)
    files = _raw_ids(work, job, window)
    groups = DedupJob(work.context.storage, "", "", groups_for(sum(f.ids for f in files), 0), 0, ())
    for group in range(groups.groups):
        yield indexed(work.context.storage, files, groups.buckets(group))


def _raw_ids(work: UnitWork, job: StageJob, window: Window) -> tuple[IndexFile, ...]:
    """The ids in the raw files of a range; read once per run, unless files are added."""
    raw = work.unit.files_of(window) if work.unit.files_of else ()
    key = (window, job.tables, raw)
    if key in work.made_ids or not raw:
        return work.made_ids.get(key, ())
    work.context.listener.log(f"{work.unit.label}: searches for copies of lost rows in {window}")
    flow = work.context.dataflow()
    try:
        seen = flow.stage(job, tasks(raw, flow.slots))
        staged = sum(rows for one in seen for rows in one.staged_rows().values())
        name, folder = f"raw-{len(work.made_ids)}", work.ids_folder
        groups = groups_for(staged, 0)
        dedup = DedupJob(job.storage, "", name, groups, ALL_KEPT, (), f"{folder}/{name}")
        parts = flow.dedup(dedup) if staged else []
    finally:
        flow.release()
    work.made_ids[key] = tuple(file for part in parts for file in part.index)
    return work.made_ids[key]

"""The record log of a unit: every record of it once, and counted."""

from collections.abc import Iterable

import numpy as np
import pyarrow.parquet as pq

from eventlake.load.positions import split_places
from eventlake.load.record_log import DUPLICATE, OTHER_PAYLOAD, LogJob, NotLoaded
from eventlake.load.seen import Seen
from eventlake.rules import paths
from eventlake.rules.errors import ConservationError
from eventlake.state.manifest import NewFile
from eventlake.storage import Storage, StoredFile
from eventlake.work.deduplicate import Duplicates
from eventlake.work.unit import tasks
from eventlake.work.unit_work import UnitWork


def log_records(work: UnitWork, seen: Seen, duplicates: Duplicates) -> tuple[NewFile, ...]:
    """Log what was not loaded beside what was, and number the files of the run."""
    by_reason = {r: np.array(places, dtype=np.uint64) for r, places in seen.not_loaded.items()}
    other = duplicates.other_payload
    by_reason[DUPLICATE] = np.setdiff1d(duplicates.places, other, assume_unique=True)
    by_reason[OTHER_PAYLOAD] = other
    missing = _not_loaded(work, {r: places for r, places in by_reason.items() if len(places)})
    if missing:
        files = {one.file.number: one for one in missing}
        shares = tasks([one.file for one in missing], work.flow.slots)
        work.flow.log(_job(work), [[files[file.number] for file in share] for share in shares])
    return _numbered(work, seen.rows_in)


def _not_loaded(work: UnitWork, by_reason: dict[str, np.ndarray]) -> list[NotLoaded]:
    """By file, the lines that were not loaded, in order, each with its reason."""
    if not by_reason:
        return []
    files, lines = split_places(np.concatenate(list(by_reason.values())))
    # A number for each row, not a text: there may be millions of them.
    names = list(by_reason)
    codes = np.repeat(np.arange(len(names)), [len(places) for places in by_reason.values()])
    found: list[NotLoaded] = []
    for number in np.unique(files):
        mine = np.flatnonzero(files == number)
        mine = mine[np.argsort(lines[mine])]
        file = work.unit.files[number]
        found.append(NotLoaded(file, lines[mine], [names[code] for code in codes[mine].tolist()]))
    return found


def _job(work: UnitWork) -> LogJob:
    source = work.context.source
    return LogJob(
        storage=work.context.storage,
        folder=work.log_folder,
        operation=work.operation,
        naming=source.naming,
        table_prefix=source.table_prefix,
        date_partition=source.date_partition,
        limits=source.limits,
        dedup_days=source.dedup_days,
        suppression=work.suppression,
    )


def _numbered(work: UnitWork, rows_in: int) -> tuple[NewFile, ...]:
    """The files of this unit as they are called once they are published: from 0, by batch type."""
    context, storage = work.context, work.context.storage
    folder = paths.tracking(context.settings.workspace_id, context.source.id, context.run_id)
    numbers = dict(work.log_files)
    records: list[NewFile] = []
    files = storage.files(work.log_folder)
    for file, rows in zip(files, storage.each(lambda f: _rows(storage, f), files), strict=True):
        batch_type = file.name.split("-")[0]
        number = numbers[batch_type] = numbers.get(batch_type, -1) + 1
        path = f"{folder}/{batch_type}.{number}.parquet"
        records.append(NewFile(file.path, path, rows, file.size))
    logged = sum(record.rows for record in records)
    if logged != rows_in:
        raise ConservationError(
            f"The record log has {logged} records of {rows_in} that came in, so nothing was "
            "published. Please report this with the run's log; the next run tries again."
        )
    return tuple(records)


def _rows(storage: Storage, file: StoredFile) -> int:
    with storage.open_input(file.path) as stream:
        rows: int = pq.read_metadata(stream).num_rows
        return rows


def last_numbers(records: Iterable[NewFile]) -> dict[str, int]:
    """The number of the last file of each batch type."""
    last: dict[str, int] = {}
    for record in records:
        batch_type, number, _ = record.path.rsplit("/", 1)[-1].split(".")
        last[batch_type] = max(last.get(batch_type, -1), int(number))
    return last

"""Writes the record log of a unit, every record once, and `metadata.json` of a run."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
import numpy as np
import pyarrow.parquet as pq

from eventlake.catalog import sync_records
from eventlake.catalog.base import Catalog, CatalogPartition
from eventlake.catalog.sync_reports import DATABASE
from eventlake.load.record_log import DUPLICATE, OTHER_PAYLOAD, LogJob, NotLoaded
from eventlake.load.seen import Seen, SeenTable
from eventlake.rules import paths
from eventlake.rules.errors import ConservationError, StateError
from eventlake.rules.inference import Kind
from eventlake.runs.dedup import Duplicates
from eventlake.runs.unit import UnitWork
from eventlake.state.manifest import NewFile
from eventlake.state.report import RunFacts
from eventlake.storage import Storage, StoredFile


def log_records(work: UnitWork, seen: Seen, duplicates: Duplicates) -> tuple[NewFile, ...]:
    """Log what was not loaded, beside what was, and number the files of the run."""
    by_reason = {
        r: np.array(positions, dtype=np.uint64) for r, positions in seen.not_loaded.items()
    }
    other = duplicates.other_payload
    by_reason[DUPLICATE] = np.setdiff1d(duplicates.positions, other, assume_unique=True)
    by_reason[OTHER_PAYLOAD] = other
    positions = np.concatenate(list(by_reason.values()))
    if len(positions):
        # A number per row instead of text: there may be millions of rows.
        codes = np.repeat(np.arange(len(by_reason)), [*map(len, by_reason.values())])
        order = np.argsort(positions)
        job = _job(work, seen, tuple(by_reason))
        work.flow.log(job, NotLoaded(positions[order], codes[order]))
    add_types(work.payload_types, seen.tables)
    write_metadata(work.context.storage, work.context.facts, "running", work.payload_types)
    return _numbered(work, seen.rows_in)


def _job(work: UnitWork, seen: Seen, reasons: tuple[str, ...]) -> LogJob:
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
        raw_files=tuple(file.path for file in work.unit.files),
        reasons=reasons,
        broken={file.number: file.broken for file in seen.files if file.broken},
        suppression=work.suppression,
    )


def _numbered(work: UnitWork, rows_in: int) -> tuple[NewFile, ...]:
    """The final names of the files of this unit: numbered from 0 by batch type."""
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


_JSON_TYPES = {
    Kind.TEXT: "string",
    Kind.DATE: "string",
    Kind.INT64: "number",
    Kind.BIGINT_OVERFLOW: "number",
    Kind.NUMBER: "number",
    Kind.HUGE: "number",
    Kind.BOOL: "boolean",
    Kind.ARRAY: "array",
}

PayloadTypes = dict[str, set[str]]
"""The JSON types of the fields of events, by JSON pointer."""


def add_types(types: PayloadTypes, tables: Iterable[SeenTable]) -> None:
    """Add the fields that were seen, with the JSON types of their values."""
    for table in tables:
        for column in table.columns:
            types.setdefault(column.pointer, set()).update(_JSON_TYPES[k] for k in column.kinds)


class LogMetadata(msgspec.Struct, frozen=True):
    """The metadata of a run, for readers of its log."""

    operation: str
    started_at: datetime
    state: str
    record_payload_schema: dict[str, str | list[str]] = {}

    @property
    def kind(self) -> str:
        return "replay" if self.operation == "mirror" else "sync"


def write_metadata(
    storage: Storage, run: RunFacts, state: str, types: Mapping[str, set[str]] | None = None
) -> None:
    """Record that a run is `running`, `finished` or `failed`; without types, these stay."""
    folder = paths.tracking(run.workspace_id, run.source_id, run.run_id)
    if types is None:
        schema = _known_schema(storage, folder)
    else:
        schema = {pointer: _one_or_more(sorted(types[pointer])) for pointer in sorted(types)}
    content = {
        "organization_id": run.workspace_id,
        "workspace_id": run.workspace_id,
        "sync_configuration_id": run.source_id,
        "sync_run_id": run.run_id,
        "source_type": "event_archive",
        "source_id": run.source_id,
        "destination_type": "data_lake",
        "destination_id": run.database,
        "operation": "mirror" if run.replay else "append",
        "started_at": run.start_time,
        "state": state,
        "record_payload_schema": schema,
    }
    storage.write(f"{folder}/metadata.json", msgspec.json.format(msgspec.json.encode(content)))


def _known_schema(storage: Storage, folder: str) -> dict[str, str | list[str]]:
    try:
        known = read_metadata(storage, folder)
    except StateError:
        return {}
    return known.record_payload_schema if known else {}


def _one_or_more(types: list[str]) -> str | list[str]:
    return types[0] if len(types) == 1 else types


def read_metadata(storage: Storage, folder: str) -> LogMetadata | None:
    """The metadata of a run's log; None if there is no log."""
    path = f"{folder}/metadata.json"
    data = storage.read(path)
    try:
        return None if data is None else msgspec.json.decode(data, type=LogMetadata)
    except msgspec.MsgspecError as error:
        raise StateError(
            f"{path} does not describe a run ({error}). It was damaged or edited; restore the "
            "file from a backup, or remove the folder."
        ) from None


def show_records(storage: Storage, catalog: Catalog, run: RunFacts) -> None:
    """Put the log of a run that has ended into the table of records, if it has any."""
    folder = paths.tracking(run.workspace_id, run.source_id, run.run_id)
    files = [f.path for f in storage.files(folder, recursive=False) if f.name.endswith(".parquet")]
    if files:
        values = (run.source_id, run.day, run.run_id)
        uris = "".join(f"{storage.full(path)}\n" for path in files)
        storage.write(f"{paths.listed_run(*values)}/{sync_records.LIST}", uris.encode())
        _put(catalog, [values])


def restore_records(storage: Storage, catalog: Catalog) -> None:
    """Make the partitions of the table again from the lists of files."""
    _put(catalog, _listed(storage, paths.listed_records()))


def drop_records(
    storage: Storage, catalog: Catalog, source_id: str, run_ids: Collection[str]
) -> None:
    """Take the logs of runs out of the table."""
    listed = _listed(storage, f"{paths.listed_records()}/source_id={source_id}")
    gone = [values for values in listed if values[-1] in run_ids]
    if gone:
        catalog.drop_partitions(DATABASE, sync_records.NAME, gone, version=0)
        storage.each(lambda values: storage.delete_folder(paths.listed_run(*values)), gone)


Listed = tuple[str, str, str]
"""A run in the table: its source, day and id."""


def _listed(storage: Storage, folder: str) -> list[Listed]:
    found = []
    for file in storage.files(folder):
        named = dict(part.split("=", 1) for part in file.path.split("/") if "=" in part)
        found.append((named["source_id"], named["day"], named["run_id"]))
    return found


def _put(catalog: Catalog, runs: Sequence[Listed]) -> None:
    partitions = [CatalogPartition(run, paths.listed_run(*run), version=0) for run in runs]
    if partitions:
        catalog.put_partitions(DATABASE, sync_records.NAME, partitions)

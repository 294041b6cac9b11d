"""Record logs: reads, searches and downloads the records of runs."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from eventlake.lake import Lake
from eventlake.load.record_log import SCHEMA, BatchType
from eventlake.rules import paths
from eventlake.rules.errors import UsageError
from eventlake.runs.record_log import LogMetadata, read_metadata
from eventlake.runs.report_history import RunReport, newest_reports, report_of
from eventlake.settings.models import Source
from eventlake.storage import LocalStorage, Storage

_SHOWN = 5  # runs named in a message


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of records, all of which have the same status."""

    path: str
    batch_type: BatchType
    number: int

    def rows(self, storage: Storage) -> int:
        with storage.open_input(self.path) as stream:
            rows: int = pq.read_metadata(stream).num_rows
            return rows


@dataclass(frozen=True, slots=True)
class RunLog:
    """The record log of one run; files in order of batch type and number."""

    source: Source
    run_id: str
    run: LogMetadata
    files: tuple[LogFile, ...]

    def of(self, batch_types: Collection[BatchType]) -> list[LogFile]:
        return [file for file in self.files if file.batch_type in batch_types]


def run_logs(lake: Lake, source: Source) -> list[RunLog]:
    """The logs of a source, the newest run first; also those that have no records (yet)."""
    lake = lake.for_source(source)
    root = paths.tracked_runs(lake.settings.workspace_id, source.id)
    by_run: dict[str, list[str]] = {}
    for file in lake.storage.files(root):
        folder, _, name = file.path.rpartition("/")
        by_run.setdefault(folder, []).append(name)
    found = lake.storage.each(lambda run: _log(lake, source, *run), list(by_run.items()))
    logs = [log for log in found if log is not None]
    return sorted(logs, key=lambda log: (log.run.started_at, log.run_id), reverse=True)


def run_log(lake: Lake, sources: Iterable[Source], run: str) -> RunLog:
    """The log of a run, by its id or Dagster's, the beginning of one, or `latest`."""
    sources = list(sources)
    if (found := _by_folder(lake, sources, run)) is not None:
        return found
    reports = newest_reports(lake, {source.id for source in sources})
    report = report_of(reports, run)
    if report is None:
        raise _unknown(lake, sources, run)
    if (found := _by_folder(lake, sources, report.run_id)) is not None:
        return found
    raise _expired(sources, report)


def newest_log(lake: Lake, source: Source) -> RunLog:
    """The log of the newest run that has records."""
    logs = run_logs(lake, source)
    found = next((log for log in logs if log.files), None)
    if found is None:
        raise UsageError(
            f"Source {source.slug!r} has no record log: "
            + (
                f"its last {len(logs)} runs had no records to log."
                if logs
                else "`datalake sync` creates one, and logs are kept "
                f"{source.retention.record_log_days} days."
            )
        )
    return found


def _by_folder(lake: Lake, sources: Sequence[Source], run_id: str) -> RunLog | None:
    if not run_id or "/" in run_id or run_id.startswith("."):
        return None
    for source in sources:
        folder = paths.tracking(lake.settings.workspace_id, source.id, run_id)
        own = lake.for_source(source)
        names = [file.name for file in own.storage.files(folder, recursive=False)]
        if names and (log := _log(own, source, folder, names)):
            return log
    return None


def _log(lake: Lake, source: Source, folder: str, names: Iterable[str]) -> RunLog | None:
    metadata = read_metadata(lake.storage, folder)
    if metadata is None:
        return None  # retention removes a folder file by file
    order = list(BatchType)
    files = [file for name in names if (file := _log_file(folder, name))]
    files.sort(key=lambda file: (order.index(file.batch_type), file.number))
    return RunLog(source, folder.rpartition("/")[2], metadata, tuple(files))


def _log_file(folder: str, name: str) -> LogFile | None:
    """A file such as `records_loaded.0.parquet`; None for any other."""
    batch_type, _, rest = name.partition(".")
    number, _, ending = rest.partition(".")
    if batch_type not in set(BatchType) or not number.isdecimal() or ending != "parquet":
        return None
    return LogFile(f"{folder}/{name}", BatchType(batch_type), int(number))


def _unknown(lake: Lake, sources: Sequence[Source], run: str) -> UsageError:
    logs = [log for source in sources for log in run_logs(lake, source)]
    logs.sort(key=lambda log: log.run.started_at, reverse=True)
    newest = ", ".join(f"{log.run_id} ({log.source.slug})" for log in logs[:_SHOWN])
    of = " or ".join(source.slug for source in sources)
    return UsageError(
        f"No run of {of} has the id {run!r}. "
        + (
            f"The newest of {len(logs)} with a record log: {newest}. `datalake records` lists "
            "them all."
            if logs
            else "No run has a record log yet: `datalake sync` creates one."
        )
    )


def _expired(sources: Sequence[Source], report: RunReport) -> UsageError:
    source = next(s for s in sources if s.id == report.source.source_id)
    return UsageError(
        f"Run {report.run_id} of {source.slug} began {report.started:%Y-%m-%d %H:%M} UTC; its "
        f"record log is no longer there. Logs are kept {source.retention.record_log_days} days "
        "(`retention.record_log_days`). `datalake reports --run "
        f"{report.run_id}` still shows its numbers."
    )


BATCH = 5_000
"""Records held at once: a payload may be as long as the longest line."""

_WORDS = {
    **{batch_type.value: {batch_type} for batch_type in BatchType},
    "loaded": {BatchType.LOADED},
    "suppressed": {BatchType.SUPPRESSED},
    "skipped": {BatchType.SKIPPED},
    **{
        status.lower(): {batch_type for batch_type in BatchType if batch_type.status == status}
        for status in ("succeeded", "rejected", "NULL", "DUPLICATE")
    },
}


def batch_types(words: Collection[str]) -> frozenset[BatchType]:
    """The batch types of some statuses or names; without any, all of them."""
    if not words:
        return frozenset(BatchType)
    if unknown := [word for word in words if word.lower() not in _WORDS]:
        raise UsageError(
            f"{unknown[0]!r} is no status. Allowed are succeeded, rejected, NULL and DUPLICATE, "
            "and of the rejected ones alone suppressed, skipped or records_rejected (all others)."
        )
    return frozenset(t for word in words for t in _WORDS[word.lower()])


def count(storage: Storage, files: Iterable[LogFile]) -> dict[BatchType, int]:
    """How many records there are of each type."""
    counts: dict[BatchType, int] = {}
    listed = list(files)
    for file, rows in zip(listed, storage.each(lambda f: f.rows(storage), listed), strict=True):
        counts[file.batch_type] = counts.get(file.batch_type, 0) + rows
    return counts


def read(storage: Storage, files: Iterable[LogFile]) -> Iterator[pa.Table]:
    """All records in order, a bounded number at a time."""
    for file in files:
        with storage.open_input(file.path) as stream:
            for batch in pq.ParquetFile(stream).iter_batches(BATCH):
                yield pa.Table.from_batches([batch]).cast(SCHEMA)


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """A position among the records of a run: a file, and a row of it."""

    file: int = 0
    row: int = 0


def page(
    storage: Storage,
    files: Sequence[LogFile],
    at: Cursor,
    size: int,
    text: str = "",
    hide: Callable[[Iterable[pa.Table]], Iterator[pa.Table]] = iter,
) -> tuple[pa.Table, Cursor | None]:
    """Some records from a position on, and the position of the next; None at the end.

    With a text, only records that have it in their reason or payload, after `hide`. A search looks
    through at most `MOST_SEARCHED` records, so a page that is not the last may have fewer records.
    """
    found, searched = [SCHEMA.empty_table()], 0
    for number in range(at.file, len(files)):
        row = at.row if number == at.file else 0
        with storage.open_input(files[number].path) as stream:
            for table in hide(_from_row(pq.ParquetFile(stream), row)):
                hits = _containing(table, text)
                found.append(table.take(hits[:size]))
                if len(hits) >= size:
                    next_row = row + hits[size - 1].as_py() + 1
                    return pa.concat_tables(found), _existing(storage, files, number, next_row)
                size, row, searched = size - len(hits), row + len(table), searched + len(table)
                if searched >= MOST_SEARCHED:
                    return pa.concat_tables(found), _existing(storage, files, number, row)
    return pa.concat_tables(found), None


MOST_SEARCHED = 200_000


def _from_row(parquet: pq.ParquetFile, row: int) -> Iterator[pa.Table]:
    for group in range(parquet.num_row_groups):
        rows = parquet.metadata.row_group(group).num_rows
        if row >= rows:
            row -= rows
            continue
        for batch in parquet.iter_batches(BATCH, row_groups=[group]):
            if row < len(batch):
                yield pa.Table.from_batches([batch[row:]]).cast(SCHEMA)
            row = max(0, row - len(batch))


def _containing(table: pa.Table, text: str) -> pa.Array:
    """The rows with a text, in any case, in their reason or payload."""
    if not text:
        return pa.array(range(len(table)), pa.int64())
    hits = [
        pc.fill_null(pc.match_substring(table[name], text, ignore_case=True), False)
        for name in ("status_message", "record_payload")
    ]
    return pc.indices_nonzero(pc.or_(*hits)).cast(pa.int64())


def containing(records: Iterable[pa.Table], text: str) -> Iterator[pa.Table]:
    """The records with a text, in any case, in their reason or payload."""
    for table in records:
        yield table.take(_containing(table, text))


def _existing(storage: Storage, files: Sequence[LogFile], file: int, row: int) -> Cursor | None:
    """The cursor at a row, which may be the first one of the next file."""
    if row < files[file].rows(storage):
        return Cursor(file, row)
    return Cursor(file + 1) if file + 1 < len(files) else None


def first(records: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """At most a number of records."""
    for table in records:
        yield table[:most]
        most -= min(most, len(table))
        if not most:
            return


def sample(storage: Storage, files: Sequence[LogFile], size: int) -> Iterator[pa.Table]:
    """A number of records, evenly spread over all of them, and deterministic."""
    counts = storage.each(lambda file: file.rows(storage), files)
    wanted = _spread(sum(counts), size)
    for file, rows in zip(files, counts, strict=True):
        mine, wanted = wanted[wanted < rows], wanted[wanted >= rows] - rows
        if not len(mine):
            continue
        for table in read(storage, [file]):
            here, mine = mine[mine < len(table)], mine[mine >= len(table)] - len(table)
            if len(here):
                yield table.take(pa.array(here))


def _spread(total: int, size: int) -> np.ndarray:
    """The middles of equal parts."""
    size = min(size, total)
    return (2 * np.arange(size, dtype=np.int64) + 1) * total // (2 * max(size, 1))


def search(
    storage: Storage, files: Sequence[LogFile], identifier: str
) -> list[tuple[LogFile, pa.Table]]:
    """The records with this identifier, by the files that have any, in order of the archive."""
    if not files:
        return []
    if not isinstance(storage, LocalStorage):
        return search_several(storage, files, [identifier])
    return _search_folder(storage, files, identifier)


def search_several(
    storage: Storage, files: Sequence[LogFile], identifiers: Sequence[str]
) -> list[tuple[LogFile, pa.Table]]:
    """The records with one of some identifiers."""
    wanted = pa.array(identifiers, pa.string())
    found = storage.each(lambda file: _records(storage, file, wanted), files)
    return [(file, records) for file, records in zip(files, found, strict=True) if len(records)]


def _records(storage: Storage, file: LogFile, identifiers: pa.Array) -> pa.Table:
    """The matching records of one file; reads only the identifiers of most files."""
    with storage.open_input(file.path) as stream:
        parquet = pq.ParquetFile(stream, pre_buffer=True)
        hits = pc.is_in(parquet.read(["identifier"])["identifier"], identifiers)
        if not pc.any(hits).as_py():
            return SCHEMA.empty_table()
        records = parquet.read().filter(hits).cast(SCHEMA)
    return records.sort_by([("raw_file", "ascending"), ("raw_line", "ascending")])


def _search_folder(
    storage: Storage, files: Sequence[LogFile], identifier: str
) -> list[tuple[LogFile, pa.Table]]:
    """Search with DuckDB, which skips files by their Bloom filters.

    Arrow's reader has no Bloom filters and takes six times as long, but DuckDB needs downloaded
    extensions for anything other than folders.
    """
    import duckdb

    columns = ", ".join(f'"{name}"' for name in SCHEMA.names)
    with closing(duckdb.connect()) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.sql(
            f"SELECT filename, {columns} FROM read_parquet(?, filename = true) "
            "WHERE identifier = ? ORDER BY raw_file, raw_line",
            params=[[storage.full(file.path) for file in files], identifier],
        ).to_arrow_table()
    records = found.select(SCHEMA.names).cast(SCHEMA)
    hits = set(found["filename"].to_pylist())
    return [
        (file, records.filter(pc.equal(found["filename"], storage.full(file.path))))
        for file in files
        if storage.full(file.path) in hits
    ]


Write = Callable[[pa.Table], None]


def check_target(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is read."""
    if path.suffix.lower() not in _WRITERS:
        raise UsageError(
            f"{path} ends in {path.suffix or 'nothing'!r}; the ending sets the format: "
            f"{', '.join(_WRITERS)}."
        )
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"{path} cannot be written: give a file in a folder that exists.")


def download(records: Iterable[pa.Table], path: Path, schema: pa.Schema = SCHEMA) -> int:
    """Write records, or rows of another schema, to a file atomically; returns their number."""
    check_target(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    rows = 0
    try:
        with aside.open("wb") as out, _WRITERS[path.suffix.lower()](out, schema) as write:
            for table in records:
                write(table)
                rows += len(table)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return rows


def without_formulas(table: pa.Table) -> pa.Table:
    """For CSV: strings that a spreadsheet would run as a formula begin with an apostrophe."""
    for number, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            texts = pc.replace_substring_regex(table[number], r"\A([=+\-@\t\r])", r"'\1")
            table = table.set_column(number, field, texts)
    return table


@contextmanager
def _csv(out: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    """Strings are quoted, so that empty strings differ from nulls."""
    with pc_csv.CSVWriter(out, schema) as writer:
        yield lambda table: writer.write_table(without_formulas(table))


@contextmanager
def _json_lines(out: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    def write(table: pa.Table) -> None:
        out.writelines(msgspec.json.encode(record) + b"\n" for record in table.to_pylist())

    yield write


@contextmanager
def _parquet(out: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    with pq.ParquetWriter(out, schema, compression="zstd", store_schema=False) as writer:
        yield lambda table: writer.write_table(without_formulas(table))


_WRITERS: dict[str, Callable[[BinaryIO, pa.Schema], AbstractContextManager[Write]]] = {
    ".csv": _csv,
    ".jsonl": _json_lines,
    ".parquet": _parquet,
}

"""The lake at one moment: what an audit compares the archive with."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from eventlake.audit.archive_rows import RawFile
from eventlake.audit.lake_rows import DataFile
from eventlake.audit.scope import Scope, Span
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.errors import StateError
from eventlake.rules.types import TableSchema
from eventlake.runs.plan import list_archive
from eventlake.state.ledger import LedgerEntry, read_ledger
from eventlake.state.manifest import read_manifest
from eventlake.state.source_state import SourceState, read_state, refuse_changed_layout
from eventlake.storage import StoredFile

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class RawFiles:
    """Files to read, and those of which a person should know, by path."""

    read: tuple[RawFile, ...]
    waiting: tuple[str, ...] = ()  # for the next sync, wholly or from some line on
    early: tuple[str, ...] = ()  # in folders before the source's start, where no sync looks
    changed: tuple[str, ...] = ()  # since they were loaded
    gone: tuple[LedgerEntry, ...] = ()  # since they were loaded

    @property
    def gone_hours(self) -> frozenset[str]:
        """Hours of which the archive no longer has everything."""
        return frozenset(hour for entry in self.gone for hour in entry.hours)


def raw_files(
    folders: Mapping[date, list[StoredFile]],
    ledger: Mapping[str, LedgerEntry],
    start: date | None,
    span: Span,
) -> RawFiles:
    """Every file that may have events of the span: by its folder, or by what was seen in it."""
    read: list[RawFile] = []
    waiting: list[str] = []
    early: list[str] = []
    changed: list[str] = []
    for folder, files in folders.items():
        for file in files:
            entry = ledger.get(file.path)
            if not (_near(folder, span) or (entry and _touches(entry, span))):
                continue
            loaded: int | None = None
            if entry is None:
                loaded = 0
                (early if start is not None and folder < start else waiting).append(file.path)
            elif not entry.matches(file) and entry.broken:
                loaded = entry.lines
                waiting.append(file.path)
            elif not entry.matches(file):
                changed.append(file.path)
            read.append(RawFile(len(read), file.path, file.size, loaded))
    there = {file.path for files in folders.values() for file in files}
    gone = [e for path, e in ledger.items() if path not in there and _touches(e, span)]
    return RawFiles(tuple(read), tuple(waiting), tuple(early), tuple(changed), tuple(gone))


def _near(folder: date, span: Span) -> bool:
    """A folder may begin with events of the evening before, and end with some of the morning."""
    midnight = datetime(folder.year, folder.month, folder.day, tzinfo=UTC)
    after = span.start is None or midnight > span.start - 2 * DAY
    return after and (span.end is None or midnight < span.end + DAY)


def _touches(entry: LedgerEntry, span: Span) -> bool:
    if span.whole:
        return True
    first = "" if span.start is None else span.start.isoformat(timespec="hours")[:13]
    end = "~" if span.end is None else span.end.isoformat(timespec="hours")[:13]
    return any(first <= hour < end for hour in entry.hours)


_ATTEMPTS = 30
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as the catalog has it."""

    table: str
    path: str
    span: Span
    rows: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Tables by name in their folder, their partitions and files, and the raw files."""

    tables: dict[str, TableSchema]
    partitions: tuple[Partition, ...]
    data_files: tuple[DataFile, ...]
    raw: RawFiles


def take_snapshot(lake: Lake, scope: Scope, progress: Callable[[str], None]) -> Snapshot:
    """Look again until nothing was committed while we looked.

    First the ledger, then the tables, then the archive: a file that comes meanwhile is then taken
    for one that waits, and neither its rows nor their absence is held against the lake.
    """
    source, storage = scope.source, lake.storage
    list_archive(storage, source)  # refused before anything is waited for
    for attempt in range(_ATTEMPTS):
        if attempt:
            progress("a run is publishing just now; looking again")
            time.sleep(_PAUSE_SECONDS)
        state = read_state(storage, source.id)
        refuse_changed_layout(source, state)
        pages = storage.files(paths.ledger_pages(source.id), recursive=False)
        ledger = read_ledger(storage, source.id, [page.name[: -len(".json")] for page in pages])
        partitions, files = _tables(lake, scope, state)
        if read_manifest(storage, source.id, state.manifest + 1) is None:
            archive = list_archive(storage, source)
            raw = raw_files(archive.folders, ledger, archive.start(source, state), scope.span)
            return Snapshot(state.tables_of(source), partitions, files, raw)
    raise StateError(
        f"Manifest {state.manifest + 1} of source {source.slug!r} is committed, but not all that "
        "follows from it is done, so the tables cannot be audited. The run that left it has "
        f"died: `datalake sync --source {source.slug}` completes it; then audit again."
    )


def _tables(
    lake: Lake, scope: Scope, state: SourceState
) -> tuple[tuple[Partition, ...], tuple[DataFile, ...]]:
    """The partitions of the range, and the files of these and of those within the window."""
    source, layout = scope.source, scope.source.date_partition
    partitions: list[Partition] = []
    files: list[DataFile] = []
    days = scope.span.days(source.dedup_days)
    for table, schema in state.tables_of(source).items():
        for found in lake.catalog.partitions(schema.database, schema.name, days):
            start = layout.parse(found.values)
            one = Partition(table, layout.path(start), _span(start, layout.has_hours), found.rows)
            if one.span.touches(scope.span):
                partitions.append(one)
            for file in lake.storage.files(found.location, recursive=False):
                files.append(DataFile(len(files), file.path, table, one.path, one.span))
    return tuple(partitions), tuple(files)


def _span(start: datetime, has_hours: bool) -> Span:
    try:
        return Span(start, start + timedelta(hours=1 if has_hours else 24))
    except OverflowError:
        return Span(start)  # the last one of the calendar

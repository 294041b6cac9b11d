"""The scope of an audit, and the lake at one moment: what the archive is compared with."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from eventlake.lake import Lake
from eventlake.rules.errors import StateError
from eventlake.rules.types import TableSchema
from eventlake.runs.archive import list_archive
from eventlake.runs.plan import RawFiles, had_rows, is_near
from eventlake.runs.unit import Window
from eventlake.settings.models import Source
from eventlake.state.ledger import LedgerEntry, read_whole_ledger
from eventlake.state.manifest import read_manifest
from eventlake.state.source_state import SourceState, read_state, refuse_changed_layout
from eventlake.storage import StoredFile

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
EVERYTHING = Window(FIRST, LAST)


def micros(window: Window) -> tuple[int, int]:
    """Start and end in microseconds; a range up to `LAST` includes that moment."""
    start, end = window.in_us
    return start, end + (window.end == LAST)


def overlaps(one: Window, other: Window) -> bool:
    return one.start < other.end and other.start < one.end


@dataclass(frozen=True, slots=True)
class Scope:
    source: Source
    window: Window = EVERYTHING

    @property
    def is_everything(self) -> bool:
        return self.window == EVERYTHING

    @property
    def days(self) -> tuple[str, str]:
        """The first and the last day of the range, extended by the dedup window."""
        first, last = self.window.start, self.window.end
        around = timedelta(days=self.source.dedup_days)
        first = first - around if first - FIRST > around else FIRST
        last = last + around if LAST - last > around else LAST
        return Window(first, last).days

    def __str__(self) -> str:
        start, end = self.window.hours
        start = "the beginning" if self.window.start == FIRST else start
        return f"{start} to {'the end' if self.window.end == LAST else end}"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a partition; `partition` is its path below the table's folder."""

    number: int
    path: str
    table: str
    partition: str
    window: Window  # the times of the rows that belong to the partition


@dataclass(frozen=True, slots=True)
class AuditedFiles:
    """The raw files to read, and the paths of those to report."""

    read: tuple[StoredFile, ...]
    loaded_lines: dict[str, int]  # of files that are not loaded to their end
    hours: dict[str, frozenset[str]]  # of files that are loaded and have not changed
    waiting: tuple[str, ...] = ()  # for the next sync, completely or from some line on
    before_start: tuple[str, ...] = ()  # in folders before the source's start, which no sync reads
    changed: tuple[str, ...] = ()  # since they were loaded
    gone: tuple[LedgerEntry, ...] = ()  # since they were loaded

    @property
    def gone_hours(self) -> frozenset[str]:
        """Hours of which the archive no longer has everything."""
        return frozenset(hour for entry in self.gone for hour in entry.hours)


def audited_files(raw: RawFiles, start: date | None, scope: Scope) -> AuditedFiles:
    """Every file that may have events of the range: by its folder, or by the ledger."""
    read: list[StoredFile] = []
    loaded_lines: dict[str, int] = {}
    hours: dict[str, frozenset[str]] = {}
    waiting: list[str] = []
    before_start: list[str] = []
    changed: list[str] = []
    for folder, files in raw.archive.folders.items():
        for file in files:
            entry = raw.ledger.get(file.path)
            if not (is_near(folder, scope.window) or (entry and had_rows(entry, scope.window))):
                continue
            read.append(file)
            if entry is None:
                loaded_lines[file.path] = 0
                (before_start if start is not None and folder < start else waiting).append(
                    file.path
                )
            elif entry.matches(file):
                hours[file.path] = frozenset(entry.hours)
            elif entry.broken:
                loaded_lines[file.path] = entry.lines
                waiting.append(file.path)
            else:
                changed.append(file.path)
    gone = (
        [path for path in raw.ledger if path not in raw.archive.files]
        if scope.is_everything
        else raw.gone(scope.window)
    )
    return AuditedFiles(
        tuple(read),
        loaded_lines,
        hours,
        tuple(waiting),
        tuple(before_start),
        tuple(changed),
        tuple(raw.ledger[path] for path in gone),
    )


_ATTEMPTS = 30
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as the catalog has it."""

    table: str
    path: str
    window: Window
    rows: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Tables by name in their folder, their partitions and files, and the raw files."""

    tables: dict[str, TableSchema]
    partitions: tuple[Partition, ...]
    data_files: tuple[DataFile, ...]
    raw: AuditedFiles


def take_snapshot(lake: Lake, scope: Scope, progress: Callable[[str], None]) -> Snapshot:
    """Repeat until no run commits in the meantime.

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
        ledger = read_whole_ledger(storage, source.id)
        partitions, files = _tables(lake, scope, state)
        if read_manifest(storage, source.id, state.manifest + 1) is None:
            archive = list_archive(storage, source)
            start = archive.start(source, state)
            raw = audited_files(RawFiles(archive, ledger), start, scope)
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
    for table, schema in state.tables_of(source).items():
        for found in lake.catalog.partitions(schema.database, schema.name, scope.days):
            start = layout.parse(found.values)
            one = Partition(table, layout.path(start), _window(start, layout.has_hours), found.rows)
            if overlaps(one.window, scope.window):
                partitions.append(one)
            for file in lake.storage.files(found.location, recursive=False):
                files.append(DataFile(len(files), file.path, table, one.path, one.window))
    return tuple(partitions), tuple(files)


def _window(start: datetime, has_hours: bool) -> Window:
    try:
        return Window(start, start + timedelta(hours=1 if has_hours else 24))
    except OverflowError:
        return Window(start, LAST)

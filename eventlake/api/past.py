"""What runs did and where rows are, by day, kept between questions.

A report never changes once its run has ended, and the page of a month changes only with its rows.
So both are read once, and again only if their file has changed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, TypeVar

import msgspec

from eventlake.catalog.base import partition_day
from eventlake.catalog.pages import PageTable
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.runs.report_history import RunReport, report_in
from eventlake.settings.models import Source
from eventlake.state.source_state import SourceState, read_state
from eventlake.status import damaged_files
from eventlake.storage import Storage, StoredFile
from eventlake.storage.documents import decode

T = TypeVar("T")
HOURS = 24


@dataclass
class DayVolume:
    """The rows of a table that were received on a day; `hours` are empty if it has only days."""

    rows: int = 0
    bytes: int = 0
    files: int = 0
    hours: list[int] = field(default_factory=list)

    def add(self, other: "DayVolume") -> None:
        self.rows += other.rows
        self.bytes += other.bytes
        self.files += other.files
        if other.hours:
            self.hours = [
                a + b for a, b in zip(self.hours or [0] * HOURS, other.hours, strict=True)
            ]


Volume = dict[str, DayVolume]
"""By day."""


class _Entry(msgspec.Struct):
    """A partition, without the names of its files."""

    values: tuple[str, ...]
    rows: int = 0
    bytes: int = 0
    files: int = 0


class _Page(msgspec.Struct):
    partitions: tuple[_Entry, ...] = ()


@dataclass
class Past:
    """Remembers reports and pages by file; one for each open lake."""

    _files: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _states: dict[str, tuple[str, SourceState]] = field(default_factory=dict)
    _volumes: dict[str, tuple[int, dict[str, Volume]]] = field(default_factory=dict)
    _damaged: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def runs(self, lake: Lake, source: Source, first: date, last: date) -> list[RunReport]:
        """The runs that began on some days, newest first, with the lines of new tables only."""
        storage = lake.for_source(source).storage
        days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
        folders = [paths.reports_folder(source.id, str(day)) for day in days]
        files = [file for found in storage.each(storage.files, folders) for file in found]
        found = self._read(storage, files, lambda path, data: _brief(report_in(path, data)))
        return sorted(found, key=lambda run: (run.source.start_time, run.run_id), reverse=True)

    def state(self, lake: Lake, source: Source) -> SourceState:
        """The state of a source; read again only after a commit."""
        storage = lake.for_source(source).storage
        folder, _, name = paths.state_file(source.id).rpartition("/")
        stamps = (f.stamp for f in storage.files(folder, recursive=False) if f.name == name)
        stamp = next(stamps, "")
        if self._states.get(source.id, ("",))[0] != stamp or not stamp:
            self._states[source.id] = stamp, read_state(storage, source.id)
        return self._states[source.id][1]

    def damaged(self, lake: Lake, source: Source, *, again: bool = False) -> tuple[str, ...]:
        """Data files that are gone, as found by the last look for them: it lists all files."""
        if again or source.id not in self._damaged:
            own = lake.for_source(source)
            state = read_state(own.storage, source.id)
            self._damaged[source.id] = damaged_files(own, source, state)
        return self._damaged[source.id]

    def volumes(self, lake: Lake, source: Source) -> dict[str, Volume]:
        """The rows of each table of a source, by full name of the table and day."""
        state = self.state(lake, source)
        known = self._volumes.get(source.id)
        if known is None or known[0] != state.manifest:
            storage = lake.for_source(source).storage
            tables = [state.page_table(schema.key) for schema in state.tables_of(source).values()]
            pages = storage.each(lambda t: storage.files(t.folder, recursive=False), tables)
            found = {
                f"{table.database}.{table.name}": self._volume(storage, table, files)
                for table, files in zip(tables, pages, strict=True)
            }
            self._volumes[source.id] = known = state.manifest, found
        return known[1]

    def _volume(self, storage: Storage, table: PageTable, files: Sequence[StoredFile]) -> Volume:
        months = self._read(
            storage, files, lambda path, data: _by_day(table, decode(data, _Page, path))
        )
        return {day: volume for month in months for day, volume in month.items()}

    def _read(
        self,
        storage: Storage,
        files: Sequence[StoredFile],
        decoded: Callable[[str, bytes], T],
    ) -> list[T]:
        """What some files have; those that did not change are not read again."""
        changed = [f for f in files if self._files.get(f.path, ("",))[0] != f.stamp]
        contents = storage.read_many([file.path for file in changed])
        for file, data in zip(changed, contents, strict=True):
            if data is not None:  # else it has just been removed
                self._files[file.path] = file.stamp, decoded(file.path, data)
        return [self._files[file.path][1] for file in files if file.path in self._files]


def _brief(report: RunReport) -> RunReport:
    """A report without the lines of tables that say nothing new: a run may have hundreds."""
    return RunReport(report.source, tuple(t for t in report.tables if t.is_new or t.new_columns))


def _by_day(table: PageTable, page: _Page) -> Volume:
    found: Volume = {}
    hour = table.keys.index("hr") if "hr" in table.keys else None
    for one in page.partitions:
        day = found.setdefault(partition_day(table.keys, one.values), DayVolume())
        hours = [0] * HOURS if hour is not None else []
        if hour is not None:
            hours[int(one.values[hour])] = one.rows
        day.add(DayVolume(one.rows, one.bytes, one.files, hours))
    return found


def summed(volumes: Iterable[Volume]) -> Volume:
    """Of several tables together."""
    total: Volume = {}
    for volume in volumes:
        for day, one in volume.items():
            total.setdefault(day, DayVolume()).add(one)
    return total

"""Which raw files a run has to read: the archive, less what the ledger has."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from eventlake.load.stage_job import RawFile
from eventlake.rules import paths
from eventlake.rules.errors import UsageError
from eventlake.runs.unit import Unit, Window
from eventlake.settings.models import Source
from eventlake.state.ledger import LedgerEntry, read_ledger, read_whole_ledger
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage, StoredFile

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Archive:
    """The raw files of a source, by day folder."""

    folders: dict[date, list[StoredFile]]
    files: dict[str, StoredFile] = field(init=False)  # by path

    def __post_init__(self) -> None:
        by_path = {file.path: file for files in self.folders.values() for file in files}
        object.__setattr__(self, "files", by_path)

    def start(self, source: Source, state: SourceState) -> date | None:
        """Syncs ignore older folders: as set, as kept, else the oldest there is."""
        if source.start is not None:
            return source.start
        if state.start is not None:
            return date.fromisoformat(state.start)
        return min(self.folders, default=None)


@dataclass(frozen=True, slots=True)
class Plan:
    """Units of work in order, the first day of the source, and warnings."""

    units: tuple[Unit, ...]
    start: date | None = None
    warnings: tuple[str, ...] = ()


def list_archive(storage: Storage, source: Source) -> Archive:
    """The archive as it lies there; a folder that is missing is a mistake in the settings."""
    files = storage.files(source.raw)
    if not files and not storage.exists(source.raw):
        raise UsageError(
            f"The raw archive of source {source.slug!r} is not there: "
            f"{storage.full(source.raw)} does not exist. "
            "Put the day folders there, or set `raw` of the source to where they lie."
        )
    folders: dict[date, list[StoredFile]] = {}
    for file in files:
        day = paths.folder_day(file.path.split("/")[-2])
        if day is not None and file.name.endswith(paths.RAW_SUFFIXES):
            folders.setdefault(day, []).append(file)
    return Archive(dict(sorted(folders.items())))


def plan_sync(
    storage: Storage, source: Source, state: SourceState, days: tuple[date, date] | None = None
) -> Plan:
    """All files not yet loaded, oldest folder first; of some days' folders only, if given."""
    archive = list_archive(storage, source)
    start = archive.start(source, state)
    if start is None:
        return Plan((), None, (f"{source.raw} holds no raw files yet.",))
    first, last = days or (start, date.max)
    wanted = {d: f for d, f in archive.folders.items() if max(first, start) <= d <= last}
    ledger = _ledger(storage, source, wanted)
    warnings: list[str] = []
    units: list[Unit] = []
    for day, files in wanted.items():
        if new := list(_unloaded(files, ledger, warnings)):
            units.append(Unit(len(units), f"day folder {day}", _numbered(new)))
    return Plan(tuple(units), start, tuple(warnings))


def _unloaded(
    files: list[StoredFile], ledger: dict[str, LedgerEntry], warnings: list[str]
) -> Iterable[tuple[StoredFile, LedgerEntry | None]]:
    """Files to load, each with what the ledger has of a broken one that came before it."""
    for file in files:
        entry = ledger.get(file.path)
        if entry is None:
            yield file, None
        elif entry.matches(file):
            continue
        elif entry.broken:
            yield file, entry
        else:
            warnings.append(
                f"{file.path} changed after it was loaded ({entry.size} bytes then, {file.size} "
                "now); what was loaded stays. Replay its days to take the new content."
            )


def replay_days(source: Source, window: Window) -> list[Window]:
    """The days of a replay, each a unit; a part of a partition is refused."""
    layout = source.date_partition
    if any(layout.floor(edge) != edge for edge in (window.start, window.end)):
        raise UsageError(
            f"{window} is no range that source {source.slug!r} can replay: its tables are "
            f"partitioned by {layout} and replayed as whole partitions. Begin and end with a full "
            f"{'hour' if layout.has_hours else 'day'} (UTC)."
        )
    days: list[Window] = []
    start = window.start
    while start < window.end:
        midnight = start.replace(hour=0) + DAY
        days.append(Window(start, min(midnight, window.end)))
        start = midnight
    return days


@dataclass(frozen=True, slots=True)
class RawFiles:
    """The archive as it is, and everything that syncs loaded, including removed files."""

    archive: Archive
    ledger: dict[str, LedgerEntry]

    def now(self, path: str) -> StoredFile | None:
        return self.archive.files.get(path)

    def gone(self, window: Window) -> list[str]:
        """Files that were loaded, had rows of a range, and are no longer there."""
        return [
            path
            for path, entry in self.ledger.items()
            if path not in self.archive.files and had_rows(entry, window)
        ]


def raw_files(storage: Storage, source: Source) -> RawFiles:
    return RawFiles(list_archive(storage, source), read_whole_ledger(storage, source.id))


def plan_replay(raw: RawFiles, day: Window, tables: frozenset[str] | None) -> Unit:
    """One day of a replay, with the files that hold, or may hold, rows of it.

    To be planned just before it is done: a file that a sync loads in the meantime has to be in it,
    for what is not in it is not in the partitions that it makes anew.
    """
    files = [
        (file, None)
        for folder, stored in raw.archive.folders.items()
        for file in stored
        if _may_hold(file, folder, raw.ledger.get(file.path), day)
    ]
    return Unit(0, f"replay of {day}", _numbered(files), day, tables)


def _may_hold(file: StoredFile, folder: date, entry: LedgerEntry | None, window: Window) -> bool:
    """By the hours that the ledger has for a file; an unknown file also by its folder."""
    if entry is not None:
        if had_rows(entry, window):
            return True
        if entry.matches(file):
            return False
    return is_near(folder, window)


def had_rows(entry: LedgerEntry, window: Window) -> bool:
    """Whether a loaded file had rows of a range."""
    first, end = window.hours
    return any(first <= hour < end for hour in entry.hours)


def is_near(folder: date, window: Window) -> bool:
    """Whether a day folder may hold rows of a range.

    It may begin with rows of the evening before and end with some of the next morning.
    """
    midnight = datetime(folder.year, folder.month, folder.day, tzinfo=UTC)
    return midnight - window.start > -2 * DAY and midnight - window.end < DAY


def _ledger(storage: Storage, source: Source, folders: Iterable[date]) -> dict[str, LedgerEntry]:
    return read_ledger(storage, source.id, [paths.day_folder(day) for day in folders])


def _numbered(files: Iterable[tuple[StoredFile, LedgerEntry | None]]) -> tuple[RawFile, ...]:
    return tuple(
        RawFile(
            number,
            file.path,
            file.size,
            file.stamp,
            skip_lines=loaded.lines if loaded else 0,
            skip_hours=loaded.hours if loaded else (),
        )
        for number, (file, loaded) in enumerate(sorted(files, key=lambda item: item[0].path))
    )

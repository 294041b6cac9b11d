"""Plans which raw files a run reads: the archive without the files in the ledger."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial

from msgspec.structs import replace

from eventlake.load.stage_job import RawFile, checksum
from eventlake.rules import paths
from eventlake.rules.errors import DamagedFile, UsageError
from eventlake.rules.text import plural, size
from eventlake.runs.archive import Archive, Ignored, archive_storage, list_archive
from eventlake.runs.unit import DAY, Unit, Window
from eventlake.settings.models import Source
from eventlake.state.ledger import LedgerEntry, add_to_ledger, read_ledger, read_whole_ledger
from eventlake.state.manifest import Manifest
from eventlake.state.replays import RawVersion, ReplayStep
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage, StoredFile
from eventlake.storage.documents import decode

NewFile = tuple[StoredFile, LedgerEntry | None]
"""A file to load, and the ledger entry of a broken file that it replaces."""


Changed = Mapping[str, Collection[str]]
"""Files that changed after they were loaded, and whose new content is not in the lake: each with
the days to replay."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Units of work in order, the first day of the source, and warnings."""

    units: tuple[Unit, ...]
    start: date | None = None
    warnings: tuple[str, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    changed: Changed = field(default_factory=dict)


Log = Callable[[str], None]


def plan_sync(
    storage: Storage,
    source: Source,
    state: SourceState,
    days: tuple[date, date] | None = None,
    log: Log | None = None,
) -> Plan:
    """All files not yet loaded, oldest folder first; of some days' folders only, if given.

    With a log, files that may be copies are compared, and the ledger remembers the result.
    """
    archive = list_archive(storage, source)
    start = archive.start(source, state)
    ignored = archive.ignored(source, state)
    if start is None:
        return Plan((), None, (f"{source.raw} holds no raw files yet.",), ignored)
    first, last = days or (start, date.max)
    wanted = {d: f for d, f in archive.folders.items() if max(first, start) <= d <= last}
    warnings = [f"Not loaded: {one}." for one in ignored if not one.expected]
    pages = [paths.day_folder(day) for day in wanted]

    def damaged(error: DamagedFile) -> None:
        warnings.append(f"{error} Its raw files are read again.")

    ledger = read_ledger(storage, source.id, pages, damaged if log else None)
    if log is not None:
        ledger |= _compared(storage, source, archive, ledger, log)
    if moved := state.tables_elsewhere(source):
        warnings.append(f"Source {source.slug!r} has a new place: {moved}.")
    other: list[str] = []
    new = {day: [*_unloaded(files, ledger, other)] for day, files in wanted.items()}
    changed = _not_replayed(storage, state, RawFiles(archive, ledger), other)
    warnings += [_has_changed(ledger[path], archive.files[path]) for path in changed]
    units = _units({day: files for day, files in new.items() if files}, source.unit_bytes)
    return Plan(units, start, tuple(warnings), ignored, changed)


def _units(folders: dict[date, list[NewFile]], most: int) -> tuple[Unit, ...]:
    """Whole day folders, oldest first, grouped as far as they fit into one unit."""
    together: list[list[date]] = []
    total = 0
    for day, files in folders.items():
        size = sum(file.size for file, _ in files)
        total += size
        if not together or total > most:
            together.append([])
            total = size
        together[-1].append(day)
    return tuple(
        Unit(number, _label(days), _numbered(file for day in days for file in folders[day]))
        for number, days in enumerate(together)
    )


def _label(days: list[date]) -> str:
    first, *more = days
    return f"day folders {first} to {more[-1]}" if more else f"day folder {first}"


def _unloaded(
    files: list[StoredFile], ledger: dict[str, LedgerEntry], changed: list[str]
) -> Iterable[NewFile]:
    for file in files:
        entry = ledger.get(file.path)
        if entry is None:
            yield file, None
        elif entry.matches(file):
            continue
        elif entry.broken:
            yield file, entry
        else:
            changed.append(file.path)


def _has_changed(entry: LedgerEntry, file: StoredFile) -> str:
    return (
        f"{file.path} changed after it was loaded ({entry.size} bytes then, {file.size} now); what "
        "was loaded stays. Replay its days to take the new content."
    )


def replay_days(source: Source, window: Window) -> list[Window]:
    """The days of a replay, each a unit; a part of a partition is refused."""
    layout = source.date_partition
    if window.start >= window.end:
        raise UsageError(f"{window} is empty: a replay ends after it begins.")
    if any(layout.floor(edge) != edge for edge in (window.start, window.end)):
        raise UsageError(
            f"{window} is no range that source {source.slug!r} can replay: its tables are "
            f"partitioned by {layout} and replayed as whole partitions. Begin and end with a full "
            f"{'hour' if layout.has_hours else 'day'} (UTC)."
        )
    return [*window.by_day()]


@dataclass(frozen=True, slots=True)
class RawFiles:
    """The archive as it is, and everything that syncs loaded, including removed files."""

    archive: Archive
    ledger: dict[str, LedgerEntry]

    def now(self, path: str) -> StoredFile | None:
        return self.archive.files.get(path)

    def of(self, window: Window) -> tuple[RawFile, ...]:
        """Files that hold, or may hold, rows of a range."""
        return _numbered(
            (file, None)
            for folder, stored in self.archive.folders.items()
            for file in stored
            if _may_hold(file, folder, self.ledger.get(file.path), window)
        )

    def gone(self, window: Window) -> list[str]:
        """Files that were loaded, had rows of a range, and are no longer there."""
        return [
            path
            for path, entry in self.ledger.items()
            if path not in self.archive.files and had_rows(entry, window)
        ]

    def has(self, version: LedgerEntry | RawVersion) -> bool:
        """Whether the archive still has the bytes that were read from a file."""
        now, entry = self.now(version.path), self.ledger.get(version.path)
        if now is None or (version.size, version.stamp) == (now.size, now.stamp):
            return (now and now.stamp) == version.stamp
        # The loaded bytes may have been recognised under another stamp since.
        if version.checksum is None or entry is None or not entry.matches(now):
            return False
        return entry.checksum == version.checksum


def raw_files(storage: Storage, source: Source, log: Log | None = None) -> RawFiles:
    """With a log, files that may be copies are compared, and the ledger remembers the result."""
    archive, ledger = list_archive(storage, source), read_whole_ledger(storage, source.id)
    if log is not None:
        ledger |= _compared(storage, source, archive, ledger, log)
    return RawFiles(archive, ledger)


Versions = Mapping[str, RawVersion]


def replayed_versions(
    storage: Storage, state: SourceState, first: str, last: str
) -> dict[str, Versions]:
    """The files of the last replay of each day of a range, by path, if it was of all tables."""
    days = {day: n for day, n in state.replays.days.items() if first <= day <= last}
    files = [paths.manifest(state.source_id, number) for number in days.values()]
    found: dict[str, Versions] = {}
    for day, path, data in zip(days, files, storage.read_many(files), strict=True):
        step = decode(data, Manifest, path).replay if data else None
        found[day] = {version.path: version for version in step.raw} if step else {}
    return found


def _not_replayed(
    storage: Storage, state: SourceState, raw: RawFiles, other: Iterable[str]
) -> Changed:
    """Those of the files with other content that no replay has taken since."""
    days = {path: _days_of(raw.ledger[path]) for path in other}
    every = {day for found in days.values() for day in found}
    replayed = replayed_versions(storage, state, min(every), max(every)) if every else {}

    def is_taken(path: str, day: str) -> bool:
        version = replayed.get(day, {}).get(path)
        return version is not None and raw.has(version)

    return {
        path: found for path, found in days.items() if not all(is_taken(path, day) for day in found)
    }


def _days_of(entry: LedgerEntry) -> set[str]:
    """The days of the rows that were loaded from a file, and that of its folder."""
    folder = datetime.fromtimestamp(int(entry.path.split("/")[-2]) / 1000, UTC)
    return {hour[:10] for hour in entry.hours} | {f"{folder:%Y-%m-%d}"}


def _compared(
    storage: Storage, source: Source, archive: Archive, ledger: dict[str, LedgerEntry], log: Log
) -> dict[str, LedgerEntry]:
    """Entries of files with the same size and another time than when they were loaded.

    Their bytes are compared once: after `cp -r` or a restored backup they are the same.
    """
    found = [
        (entry, file)
        for path, entry in ledger.items()
        if (file := archive.files.get(path)) and entry.may_be_copy(file)
    ]
    if not found:
        return {}
    total = sum(file.size for _, file in found)
    log(
        f"{plural(len(found), 'loaded raw file')} of another time and the same size: comparing "
        f"their bytes with what was loaded ({size(total)})"
    )
    raw = archive_storage(storage, source)

    def compared(pair: tuple[LedgerEntry, StoredFile]) -> LedgerEntry:
        entry, file = pair
        same = checksum(partial(raw.open_stream, file.path)) == entry.checksum
        return replace(entry, stamp=file.stamp) if same else replace(entry, other=file.stamp)

    entries = raw.each(compared, found)
    add_to_ledger(storage, source.id, tuple(entries))
    return {entry.path: entry for entry in entries}


def plan_replay(
    raw: RawFiles,
    window: Window,
    tables: frozenset[str] | None,
    switches: frozenset[str] = frozenset(),
    step: ReplayStep | None = None,
    range: Window | None = None,
) -> Unit:
    """One or several days of a replay of `range`, with the files that have, or may have, rows of
    them.

    Plan it just before it runs: a file that a sync loads in the meantime has to be included, or its
    rows would be missing in the rewritten partitions.
    """
    label, files = f"replay of {window}", raw.of(window)
    return Unit(0, label, files, window, range, tables, switches, step, raw.of)


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

    It may start with rows of the evening before and end with rows of the next morning.
    """
    midnight = datetime(folder.year, folder.month, folder.day, tzinfo=UTC)
    return midnight - window.start > -2 * DAY and midnight - window.end < DAY


def _numbered(files: Iterable[NewFile]) -> tuple[RawFile, ...]:
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


def freed_warnings(source: Source, freed: Mapping[str, int]) -> Iterator[str]:
    """The warnings about copies that another replay has to load."""
    for day, copies in sorted(freed.items()):
        yield (
            f"{copies} {'copy' if copies == 1 else 'copies'} of rows that a replay took away "
            f"{'is' if copies == 1 else 'are'} in raw files of {day} and not in the lake. To load "
            f"them, run: {replay_command(source, day, day)}"
        )


def replay_command(source: Source, first: str, last: str) -> str:
    """The command that replays some days, the last included."""
    end = date.fromordinal(min(date.fromisoformat(last).toordinal() + 1, date.max.toordinal()))
    return f"datalake replay --source {source.slug} --from {first}T00 --to {end}T00"

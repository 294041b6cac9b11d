"""Raw files that changed, or were removed, after rows of a range were loaded from them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eventlake.rules.errors import ConsentNeeded
from eventlake.rules.text import plural
from eventlake.runs.plan import RawFiles, Versions, replayed_versions
from eventlake.runs.unit import Window
from eventlake.settings.models import Source
from eventlake.state.ledger import LedgerEntry
from eventlake.state.partitions import Partitions
from eventlake.state.replays import RawVersion
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage, StoredFile

SHOWN = 10

Version = LedgerEntry | RawVersion


@dataclass(frozen=True, slots=True)
class RawChange:
    """A raw file as it was loaded, and as it is now; None if it was removed."""

    path: str
    then: Version
    now: StoredFile | None

    @property
    def loaded(self) -> str:
        """The number of lines or rows loaded from it."""
        if isinstance(self.then, RawVersion):
            return f"{plural(self.then.rows, 'row')} of a day loaded by a replay"
        return f"{plural(self.then.lines, 'line')} loaded"

    def __str__(self) -> str:
        if self.now is None:
            return f"removed: {self.path} ({self.loaded})"
        sizes = f"{self.then.size:,} bytes then, {self.now.size:,} now"
        return f"changed: {self.path} ({sizes}; {self.loaded})"


def raw_changes(
    storage: Storage, state: SourceState, raw: RawFiles, window: Window
) -> list[RawChange]:
    """Files that rows of the range came from and that were changed or removed since, by path."""
    replayed = replayed_versions(storage, state, *window.days)
    found: dict[str, RawChange] = {}
    for path, then in _sources(raw, replayed, window):
        if _differs(raw, then):
            found[path] = RawChange(path, then, raw.now(path))
    return [found[path] for path in sorted(found)]


def _sources(
    raw: RawFiles, replayed: Mapping[str, Versions], window: Window
) -> Iterator[tuple[str, Version]]:
    """The source files of each day: as syncs loaded them, or as a later replay read them."""
    first, end = window.hours
    for path, entry in raw.ledger.items():
        for day in {hour[:10] for hour in entry.hours if first <= hour < end}:
            yield path, replayed.get(day, {}).get(path, entry)
    for versions in replayed.values():
        for path, version in versions.items():
            if version.rows and path not in raw.ledger:
                yield path, version


def _differs(raw: RawFiles, then: Version) -> bool:
    if isinstance(then, LedgerEntry) and then.broken and raw.now(then.path) is not None:
        return False  # a broken file may be replaced by the whole one
    return then.stamp is not None and not raw.has(then)  # None: its removal was accepted before


def rows_held(
    partitions: Partitions,
    source: Source,
    state: SourceState,
    window: Window,
    tables: frozenset[str] | None,
) -> int:
    """The rows that a replay would replace."""
    return sum(
        partition.rows
        for table, schema in state.tables_of(source).items()
        if tables is None or table in tables
        for partition in partitions.of(state, schema, window.days)
        if window.holds(source.date_partition.parse(partition.values))
    )


def what_changed(window: Window, changes: list[RawChange]) -> str:
    """The first of the changed files, as text."""
    listed = [f"  {change}" for change in changes[:SHOWN]]
    if len(changes) > SHOWN:
        listed.append(f"  … and {len(changes) - SHOWN} more")
    head = f"Raw files that rows of {window} were loaded from are no longer the same:"
    return "\n".join([head, *listed])


def refusal(window: Window, changes: list[RawChange], rows: int) -> ConsentNeeded:
    """Reports what changed, what a replay would do, and how to run it anyway."""
    return ConsentNeeded(
        f"{what_changed(window, changes)}\n"
        f"Nothing was replayed. The range holds {plural(rows, 'row')} in the tables to be "
        "replayed; a replay would take changed files as they are now, and rows that only removed "
        "files had would be gone. Put the files back; or see what would change with `datalake "
        "replay --dry-run` and replay with --accept-changes (from Dagster's UI: with the tag "
        "`datalake/accept_changes: true`, or `accept_changes: true` in the run's config)."
    )


def agreed(changes: list[RawChange]) -> str:
    """What a replay does with changed files that were accepted or held no rows."""
    gone = sum(change.now is None for change in changes)
    return (
        f"Takes {plural(len(changes) - gone, 'changed raw file')} as found now, and "
        f"does without {gone} that are gone."
    )

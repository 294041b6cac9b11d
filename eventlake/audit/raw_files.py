"""Which raw files an audit reads, and what the ledger says of each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from eventlake.audit.archive_rows import RawFile
from eventlake.audit.scope import Span
from eventlake.state.ledger import LedgerEntry
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

"""The generator's own books: what every raw file holds, and what a lake must make of it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple, TypeAlias

from eventlake.sample.clock import DAY, HOUR
from eventlake.sample.expected import Duplicate, Expected, Likeness, Rejected, Slot
from eventlake.sample.row import Row
from eventlake.sample.spec import SampleSource


class Copy(NamedTuple):
    """A row whose message id may occur more than once; sorts as the earliest first."""

    received: int
    path: str
    line: int
    message_id: str
    table: str
    body: int
    sending: int

    def likeness(self, kept: "Copy") -> Likeness:
        if self.body != kept.body:
            return Likeness.OTHER_PAYLOAD
        return Likeness.EXACT if self.sending == kept.sending else Likeness.RESENT


@dataclass(slots=True)
class RawFile:
    """One file of the archive and the lines in it, added up while it is written."""

    path: str  # below the lake's storage
    folder: date
    arrival: int  # the sync that sees it first, from 1
    size: int = 0
    lines: int = 0
    blank: int = 0
    rows: Counter[tuple[str, int]] = field(default_factory=Counter)  # table, hour since the epoch
    rejected: Counter[Rejected] = field(default_factory=Counter)
    copies: list[Copy] = field(default_factory=list)

    @property
    def rows_in(self) -> int:
        return self.lines - self.blank

    def add(self, row: Row) -> None:
        self.lines += 1
        if row.reason is not None:
            self.rejected[Rejected(row.reason, row.table)] += 1
        elif row.table is None:
            self.blank += 1
        elif row.message_id is None:
            self.rows[row.table, row.received // HOUR] += 1
        else:
            self.copies.append(
                Copy(
                    row.received,
                    self.path,
                    self.lines,
                    row.message_id,
                    row.table,
                    row.body,
                    row.sending,
                )
            )


Load: TypeAlias = Sequence[RawFile]  # the files of one source that are published together


@dataclass(frozen=True, slots=True)
class Account:
    """All files of an archive, by source id.

    What a lake must hold depends on the order in which it saw the files, since what it already
    has is kept: give the loads as they were made, or take those of the methods here.
    """

    sources: tuple[SampleSource, ...]
    files: Mapping[str, tuple[RawFile, ...]]

    def day_by_day(self, source_id: str, folders: Iterable[date] | None = None) -> list[Load]:
        """The loads of an archive that is all there: one day folder after the other."""
        wanted = None if folders is None else set(folders)
        return _by_folder(f for f in self.files[source_id] if wanted is None or f.folder in wanted)

    def as_they_arrive(self, source_id: str) -> list[list[Load]]:
        """For each sync, its loads, if there is a sync after each arrival of files."""
        files = self.files[source_id]
        arrivals = sorted({file.arrival for file in files})
        return [_by_folder(f for f in files if f.arrival == arrival) for arrival in arrivals]

    def expected(self, source_id: str, loads: Iterable[Load] | None = None) -> Expected:
        """What the lake must hold after these loads; without any, after the whole archive."""
        loads = self.day_by_day(source_id) if loads is None else loads
        return sum(history(loads), Expected())

    def per_sync(self, source_id: str) -> list[Expected]:
        """What each sync must add, if there is a sync after each arrival of files."""
        syncs = self.as_they_arrive(source_id)
        steps = iter(history(load for sync in syncs for load in sync))
        return [sum((next(steps) for _ in sync), Expected()) for sync in syncs]


def history(loads: Iterable[Load], window_days: int = 7) -> list[Expected]:
    """What each of the loads of one source adds to the lake, the first to an empty one."""
    kept: dict[str, list[Copy]] = {}
    steps: list[Expected] = []
    for load in loads:
        step = Expected()
        for file in load:
            step.rows_in += file.rows_in
            step.rejected += file.rejected
            for (table, hour), count in file.rows.items():
                step.rows[Slot.of(table, hour)] += count
        for copy in sorted(copy for file in load for copy in file.copies):
            same_id = kept.setdefault(copy.message_id, [])
            near = [k for k in same_id if abs(k.received - copy.received) <= window_days * DAY]
            if near:
                step.duplicates[Duplicate(copy.table, copy.likeness(near[0]))] += 1
            else:
                same_id.append(copy)
                step.rows[Slot.of(copy.table, copy.received // HOUR)] += 1
        steps.append(step)
    return steps


def _by_folder(files: Iterable[RawFile]) -> list[Load]:
    folders: dict[date, list[RawFile]] = {}
    for file in files:
        folders.setdefault(file.folder, []).append(file)
    return [folders[day] for day in sorted(folders)]

"""The expected results of a sample: the content of every raw file, and of the lake."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import NamedTuple, Self, TypeAlias

from eventlake.sample.spec import DAY, HOUR, SampleSource


class Reason(StrEnum):
    """Why a line is not loaded; spelled as in the lake's reports, to be compared with them."""

    NOT_JSON = "not_json"
    BAD_UTF8 = "bad_utf8"
    LONE_SURROGATE = "lone_surrogate"
    NOT_AN_OBJECT = "not_an_object"
    UNKNOWN_TYPE = "unknown_type"
    NO_EVENT_NAME = "no_event_name"
    NO_RECEIVED_AT = "no_received_at"
    NO_MESSAGE_ID = "no_message_id"
    CUT_OFF = "cut_off"


class Row(NamedTuple):
    """A line: an event for a table, or rejected for a reason, or (neither) blank.

    `message_id` is given where the same id may occur again; of such rows equal `body` means the
    same event, equal `body` and `sending` the same bytes.
    """

    data: bytes
    table: str | None = None
    received: int = 0  # epoch milliseconds
    reason: Reason | None = None
    message_id: str | None = None
    body: int = 0
    sending: int = 0


class Slot(NamedTuple):
    """A table's received hour (UTC), spelled like the partitions: `2026-10-01`, `07`."""

    table: str
    day: str
    hr: str

    @classmethod
    def of(cls, table: str, hour: int) -> Self:
        """From hours since the epoch."""
        moment = datetime.fromtimestamp(hour * HOUR / 1000, UTC)
        return cls(table, f"{moment:%Y-%m-%d}", f"{moment:%H}")


class Likeness(StrEnum):
    """How a duplicate compares with the event that was kept."""

    EXACT = "exact"  # the same bytes
    RESENT = "resent"  # only `receivedAt` and `sentAt` differ
    OTHER_PAYLOAD = "other payload"


class Duplicate(NamedTuple):
    """A kind of duplicate, with the table of the event."""

    table: str
    likeness: Likeness


class Rejected(NamedTuple):
    """A kind of rejection; the table is None if the line does not determine it."""

    reason: Reason
    table: str | None


@dataclass(frozen=True, slots=True)
class Totals:
    """The terms of the conservation law; nothing here is suppressed or skipped."""

    row_count: int
    duplicates: int
    rejected: int

    @property
    def rows_in(self) -> int:
        return self.row_count + self.duplicates + self.rejected


@dataclass(slots=True)
class Expected:
    """Rows, duplicates and rejects of some loads; `rows_in` is counted independently."""

    rows_in: int = 0
    rows: Counter[Slot] = field(default_factory=Counter)
    duplicates: Counter[Duplicate] = field(default_factory=Counter)
    rejected: Counter[Rejected] = field(default_factory=Counter)

    def __add__(self, other: "Expected") -> "Expected":
        return Expected(
            self.rows_in + other.rows_in,
            self.rows + other.rows,
            self.duplicates + other.duplicates,
            self.rejected + other.rejected,
        )

    @property
    def totals(self) -> Totals:
        return Totals(self.rows.total(), self.duplicates.total(), self.rejected.total())

    @property
    def tables(self) -> dict[str, Totals]:
        """The totals per table, also of tables without rows."""
        rows, duplicates, rejected = Counter[str](), Counter[str](), Counter[str]()
        for slot, count in self.rows.items():
            rows[slot.table] += count
        for duplicate, count in self.duplicates.items():
            duplicates[duplicate.table] += count
        for reject, count in self.rejected.items():
            if reject.table is not None:
                rejected[reject.table] += count
        return {
            table: Totals(rows[table], duplicates[table], rejected[table])
            for table in sorted(rows.keys() | duplicates.keys() | rejected.keys())
        }

    @property
    def reasons(self) -> Counter[Reason]:
        """Rejected rows by reason alone."""
        reasons = Counter[Reason]()
        for reject, count in self.rejected.items():
            reasons[reject.reason] += count
        return reasons


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
class ArchiveFile:
    """A file of the archive and its lines, counted while it is written."""

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


Load: TypeAlias = Sequence[ArchiveFile]  # the files of one source that are published together


@dataclass(frozen=True, slots=True)
class SampleArchive:
    """All files of an archive, by source id.

    The expected content of a lake depends on the order of loads, because events in the lake are
    kept: pass the actual loads, or use those of the methods here.
    """

    sources: tuple[SampleSource, ...]
    files: Mapping[str, tuple[ArchiveFile, ...]]

    def at_once(self, source_id: str, folders: Iterable[date] | None = None) -> list[Load]:
        """The load of a complete archive, or of some day folders."""
        wanted = None if folders is None else set(folders)
        return [[f for f in self.files[source_id] if wanted is None or f.folder in wanted]]

    def as_they_arrive(self, source_id: str) -> list[Load]:
        """The load of each sync, with a sync after each arrival of files."""
        files = self.files[source_id]
        arrivals = sorted({file.arrival for file in files})
        return [[f for f in files if f.arrival == arrival] for arrival in arrivals]

    def expected(self, source_id: str, loads: Iterable[Load] | None = None) -> Expected:
        """The expected content of the lake after some loads; without any, after all."""
        loads = self.at_once(source_id) if loads is None else loads
        return sum(history(loads), Expected())

    def per_sync(self, source_id: str) -> list[Expected]:
        """What each sync adds, with a sync after each arrival of files."""
        return history(self.as_they_arrive(source_id))


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

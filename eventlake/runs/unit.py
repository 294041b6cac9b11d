"""A unit of work: the files that are staged, checked and published together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from heapq import heapify, heapreplace
from typing import TypeVar

from eventlake.catalog.base import CatalogPartition, Days
from eventlake.load.stage_job import RawFile
from eventlake.rules import paths
from eventlake.rules.types import TableSchema
from eventlake.runs.context import Dataflow, RunContext
from eventlake.state.manifest import IndexFile, RunKind
from eventlake.state.replays import ReplayStep
from eventlake.state.source_state import SourceState
from eventlake.state.suppression import Suppression

T = TypeVar("T")
DAY = timedelta(days=1)


def evenly(items: Iterable[T], weight: Callable[[T], int], count: int) -> list[list[T]]:
    """Distribute items over at most `count` shares: heaviest first, each to the lightest share."""
    shares: list[tuple[int, int, list[T]]] = [(0, number, []) for number in range(count)]
    heapify(shares)
    for item in sorted(items, key=weight, reverse=True):
        load, number, share = shares[0]
        share.append(item)
        heapreplace(shares, (load + weight(item), number, share))
    return [share for _, _, share in sorted(shares, reverse=True) if share]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


TASK_BYTES = 32 << 20
"""Gzipped bytes per task: large enough to be worth starting, small enough to repeat."""


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open interval of `receivedAt`, in UTC."""

    start: datetime
    end: datetime

    @property
    def hours(self) -> tuple[str, str]:
        """The first hour and the hour after the last one: `2026-10-01T07`."""
        # Not %Y, which does not pad years below 1000.
        return self.start.isoformat()[:13], self.end.isoformat()[:13]

    @property
    def days(self) -> tuple[str, str]:
        """The first day and the last, both included."""
        last = self.end - timedelta(microseconds=1)
        return self.start.date().isoformat(), last.date().isoformat()

    @classmethod
    def of_day(cls, day: str) -> "Window":
        midnight = datetime.fromisoformat(day).replace(tzinfo=UTC)
        return cls(midnight, midnight + DAY)

    def by_day(self) -> Iterator["Window"]:
        """The parts of the window, one per day."""
        start = self.start
        while start < self.end:
            midnight = start.replace(hour=0) + DAY
            yield Window(start, min(midnight, self.end))
            start = midnight

    @property
    def is_whole_day(self) -> bool:
        return self.start.hour == 0 and self.end - self.start == DAY

    def holds(self, moment: datetime) -> bool:
        return self.start <= moment < self.end

    def has_day(self, day: str) -> bool:
        """Whether it contains a part of a day."""
        first, last = self.days
        return first <= day <= last

    def holds_day(self, day: str) -> bool:
        """Whether it contains a whole day."""
        midnight = datetime.fromisoformat(day).replace(tzinfo=UTC)
        return self.start <= midnight and self.end - midnight >= DAY

    @property
    def in_us(self) -> tuple[int, int]:
        """Start and (exclusive) end in microseconds since 1970."""
        return micros(self.start), micros(self.end)

    def __str__(self) -> str:
        return " to ".join(self.hours)


@dataclass(frozen=True, slots=True)
class Unit:
    """Day folders to sync, or days to replay (`window` set; `tables` None: all of them)."""

    number: int
    label: str
    files: tuple[RawFile, ...]
    window: Window | None = None
    range: Window | None = None  # of the whole replay; None: an additional day outside of it
    tables: frozenset[str] | None = None
    switches: frozenset[str] = frozenset()  # of a replay: tables that it switches to other types
    step: ReplayStep | None = None  # of a replay: the step that its manifest records
    files_of: Callable[[Window], tuple[RawFile, ...]] | None = None  # of a replay: of other days

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def pending(self) -> Window | None:
        """The part of the range that the replay has not replaced yet."""
        span = self.window
        return Window(span.start, (self.range or span).end) if span else None

    @property
    def taken_along(self) -> bool:
        """Whether it replays a day outside of the range."""
        return self.window is not None and self.range is None

    def has_day(self, day: str) -> bool:
        """Whether it replays a day, or a part of it."""
        return self.window is not None and self.window.has_day(day)

    def replaces(self, table: str, start: datetime) -> bool:
        """Whether the replay replaces a partition, in this unit or in a later one."""
        chosen = self.tables is None or table in self.tables
        return chosen and self.pending is not None and self.pending.holds(start)

    def replaces_day(self, day: str) -> bool:
        """The same for all partitions of a day."""
        pending = self.pending
        return self.tables is None and pending is not None and pending.holds_day(day)


def tasks(files: Sequence[RawFile], slots: int) -> list[list[RawFile]]:
    """Files distributed so that all tasks read about the same amount, each in order of path."""
    if not files:
        return []
    total = sum(file.size for file in files)
    rounds = max(1, -(-total // (slots * TASK_BYTES)))  # in each, every slot has a task
    count = min(len(files), rounds * slots)
    shares = evenly(files, lambda file: file.size, count)
    return [sorted(share, key=lambda file: file.number) for share in shares]


@dataclass(frozen=True, slots=True)
class UnitWork:
    """A unit of work in progress: its context, the state it builds on, its dataflow."""

    context: RunContext
    unit: Unit
    state: SourceState
    flow: Dataflow
    start: date | None = None  # the source's first day
    suppression: Suppression | None = None
    log_files: Mapping[str, int] = field(default_factory=dict)  # last number by batch type
    dry: bool = False  # count everything, write only to staging
    made_ids: dict[object, tuple[IndexFile, ...]] = field(default_factory=dict)  # once in a run
    payload_types: dict[str, set[str]] = field(default_factory=dict)  # of all units of the run

    @property
    def tables(self) -> dict[str, TableSchema]:
        """The tables of the source in its current database, by table."""
        return self.state.tables_of(self.context.source)

    @property
    def name(self) -> str:
        return f"{self.context.run_id}-{self.unit.number}"

    @property
    def log_folder(self) -> str:
        """The folder of the record log until it is published."""
        run = paths.stage(self.context.source.id, self.context.run_id)
        return f"{run}/{self.unit.number}/log"

    @property
    def index_folder(self) -> str | None:
        """The folder for the ids of a dry run, read by its next unit."""
        return self.ids_folder if self.dry else None

    @property
    def ids_folder(self) -> str:
        """The folder for ids that the run needs, but the index does not."""
        return f"{paths.stage(self.context.source.id, self.context.run_id)}/ids"

    @property
    def operation(self) -> str:
        return "append" if self.context.kind is RunKind.SYNC else "mirror"

    def partitions(
        self, tables: Mapping[str, TableSchema], days: Days
    ) -> dict[str, list[CatalogPartition]]:
        """The partitions of some tables on some days, by table."""
        found = self.context.partitions.of_all(self.state, tables.values(), days)
        return {table: found[schema.key] for table, schema in tables.items()}

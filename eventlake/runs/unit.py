"""A unit of work: what is staged, checked and published as one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from heapq import heapify, heapreplace
from typing import TypeVar

from eventlake.catalog.base import CatalogPartition, Days
from eventlake.load.stage_job import RawFile
from eventlake.rules import paths
from eventlake.rules.types import TableSchema
from eventlake.runs.context import Dataflow, RunContext
from eventlake.state.manifest import RunKind
from eventlake.state.replays import ReplayStep
from eventlake.state.source_state import SourceState
from eventlake.state.suppression import Suppression

T = TypeVar("T")


def evenly(things: Iterable[T], weight: Callable[[T], int], count: int) -> list[list[T]]:
    """Distribute items over at most `count` shares: heaviest first, each to the lightest share."""
    shares: list[tuple[int, int, list[T]]] = [(0, number, []) for number in range(count)]
    heapify(shares)
    for thing in sorted(things, key=weight, reverse=True):
        load, number, share = shares[0]
        share.append(thing)
        heapreplace(shares, (load + weight(thing), number, share))
    return [share for _, _, share in sorted(shares, reverse=True) if share]


TASK_BYTES = 32 << 20
"""Of gzipped raw files: a task is large enough to be worth starting, small enough to be lost."""


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open interval of `receivedAt`, in UTC."""

    start: datetime
    end: datetime

    @property
    def hours(self) -> tuple[str, str]:
        """The first hour and the one after the last: `2026-10-01T07`."""
        # Not %Y, which does not pad years below 1000.
        return self.start.isoformat()[:13], self.end.isoformat()[:13]

    @property
    def days(self) -> tuple[str, str]:
        """The first day and the last, both included."""
        last = self.end - timedelta(microseconds=1)
        return self.start.date().isoformat(), last.date().isoformat()

    @property
    def is_whole_day(self) -> bool:
        return self.start.hour == 0 and self.end - self.start == timedelta(days=1)

    def holds(self, moment: datetime) -> bool:
        return self.start <= moment < self.end

    def __str__(self) -> str:
        return " to ".join(self.hours)


@dataclass(frozen=True, slots=True)
class Unit:
    """A day folder to sync, or a day to replay (`window` set; `tables` None: all of them)."""

    number: int
    label: str
    files: tuple[RawFile, ...]
    window: Window | None = None
    tables: frozenset[str] | None = None
    switches: frozenset[str] = frozenset()  # of a replay: tables that it is to give other types
    step: ReplayStep | None = None  # of a replay: the step that its manifest records

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


def tasks(files: Sequence[RawFile], slots: int) -> list[list[RawFile]]:
    """Files shared out so that all tasks have about the same to read, each in order of path."""
    if not files:
        return []
    total = sum(file.size for file in files)
    rounds = max(1, -(-total // (slots * TASK_BYTES)))  # in each, every slot has a task
    count = min(len(files), rounds * slots)
    shares = evenly(files, lambda file: file.size, count)
    return [sorted(share, key=lambda file: file.number) for share in shares]


@dataclass(frozen=True, slots=True)
class UnitWork:
    """A unit, the state it builds on, and where its data flow."""

    context: RunContext
    unit: Unit
    state: SourceState
    flow: Dataflow
    start: date | None = None  # the source's first day
    suppression: Suppression | None = None
    log_files: Mapping[str, int] = field(default_factory=dict)  # last number by batch type
    dry: bool = False  # everything is counted, and nothing written but in staging

    @property
    def tables(self) -> dict[str, TableSchema]:
        """The tables the source has where it writes now, by table."""
        return self.state.tables_of(self.context.source)

    @property
    def name(self) -> str:
        return f"{self.context.run_id}-{self.unit.number}"

    @property
    def log_folder(self) -> str:
        """Where the record log lies until it is published."""
        run = paths.stage(self.context.source.id, self.context.run_id)
        return f"{run}/{self.unit.number}/log"

    @property
    def index_folder(self) -> str | None:
        """The folder for ids of a dry run, read by its next unit."""
        run = paths.stage(self.context.source.id, self.context.run_id)
        return f"{run}/ids" if self.dry else None

    @property
    def operation(self) -> str:
        return "append" if self.context.kind is RunKind.SYNC else "mirror"

    def partitions(
        self, tables: Mapping[str, TableSchema], days: Days
    ) -> dict[str, list[CatalogPartition]]:
        """What the catalog has of some tables in some days, by table."""
        catalog = self.context.catalog
        found = self.context.storage.each(
            lambda schema: catalog.partitions(schema.database, schema.name, days),
            list(tables.values()),
        )
        return dict(zip(tables, found, strict=True))

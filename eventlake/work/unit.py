"""A unit of work: what is staged, checked and published as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from eventlake.evenly import evenly
from eventlake.load.stage_job import RawFile
from eventlake.state.replays import ReplayStep

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
    step: ReplayStep | None = None  # of a replay: what its manifest says of the whole

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

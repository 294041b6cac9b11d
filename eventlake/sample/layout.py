"""Which raw files there are, where they lie, and when they come in."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from eventlake.sample.clock import HOUR, midnight
from eventlake.sample.spec import SampleSource, SampleSpec


class Role(StrEnum):
    """What a raw file is there to show."""

    REGULAR = "regular"
    OVERNIGHT = "overnight"  # lies in one day's folder, its rows were received the day before
    CUT = "cut"  # ends in the middle of its gzip stream
    STRAGGLER = "straggler"  # comes in after its day was loaded


class FileKey(NamedTuple):
    """A file's place in the archive of one source; days count from 1."""

    day: int
    role: Role
    number: int = 0


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A raw file before it is written; its fresh events are received in [start, end)."""

    key: FileKey
    path: str  # below the lake's storage
    folder: date
    start: int
    end: int
    events: int
    events_before: int  # in the regular files of the day before this one
    arrival: int  # the sync that sees it first, counted like the days
    received_on: int  # the day, from 1, on which its fresh events are received


class Layout:
    """The files of one source."""

    def __init__(self, spec: SampleSpec, source: SampleSource) -> None:
        self._spec, self._source = spec, source
        # Late and cut files are small beside the others and never grow beyond what fits in memory.
        self._few = min(max(spec.events_per_day // 100, 12), 1_000)

    def files(self, day: int) -> Iterator[PlannedFile]:
        """The files in the folder of a day, in the order in which they are made."""
        count = self._spec.files_per_day
        if self._spec.faults and day > 1:
            yield self.file(FileKey(day, Role.OVERNIGHT))
        for index in range(count):
            yield self.file(FileKey(day, Role.REGULAR, index))
        if self._spec.faults:
            if day == 1:
                yield self.file(FileKey(day, Role.CUT))
            yield self.file(FileKey(day, Role.STRAGGLER))

    def file(self, key: FileKey) -> PlannedFile:
        spec, source = self._spec, self._source
        folder = spec.first_day + timedelta(days=key.day - 1)
        overnight = key.role is Role.OVERNIGHT
        received_on = key.day - 1 if overnight else key.day
        first = midnight(spec.first_day + timedelta(days=received_on - 1))
        span = spec.hours * HOUR
        start, end = first, first + span
        events, events_before = self._few, 0
        if key.role is Role.REGULAR:
            start, end = _share(span, key.number, spec.files_per_day)
            start, end = first + start, first + end
            events_before, events_until = _share(
                spec.events_per_day, key.number, spec.files_per_day
            )
            events = events_until - events_before
        elif overnight:
            start = max(first, end - 3 * HOUR)
        place = f"{spec.seed}/{source.id}/{key.day}/{key.role}/{key.number}"
        salt = sha256(place.encode()).hexdigest()[:12]
        return PlannedFile(
            key=key,
            path=f"segment-logs/{source.id}/{midnight(folder)}/{start}_{end}_{salt}.gz",
            folder=folder,
            start=start,
            end=end,
            events=events,
            events_before=events_before,
            arrival=key.day + 1 if key.role is Role.STRAGGLER else key.day,
            received_on=received_on,
        )


def _share(total: int, index: int, parts: int) -> tuple[int, int]:
    """Where one of so many about equal parts begins and ends."""
    return total * index // parts, total * (index + 1) // parts

"""Duplicates in the sample: which event is repeated, how, and in which file."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum, StrEnum, auto
from hashlib import sha256
from typing import NamedTuple

from msgspec.json import encode

from eventlake.sample.events import EventFactory
from eventlake.sample.expected import Row
from eventlake.sample.spec import (
    HOUR,
    SECOND,
    Draw,
    Fields,
    SampleSource,
    SampleSpec,
    iso,
    midnight,
)


class Role(StrEnum):
    """The purpose of a raw file."""

    REGULAR = "regular"
    OVERNIGHT = "overnight"  # in the folder of the day after its rows were received
    CUT = "cut"  # ends in the middle of its gzip stream
    STRAGGLER = "straggler"  # arrives after its day was loaded


class FileKey(NamedTuple):
    """The position of a file in the archive of one source; days count from 1."""

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
    arrival: int  # the first sync that sees it, counted like the days
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
    """Begin and end of one of several nearly equal parts."""
    return total * index // parts, total * (index + 1) // parts


class Again(Enum):
    """How an event is repeated."""

    SOON = auto()  # the same bytes, some lines later
    HOURS_LATER = auto()  # the same bytes, in a later file
    RESENT = auto()  # received a second time, in a later file
    OVERNIGHT = auto()  # the same bytes, in the next day's folder
    CORRECTED = auto()  # the same id, another payload
    REUSED_ID = auto()  # the same id on an unrelated event, often of another table
    EARLIER = auto()  # received earlier, but in a file that arrives later
    DAYS_LATER = auto()  # received a second time, one to six days after
    AFTER_A_WEEK = auto()  # the same id so much later that it is no duplicate


_TURNS = (
    Again.SOON,
    Again.HOURS_LATER,
    Again.RESENT,
    Again.SOON,
    Again.OVERNIGHT,
    Again.CORRECTED,
    Again.HOURS_LATER,
    Again.EARLIER,
    Again.SOON,
    Again.REUSED_ID,
)
# Only in regular files, for archives with a given share of duplicates.
_PLAIN_TURNS = (Again.SOON, Again.DAYS_LATER, Again.HOURS_LATER, Again.DAYS_LATER, Again.RESENT)
_OUT_OF_WINDOW = 8  # days


class Copies:
    """Repeats events in each way in turn, and keeps copies for later files."""

    def __init__(self, spec: SampleSpec, factory: EventFactory, layout: Layout) -> None:
        self._factory, self._layout = factory, layout
        self._files_per_day = spec.files_per_day
        self._in_every_way = spec.duplicates is None
        self._inbox: dict[FileKey, list[Row]] = defaultdict(list)
        self._turn = 0
        self._day = 0

    def waiting_for(self, file: PlannedFile) -> list[Row]:
        return self._inbox.pop(file.key, [])

    def repeat(self, event: Fields, row: Row, file: PlannedFile, draw: Draw) -> Row | None:
        """A copy for the same file, or None if it is kept for another one."""
        match self._next(file.key.day):
            case Again.SOON:
                return row
            case Again.HOURS_LATER:
                self._inbox[self._later(file, draw)].append(row)
            case Again.OVERNIGHT:
                self._inbox[FileKey(file.key.day + 1, Role.OVERNIGHT)].append(row)
            case Again.RESENT:
                key = self._later(file, draw)
                self._inbox[key].append(_resent(event, row, self._moment(key, draw)))
            case Again.DAYS_LATER:
                number = draw.below(self._files_per_day)
                key = FileKey(file.key.day + draw.between(1, 6), Role.REGULAR, number)
                self._inbox[key].append(_resent(event, row, self._moment(key, draw)))
            case Again.AFTER_A_WEEK:
                key = FileKey(file.key.day + _OUT_OF_WINDOW, Role.REGULAR)
                self._inbox[key].append(_resent(event, row, self._moment(key, draw)))
            case Again.EARLIER:
                key = FileKey(file.key.day, Role.STRAGGLER)
                moment = row.received - draw.between(HOUR, 3 * HOUR)  # so it shows in the hours
                moment = max(self._layout.file(key).start, moment)
                self._inbox[key].append(_resent(event, row, moment))
            case Again.CORRECTED:
                corrected = event | {"context": {"corrected": True}}
                return row._replace(data=encode(corrected), body=1)
            case Again.REUSED_ID:
                received = row.received + draw.below(SECOND)
                kind = self._factory.any_kind(draw)
                other = self._factory.event(kind, draw, received)
                data = encode(other | {"messageId": row.message_id})
                return row._replace(data=data, table=kind.table, received=received, body=1)
        return None

    def _next(self, day: int) -> Again:
        if day != self._day and self._in_every_way:
            self._day = day
            return Again.AFTER_A_WEEK
        self._turn += 1
        turns = _TURNS if self._in_every_way else _PLAIN_TURNS
        return turns[self._turn % len(turns)]

    def _later(self, file: PlannedFile, draw: Draw) -> FileKey:
        day, _, index = file.key
        left = self._files_per_day - index - 1
        if left == 0:
            return FileKey(day + 1, Role.REGULAR)
        return FileKey(day, Role.REGULAR, index + 1 + draw.below(left))

    def _moment(self, key: FileKey, draw: Draw) -> int:
        file = self._layout.file(key)
        return file.start + draw.below(file.end - file.start)


def _resent(event: Fields, row: Row, received: int) -> Row:
    data = encode(event | {"receivedAt": iso(received), "sentAt": iso(received - SECOND)})
    return row._replace(data=data, received=received, sending=1)

"""The same message id again: which event is repeated how, and in which file."""

from collections import defaultdict
from enum import Enum, auto

from msgspec.json import encode

from eventlake.sample.clock import HOUR, SECOND, iso
from eventlake.sample.draw import Draw
from eventlake.sample.events import EventFactory
from eventlake.sample.kinds import Fields
from eventlake.sample.layout import FileKey, Layout, PlannedFile, Role
from eventlake.sample.row import Row
from eventlake.sample.spec import SampleSpec


class Again(Enum):
    """How an event is repeated."""

    SOON = auto()  # the same bytes, some lines further down
    HOURS_LATER = auto()  # the same bytes, in a later file
    RESENT = auto()  # received a second time, in a later file
    OVERNIGHT = auto()  # the same bytes, in the next day's folder
    CORRECTED = auto()  # the same id, another payload
    REUSED_ID = auto()  # the same id on an unrelated event, often of another table
    EARLIER = auto()  # received earlier, but in a file that comes in later
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
# Only what lies in regular files, for archives of which nothing is asked but so many copies.
_PLAIN_TURNS = (Again.SOON, Again.DAYS_LATER, Again.HOURS_LATER, Again.DAYS_LATER, Again.RESENT)
_OUT_OF_WINDOW = 8  # days


class Copies:
    """Repeats events in turn by each of the ways, and keeps what belongs into later files."""

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
        """A copy for the same file, or None where it is put away for another one."""
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

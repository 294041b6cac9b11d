"""Lines of one table, parsed many at once: by the table's shape, and one by one where it fails."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lake.parse import parse_line, with_minus_zero
from lake.rejects import Reject
from lake.settings import Limits
from lake.staging.leaves import Event, leaves
from lake.staging.shape import DOES_NOT_FIT, Record, Shape

# Fields that a table knows for each that an event has: beyond, most of a record is empty, and
# events are better walked one by one.
_SPARSE = 8
_FEW_FIELDS = 32


@dataclass(slots=True)
class Parsed:
    """Rows as records; `walked` are those that fit no shape, `refused` those that are no event."""

    records: list[Record]
    walked: dict[int, Event] = field(default_factory=dict)
    refused: dict[int, Reject] = field(default_factory=dict)


class Records:
    """Parses the lines of one table, and learns its shape on the way."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sparse = False
        self._lessons: list[Event] = []
        self.shape = Shape()

    def remember(self, event: Event) -> None:
        """Learn from this event before the next lines; those at hand are of the shape as it is."""
        self._lessons.append(event)

    def event(self, line: bytes) -> Event:
        """One line read carefully; raises `Reject`."""
        return parse_line(line, self._limits)

    def parse(self, lines: Sequence[bytes], given_ids: Mapping[int, str]) -> Parsed:
        """All lines; some have no id of their own and are given one."""
        self.shape.learn(self._lessons)
        self._lessons = []
        # A record's parser would read the number -0 as 0.
        careful = {*with_minus_zero(lines), *given_ids}
        if self._sparse:
            careful.update(range(len(lines)))
        parsed, misfits = self._by_shape(lines, careful)
        # A few events teach most of a shape, and each one costs a slow reading.
        for lessons in (4, 32, len(misfits)):
            if misfits:
                self._walk(lines, misfits[:lessons], parsed)
                if self.shape.learn(list(parsed.walked.values())):
                    again, misfits = self._by_shape(lines, careful | parsed.refused.keys())
                    parsed.records = again.records
        fit = set(range(len(lines))).difference(careful, misfits)
        self._walk(lines, {*careful, *misfits}, parsed)
        parsed.walked = {row: event for row, event in parsed.walked.items() if row not in fit}
        for row, given in given_ids.items():
            parsed.walked[row]["messageId"] = given
        self._judge(lines)
        return parsed

    def _by_shape(self, lines: Sequence[bytes], careful: set[int]) -> tuple[Parsed, list[int]]:
        parse = self.shape.parse
        if not careful:
            try:
                return Parsed(list(map(parse, lines))), []
            except DOES_NOT_FIT:
                pass
        records = [self.shape.nothing] * len(lines)
        misfits: list[int] = []
        for row, line in enumerate(lines):
            if row not in careful:
                try:
                    records[row] = parse(line)
                except DOES_NOT_FIT:
                    misfits.append(row)
        return Parsed(records), misfits

    def _walk(self, lines: Sequence[bytes], rows: Iterable[int], parsed: Parsed) -> None:
        for row in rows:
            if row not in parsed.walked and row not in parsed.refused:
                try:
                    parsed.walked[row] = self.event(lines[row])
                except Reject as reject:
                    parsed.refused[row] = reject

    def _judge(self, lines: Sequence[bytes]) -> None:
        """Whether records still pay: a look at one event of many."""
        if not self._sparse and self.shape.fields > _SPARSE * _FEW_FIELDS:
            try:
                found = sum(1 for _ in leaves(self.event(lines[0])))
            except Reject:
                return
            self._sparse = self.shape.fields > _SPARSE * max(found, _FEW_FIELDS)

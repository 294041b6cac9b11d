"""What an audit is about: a source, a range of `receivedAt`, and numbers for its tables."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from eventlake.settings.models import Source

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open interval of `receivedAt` in UTC; without an end, all that there is."""

    start: datetime | None = None
    end: datetime | None = None

    @property
    def whole(self) -> bool:
        return self.start is None and self.end is None

    @property
    def micros(self) -> tuple[int, int]:
        return _us(self.start or _FIRST), _us(self.end or _LAST) + (self.end is None)

    def touches(self, other: "Span") -> bool:
        (start, end), (first, last) = self.micros, other.micros
        return start < last and first < end

    def within(self, other: "Span") -> bool:
        (start, end), (first, last) = self.micros, other.micros
        return first <= start and end <= last

    def days(self, reach: int = 0) -> tuple[str, str]:
        """The first and the last day that the interval touches, and so many around it."""
        first, last = self.start or _FIRST, self.end or _LAST
        around = timedelta(days=reach)
        first = first - around if first - _FIRST > around else _FIRST
        last = last + around if _LAST - last > around else _LAST
        return first.date().isoformat(), (last - _MICROSECOND).date().isoformat()

    def __str__(self) -> str:
        start = "the beginning" if self.start is None else _hour(self.start)
        return f"{start} to {'the end' if self.end is None else _hour(self.end)}"


@dataclass
class TableNumbers:
    """Tables as small numbers, by the names they have in their folders."""

    names: list[str] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)

    def of(self, table: str) -> int:
        number = self._known.get(table)
        if number is None:
            number = self._known[table] = len(self.names)
            self.names.append(table)
        return number


@dataclass(frozen=True, slots=True)
class Scope:
    source: Source
    span: Span = Span()

    @property
    def window(self) -> int:
        return timedelta(days=self.source.dedup_days) // _MICROSECOND


def _us(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _hour(moment: datetime) -> str:
    return moment.isoformat(timespec="hours")[:13]

"""The scope of an audit: a source and a range of `receivedAt`."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from eventlake.runs.unit import Window
from eventlake.settings.models import Source

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
EVERYTHING = Window(FIRST, LAST)


def micros(window: Window) -> tuple[int, int]:
    """Start and end in microseconds; a range up to `LAST` includes that moment."""
    start, end = window.in_us
    return start, end + (window.end == LAST)


def overlaps(one: Window, other: Window) -> bool:
    return one.start < other.end and other.start < one.end


@dataclass(frozen=True, slots=True)
class Scope:
    source: Source
    window: Window = EVERYTHING

    @property
    def is_everything(self) -> bool:
        return self.window == EVERYTHING

    @property
    def days(self) -> tuple[str, str]:
        """The first and the last day of the range, extended by the dedup window."""
        first, last = self.window.start, self.window.end
        around = timedelta(days=self.source.dedup_days)
        first = first - around if first - FIRST > around else FIRST
        last = last + around if LAST - last > around else LAST
        return Window(first, last).days

    def __str__(self) -> str:
        start, end = self.window.hours
        start = "the beginning" if self.window.start == FIRST else start
        return f"{start} to {'the end' if self.window.end == LAST else end}"

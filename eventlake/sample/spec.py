"""The specification of a sample: its size, first day and sources."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from random import Random
from typing import ClassVar, TypeAlias, TypeVar

from msgspec import Raw

_ALLOWED = {
    "days": (1, 3_650),
    "events_per_day": (1, 100_000_000),
    "files_per_day": (1, 1_440),
    "hours": (1, 24),
    "extra_events": (0, 10_000),
    "duplicates": (0, 0.5),
}


@dataclass(frozen=True, slots=True)
class SampleSource:
    """A fictitious source; `platform` selects the event types that it sends."""

    id: str
    slug: str
    platform: str


WEB_SHOP = SampleSource(id="wX3mQ8rTz", slug="web_shop", platform="web")
IOS_PROD = SampleSource(id="9IP56Shn6", slug="ios_prod", platform="ios")


@dataclass(frozen=True, slots=True)
class SampleSpec:
    """The same spec always creates the same bytes; fewer days create a part of them.

    With fewer than about 600 events a day, some oddities are left out.
    """

    seed: int = 7
    first_day: date = date(2026, 10, 1)
    days: int = 3
    events_per_day: int = 5_000  # per source; copies, late files and faults come on top
    files_per_day: int = 4
    faults: bool = True  # False: every line is good, every id occurs once, types agree
    hours: int = 24  # of each day, from midnight on, in which events are received
    extra_events: int = 0  # track event types beyond those of the catalogue, for benchmarks
    # The share of events that are sent again, up to six days later, if there is such a day; also
    # without faults. None: with faults about 1 %, in every way there is.
    duplicates: float | None = None

    sources: ClassVar[tuple[SampleSource, ...]] = (WEB_SHOP, IOS_PROD)

    def __post_init__(self) -> None:
        for name, (least, most) in _ALLOWED.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise ValueError(f"{name} is {value}; it may be {least} to {most}")


SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def midnight(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * SECOND


def iso(moment: int) -> str:
    """`2026-10-01T07:05:09.120Z`"""
    minute, rest = divmod(moment, MINUTE)
    return f"{_to_the_minute(minute)}:{rest // SECOND:02d}.{rest % SECOND:03d}Z"


@lru_cache(maxsize=20_000)
def _to_the_minute(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M")


T = TypeVar("T")


class Draw:
    """The stream of one file; `day` (from 1) is the day on which its rows are received.

    Uses nothing of `random` but the raw stream, which Python promises not to change.
    """

    __slots__ = ("bits", "day", "faults", "random")

    def __init__(self, seed: str, day: int = 1, faults: bool = False) -> None:
        stream = Random(seed)
        self.random = stream.random
        self.bits = stream.getrandbits
        self.day = day
        self.faults = faults

    def below(self, limit: int) -> int:
        return int(self.random() * limit)

    def between(self, least: int, most: int) -> int:
        return least + int(self.random() * (most - least + 1))

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.random() * len(choices))]

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        """One to `most` of them, in any order, possibly one twice."""
        return [self.pick(choices) for _ in range(1 + self.below(most))]

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def odd(self, probability: float) -> bool:
        """A chance for odd values; never in an archive without faults."""
        return self.random() < probability and self.faults

    def uuid(self) -> str:
        digits = f"{self.bits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def code(self, prefix: str) -> str:
        return f"{prefix}_{self.bits(48):012x}"

    def money(self, most: int) -> Raw:
        """An amount with the spellings that shops really send: `12.37`, `12.5`, `12.50`, `12`."""
        whole, cents = divmod(1 + self.below(most * 100), 100)
        if cents % 10:
            return Raw(b"%d.%02d" % (whole, cents))
        if self.random() < 0.5:
            return Raw(b"%d.%02d" % (whole, cents))
        return Raw(b"%d.%d" % (whole, cents // 10) if cents else b"%d" % whole)

    def degrees(self, near: float) -> Raw:
        """A coordinate with eight decimals, more than decimal(38,6) can hold."""
        return Raw(b"%.8f" % (near + self.random() - 0.5))


Fields: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class Kind:
    """An event type: how often it is sent, what it carries, and the table it must end up in.

    Tables are spelled out, so that the expected results are independent of the lake's name rule.
    """

    table: str
    weight: int
    fields: Callable[[Draw], Fields]
    call: str = "track"
    names: Sequence[str] = ()  # of a track or page; several are spellings of one
    since: int = 1  # the day, from 1, on which it is first sent

"""What to make: how much, from when on, of which sources."""

from dataclasses import dataclass
from datetime import date
from typing import ClassVar

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
    """A made-up source: `platform` says which catalogue of events it sends."""

    id: str
    slug: str
    platform: str


WEB_SHOP = SampleSource(id="wX3mQ8rTz", slug="web_shop", platform="web")
IOS_PROD = SampleSource(id="9IP56Shn6", slug="ios_prod", platform="ios")


@dataclass(frozen=True, slots=True)
class SampleSpec:
    """The same spec always makes the same bytes; fewer days make a part of what more days make.

    Below some 600 events a day not every oddity finds a place.
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

"""What happens in the simulated time, by day from 0: the trouble that a lake has to get over."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

FIRST_DAY = date(2026, 10, 1)
BEGIN = datetime(2026, 10, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Stretch:
    """From a moment on, so many hours."""

    day: float
    hours: float

    def has(self, moment: datetime) -> bool:
        return self.begin <= moment < self.end

    @property
    def begin(self) -> datetime:
        return at(self.day)

    @property
    def end(self) -> datetime:
        return self.begin + timedelta(hours=self.hours)


@dataclass(frozen=True)
class Story:
    """In days since the beginning, and hours."""

    days: int
    silence: Stretch  # no raw file arrives; all of them come at its end
    outage: Stretch  # the machine is off; raw files arrive
    failing_from: float
    failures: int  # in a row
    suppressed_from: float
    replayed_on: float  # all days until somebody was suppressed, so that nothing of them is left
    set_back: Stretch  # the clock is behind
    late_days: int = 2  # that some raw files take, of every day


SIXTY_DAYS = Story(
    days=60,
    silence=Stretch(9, 36),
    outage=Stretch(14, 96),
    failing_from=23,
    failures=25,
    suppressed_from=30.3,
    replayed_on=33.2,
    set_back=Stretch(40.1, 30),
)
FIVE_DAYS = Story(
    days=5,
    silence=Stretch(0.6, 28),
    outage=Stretch(2, 30),
    failing_from=3.5,
    failures=6,
    suppressed_from=3.3,
    replayed_on=4.2,
    set_back=Stretch(4.5, 6),
    late_days=1,
)

_NEVER = Stretch(99, 1)
A_DAY = Story(
    days=1,
    silence=_NEVER,
    outage=_NEVER,
    failing_from=0.5,
    failures=1,
    suppressed_from=0,
    replayed_on=99,
    set_back=_NEVER,
    late_days=0,
)


def at(day: float) -> datetime:
    return BEGIN + timedelta(days=day)

"""Which archive is to be made."""

from dataclasses import asdict, dataclass
from datetime import date
from hashlib import sha256

from msgspec.json import encode

from eventlake.sample import WEB_SHOP, SampleSpec
from eventlake.sample.events import kinds_of

SOURCE = WEB_SHOP
FEWEST_TABLES = len(kinds_of(SOURCE, 1))
# Of five events that the sample repeats, two come back on days that are not made.
_COPIES_ON_THE_SAME_DAY = 0.6
_FORMAT = 1  # to be raised when the same recipe makes other bytes


@dataclass(frozen=True, slots=True)
class Recipe:
    """The same recipe always makes the same archive: so many days of one source, all lines good."""

    events: int = 1_000_000  # of each day; copies come on top
    tables: int = 60
    hours: int = 24
    files: int = 24  # of each day
    duplicates: float = 0.01
    days: int = 1
    first_day: date = date(2026, 10, 1)
    seed: int = 7
    one_table: bool = False  # all events are of one type
    columns: int = 0  # beyond those of the sample, in each table
    columns_each: int = 0  # how many of them each event has

    def __post_init__(self) -> None:
        if self.tables < FEWEST_TABLES:
            raise ValueError(f"tables is {self.tables}; the sample has {FEWEST_TABLES} at least")
        if self.columns_each > self.columns:
            raise ValueError(f"an event cannot have {self.columns_each} of {self.columns} columns")

    @property
    def spec(self) -> SampleSpec:
        return SampleSpec(
            seed=self.seed,
            first_day=self.first_day,
            days=self.days,
            events_per_day=self.events,
            files_per_day=self.files,
            faults=False,
            hours=self.hours,
            extra_events=self.tables - FEWEST_TABLES,
            duplicates=self.duplicates / _COPIES_ON_THE_SAME_DAY,
        )

    @property
    def name(self) -> str:
        """A folder's name, another one for every recipe."""
        digest = sha256(encode([_FORMAT, asdict(self)])).hexdigest()[:8]
        return f"{self.days}x{self.events}-{self.tables}t-{self.hours}h-{self.files}f-{digest}"

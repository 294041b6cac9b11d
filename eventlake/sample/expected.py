"""What a lake must hold, in numbers."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple, Self

from eventlake.sample.clock import HOUR
from eventlake.sample.row import Reason


class Slot(NamedTuple):
    """A table's received hour (UTC), spelled like the partitions: `2026-10-01`, `07`."""

    table: str
    day: str
    hr: str

    @classmethod
    def of(cls, table: str, hour: int) -> Self:
        """From hours since the epoch."""
        moment = datetime.fromtimestamp(hour * HOUR / 1000, UTC)
        return cls(table, f"{moment:%Y-%m-%d}", f"{moment:%H}")


class Likeness(StrEnum):
    """How a duplicate compares with the event that was kept."""

    EXACT = "exact"  # the same bytes
    RESENT = "resent"  # only `receivedAt` and `sentAt` differ
    OTHER_PAYLOAD = "other payload"


class Duplicate(NamedTuple):
    """A kind of duplicate, of the table it would have gone to."""

    table: str
    likeness: Likeness


class Rejected(NamedTuple):
    """A kind of rejection; the table is None where the line does not tell it."""

    reason: Reason
    table: str | None


@dataclass(frozen=True, slots=True)
class Totals:
    """The terms of the conservation law; nothing here is suppressed or skipped."""

    row_count: int
    duplicates: int
    rejected: int

    @property
    def rows_in(self) -> int:
        return self.row_count + self.duplicates + self.rejected


@dataclass(slots=True)
class Expected:
    """Rows, duplicates and rejects of some loads; `+` sums up, `rows_in` is counted by itself."""

    rows_in: int = 0
    rows: Counter[Slot] = field(default_factory=Counter)
    duplicates: Counter[Duplicate] = field(default_factory=Counter)
    rejected: Counter[Rejected] = field(default_factory=Counter)

    def __add__(self, other: "Expected") -> "Expected":
        return Expected(
            self.rows_in + other.rows_in,
            self.rows + other.rows,
            self.duplicates + other.duplicates,
            self.rejected + other.rejected,
        )

    @property
    def totals(self) -> Totals:
        return Totals(self.rows.total(), self.duplicates.total(), self.rejected.total())

    @property
    def tables(self) -> dict[str, Totals]:
        """Per table, for every line that tells its table, those without a row too."""
        rows, duplicates, rejected = Counter[str](), Counter[str](), Counter[str]()
        for slot, count in self.rows.items():
            rows[slot.table] += count
        for duplicate, count in self.duplicates.items():
            duplicates[duplicate.table] += count
        for reject, count in self.rejected.items():
            if reject.table is not None:
                rejected[reject.table] += count
        return {
            table: Totals(rows[table], duplicates[table], rejected[table])
            for table in sorted(rows.keys() | duplicates.keys() | rejected.keys())
        }

    @property
    def reasons(self) -> Counter[Reason]:
        """Rejected rows by reason alone."""
        reasons = Counter[Reason]()
        for reject, count in self.rejected.items():
            reasons[reject.reason] += count
        return reasons

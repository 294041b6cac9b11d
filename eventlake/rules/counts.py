"""Row counts of a unit of work: every input row is in exactly one count."""

from typing import Any, Self, TypeVar, cast

import msgspec

from eventlake.rules.errors import ConservationError

T = TypeVar("T")


def added(left: T, right: T) -> T:
    """The sum of two counts, field by field.

    Numbers are added, dicts by key, flags combined with `or`, tuples joined without repeats; text
    is that of `left`.
    """
    value: Any = left
    other: Any = right
    match value:
        case bool():
            value = value or other
        case int():
            value += other
        case tuple():
            value += tuple(item for item in other if item not in value)
        case dict():
            sums = {k: added(value[k], v) if k in value else v for k, v in other.items()}
            value = value | sums
        case msgspec.Struct():
            names = value.__struct_fields__
            value = type(value)(*(added(getattr(value, n), getattr(other, n)) for n in names))
    return cast(T, value)


class Counts(msgspec.Struct, frozen=True):
    """Counts that can be added, see `added`."""

    def __add__(self, other: Self) -> Self:
        return added(self, other)


class CastCounts(Counts, frozen=True):
    """How many values of a column were cast exactly, with a loss, or not at all."""

    exact: int = 0
    lossy: int = 0
    failed: int = 0


class NewColumn(msgspec.Struct, frozen=True):
    name: str
    type: str


class TableReport(Counts, frozen=True):
    """The result of one unit of work for one table."""

    table: str
    name: str
    rows_in: int
    row_count: int = 0
    duplicates: int = 0
    other_payload: int = 0  # of the duplicates
    rejected: int = 0
    suppressed: int = 0
    partitions: tuple[dict[str, str], ...] = ()
    day_rows: dict[str, int] = {}
    new_columns: tuple[NewColumn, ...] = ()
    is_new: bool = False
    rescued_cells: int = 0
    files_written: int = 0
    bytes_written: int = 0
    casts: dict[str, CastCounts] = {}

    def check_balance(self) -> None:
        _balance(
            f"table {self.name}",
            self.rows_in,
            self.row_count,
            self.duplicates,
            self.rejected,
            self.suppressed,
        )


class UnitReport(Counts, frozen=True):
    """The result of one unit of work: per table, and for rows without a table."""

    tables: dict[str, TableReport] = {}
    rows_in: int = 0
    duplicates: int = 0
    rejected: int = 0
    suppressed: int = 0
    skipped: int = 0
    raw_files: int = 0
    warnings: tuple[str, ...] = ()
    rows_taken_along: int = 0  # of a retyping replay: on days outside of its range
    to_replay: tuple[str, ...] = ()  # days with copies of rows that a replay took away
    ignored_files: int = 0  # below `raw`, when the run began
    ignored: tuple[str, ...] = ()  # which, and why

    @property
    def row_count(self) -> int:
        return sum(table.row_count for table in self.tables.values())

    @property
    def taken_along(self) -> "UnitReport":
        """The same for a run in whose range the unit does not lie."""
        return UnitReport(
            rows_taken_along=self.row_count, warnings=self.warnings, to_replay=self.to_replay
        )

    def check_balance(self) -> None:
        """Check that every input row is accounted for exactly once."""
        _balance(
            "the source",
            self.rows_in,
            self.row_count,
            self.duplicates,
            self.rejected,
            self.suppressed,
            self.skipped,
        )
        for table in self.tables.values():
            table.check_balance()


def _balance(whose: str, rows_in: int, *parts: int) -> None:
    if rows_in != sum(parts):
        names = ("loaded", "duplicates", "rejected", "suppressed", "skipped")
        account = " + ".join(f"{n} {name}" for n, name in zip(parts, names, strict=False))
        raise ConservationError(
            f"The rows of {whose} do not balance: {rows_in} came in, but {account} = {sum(parts)}. "
            "Nothing was published. Please report this with the run's log; the raw files are "
            "untouched and the next sync tries them again."
        )

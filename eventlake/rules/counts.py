"""What a unit of work did, counted: every row that came in is in one of the counts."""

from typing import Any

import msgspec

from eventlake.rules.errors import ConservationError


class CastCounts(msgspec.Struct, frozen=True):
    """How the values of a column fared on their way into its type."""

    exact: int = 0
    lossy: int = 0
    failed: int = 0

    def __add__(self, other: "CastCounts") -> "CastCounts":
        return CastCounts(
            self.exact + other.exact, self.lossy + other.lossy, self.failed + other.failed
        )


def add_casts(left: dict[str, CastCounts], right: dict[str, CastCounts]) -> dict[str, CastCounts]:
    """The counts of two lots of rows, column by column."""
    return _sum(left, right, CastCounts()) if right else left


class NewColumn(msgspec.Struct, frozen=True):
    name: str
    type: str


class TableReport(msgspec.Struct, frozen=True):
    """What one unit of work did to one table."""

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

    def __add__(self, other: "TableReport") -> "TableReport":
        return TableReport(
            table=self.table,
            name=self.name,
            rows_in=self.rows_in + other.rows_in,
            row_count=self.row_count + other.row_count,
            duplicates=self.duplicates + other.duplicates,
            other_payload=self.other_payload + other.other_payload,
            rejected=self.rejected + other.rejected,
            suppressed=self.suppressed + other.suppressed,
            partitions=self.partitions
            + tuple(p for p in other.partitions if p not in self.partitions),
            day_rows=_sum(self.day_rows, other.day_rows, 0),
            new_columns=self.new_columns + other.new_columns,
            is_new=self.is_new or other.is_new,
            rescued_cells=self.rescued_cells + other.rescued_cells,
            files_written=self.files_written + other.files_written,
            bytes_written=self.bytes_written + other.bytes_written,
            casts=add_casts(self.casts, other.casts),
        )

    def check_balance(self) -> None:
        _balance(
            f"table {self.name}",
            self.rows_in,
            self.row_count,
            self.duplicates,
            self.rejected,
            self.suppressed,
        )


class UnitReport(msgspec.Struct, frozen=True):
    """What one unit of work did, table by table, and to the rows that have no table."""

    tables: dict[str, TableReport] = {}
    rows_in: int = 0
    duplicates: int = 0
    rejected: int = 0
    suppressed: int = 0
    skipped: int = 0
    raw_files: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def row_count(self) -> int:
        return sum(table.row_count for table in self.tables.values())

    def __add__(self, other: "UnitReport") -> "UnitReport":
        tables = dict(self.tables)
        for key, table in other.tables.items():
            tables[key] = tables[key] + table if key in tables else table
        return UnitReport(
            tables=tables,
            rows_in=self.rows_in + other.rows_in,
            duplicates=self.duplicates + other.duplicates,
            rejected=self.rejected + other.rejected,
            suppressed=self.suppressed + other.suppressed,
            skipped=self.skipped + other.skipped,
            raw_files=self.raw_files + other.raw_files,
            warnings=self.warnings + tuple(w for w in other.warnings if w not in self.warnings),
        )

    def check_balance(self) -> None:
        """The conservation law: every row that came in is accounted for, once."""
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


def _sum(left: dict[str, Any], right: dict[str, Any], zero: Any) -> dict[str, Any]:
    return {key: left.get(key, zero) + right.get(key, zero) for key in [*left, *right]}

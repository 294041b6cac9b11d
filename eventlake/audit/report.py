"""What an audit found."""

from dataclasses import dataclass

from eventlake.audit.raw_files import RawFiles
from eventlake.audit.scope import Scope
from eventlake.rules.errors import ConservationError


@dataclass(frozen=True, slots=True)
class TableAudit:
    """The rows of the range that belong to a table (`name` as in the catalog), by their fate."""

    table: str
    name: str
    rows_in: int = 0
    loaded: int = 0
    duplicates: int = 0
    rejected: int = 0
    suppressed: int = 0
    skipped: int = 0
    waiting: int = 0
    missing: int = 0
    # Of the rows that the lake has:
    unexpected: int = 0
    doubled: int = 0
    unchecked: int = 0

    @property
    def agrees(self) -> bool:
        return not (self.missing or self.unexpected or self.doubled)

    def check_balance(self) -> None:
        """The conservation law, for the audit's own account."""
        parts = (
            self.loaded,
            self.duplicates,
            self.rejected,
            self.suppressed,
            self.skipped,
            self.waiting,
            self.missing,
        )
        if self.rows_in != sum(parts):
            raise ConservationError(
                f"The audit's account of {self.name or 'rows without a table'} does not balance: "
                f"{self.rows_in} rows in, {sum(parts)} accounted for. Please report this."
            )


@dataclass(frozen=True, slots=True)
class PartitionAudit:
    """A partition that differs: rows that should be there, rows that are, and some ids."""

    table: str
    name: str
    partition: str
    expected: int
    found: int
    missing: int = 0
    unexpected: int = 0
    doubled: int = 0
    problems: tuple[str, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()  # kind, message id


@dataclass(frozen=True, slots=True)
class Audit:
    """All tables of a source, and the partitions in which lake and archive differ."""

    scope: Scope
    tables: tuple[TableAudit, ...]
    partitions: tuple[PartitionAudit, ...]
    raw: RawFiles

    @property
    def agrees(self) -> bool:
        return not self.partitions

    @property
    def total(self) -> TableAudit:
        names = [name for name in TableAudit.__slots__ if name not in ("table", "name")]
        sums = {name: sum(getattr(table, name) for table in self.tables) for name in names}
        return TableAudit("", "", **sums)

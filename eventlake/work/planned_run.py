"""What a whole dry run found: its units together, table by table and partition by partition."""

from collections.abc import Iterable
from dataclasses import dataclass

from eventlake.rules.counts import CastCounts, TableReport, UnitReport
from eventlake.rules.types import LakeType
from eventlake.work.dry_run import PlannedPartition, PlannedUnit


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """All units of a dry run."""

    report: UnitReport
    partitions: tuple[PlannedPartition, ...]  # that would be made, changed or dropped
    switches: dict[str, dict[str, LakeType]]  # types that tables would get in the end
    row_sums: dict[str, tuple[int, int]]  # by table: now and then, in these partitions

    @property
    def tables(self) -> list[str]:
        """Tables with rows to load, then those that would only lose some."""
        return list(dict.fromkeys([*self.report.tables, *(p.table for p in self.partitions)]))

    def table(self, key: str) -> TableReport:
        name = key.split(".", 1)[1]
        return self.report.tables.get(key, TableReport(name, name, rows_in=0))

    @property
    def losing_casts(self) -> dict[tuple[str, str], CastCounts]:
        """Columns, by table and name, in which values would lose something or not fit."""
        return {
            (key, column): counts
            for key, table in self.report.tables.items()
            for column, counts in table.casts.items()
            if counts.lossy or counts.failed
        }

    def rows(self, table: str) -> tuple[int, int]:
        """Rows now and then, in the partitions of a table that would change."""
        return self.row_sums.get(table, (0, 0))


def planned_run(units: Iterable[PlannedUnit]) -> PlannedRun:
    """One partition may be in several units of a sync: then is what the last of them leaves."""
    report, switches = UnitReport(), dict[str, dict[str, LakeType]]()
    partitions: dict[tuple[str, ...], PlannedPartition] = {}
    for unit in units:
        report += unit.report
        switches |= unit.switches
        for partition in unit.partitions:
            key = (partition.table, *partition.values)
            now = partitions.get(key, partition).rows_now
            partitions[key] = PlannedPartition(
                partition.table, partition.values, now, partition.rows_then
            )
    sums: dict[str, tuple[int, int]] = {}
    for partition in partitions.values():
        now, then = sums.get(partition.table, (0, 0))
        sums[partition.table] = now + partition.rows_now, then + (partition.rows_then or 0)
    in_order = tuple(partitions[key] for key in sorted(partitions))
    return PlannedRun(report, in_order, switches, sums)

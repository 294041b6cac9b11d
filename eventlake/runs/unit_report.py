"""The counts of one unit of work: from staging, dedup, and the footers of files."""

from collections.abc import Iterable, Mapping
from functools import reduce

from eventlake.load.dedup import TableIds
from eventlake.load.seen import Seen
from eventlake.load.write import LoadedFile
from eventlake.rules.counts import NewColumn, TableReport, UnitReport, added
from eventlake.rules.events import Reason
from eventlake.rules.text import plural
from eventlake.rules.types import TableSchema
from eventlake.runs.placement import partition_dict, partition_values
from eventlake.runs.plan import freed_warnings
from eventlake.runs.resolve import ResolvedTable
from eventlake.runs.unit import Unit, UnitWork
from eventlake.settings.models import Source


def unit_report(
    work: UnitWork,
    seen: Seen,
    resolved: Mapping[str, ResolvedTable],
    ids: Mapping[str, TableIds],
    loaded: Iterable[LoadedFile],
    freed: Mapping[str, int],
) -> UnitReport:
    """Take every count from its origin, so that the balance check is meaningful."""
    source, unit = work.context.source, work.unit
    files: dict[str, list[LoadedFile]] = {}
    for file in sorted(loaded, key=lambda f: (f.table, f.partition, f.path)):
        if file.path:
            # Of a table that a replay switches, the files in the requested types remain.
            lasting = file.shadow or file if file.table in unit.switches else file
            files.setdefault(file.table, []).append(lasting)
    staged = seen.staged_rows()
    return UnitReport(
        tables={
            one.schema.key: _table_report(
                source,
                one,
                staged[table],
                seen.rejected.get(table, {}),
                seen.suppressed.get(table, 0),
                ids[table],
                files.get(table, []),
            )
            for table, one in resolved.items()
        }
        | _left_out(seen, {t: s for t, s in work.tables.items() if t not in resolved}),
        rows_in=seen.rows_in,
        duplicates=sum(table.duplicates for table in ids.values()),
        rejected=sum(sum(reasons.values()) for reasons in seen.rejected.values()),
        suppressed=sum(seen.suppressed.values()),
        skipped=seen.skipped,
        raw_files=len(seen.files),
        warnings=(*_warnings(unit, seen), *_conflicts(ids), *freed_warnings(source, freed)),
        to_replay=tuple(sorted(freed)),
    )


def _table_report(
    source: Source,
    one: ResolvedTable,
    staged: int,
    rejected: Mapping[str, int],
    suppressed: int,
    ids: TableIds,
    files: list[LoadedFile],
) -> TableReport:
    layout = source.date_partition
    day_rows: dict[str, int] = {}
    for file in files:
        day = layout.parse(partition_values(file.partition)).date().isoformat()
        day_rows[day] = day_rows.get(day, 0) + file.rows
    return TableReport(
        table=one.schema.table,
        name=one.schema.name,
        rows_in=staged + sum(rejected.values()) + suppressed,
        row_count=sum(file.rows for file in files),
        duplicates=ids.duplicates,
        other_payload=ids.other_payload,
        rejected=sum(rejected.values()),
        suppressed=suppressed,
        partitions=tuple(
            partition_dict(layout, partition)
            for partition in dict.fromkeys(file.partition for file in files)
        ),
        day_rows=day_rows,
        new_columns=tuple(NewColumn(c.name, c.type.sql) for c in one.new_columns),
        is_new=one.is_new,
        rescued_cells=sum(file.rescued_cells for file in files),
        files_written=len(files),
        bytes_written=sum(file.size for file in files),
        casts=reduce(added, (file.casts for file in files), {}),
    )


def _left_out(seen: Seen, tables: Mapping[str, TableSchema]) -> dict[str, TableReport]:
    """Tables of the lake of which no row was loaded, although the unit had some."""
    found: dict[str, TableReport] = {}
    for table, schema in tables.items():
        rejected = sum(seen.rejected.get(table, {}).values())
        suppressed = seen.suppressed.get(table, 0)
        if rows := rejected + suppressed:
            found[schema.key] = TableReport(
                table, schema.name, rows, rejected=rejected, suppressed=suppressed
            )
    return found


def _warnings(unit: Unit, seen: Seen) -> Iterable[str]:
    """Warnings for the owner of the data, with file and line."""
    paths = {file.number: file.path for file in unit.files}
    for file in seen.files:
        if file.broken:
            yield (
                f"{paths[file.number]}: {file.broken}. {plural(file.lines, 'line')} before it "
                "could be read; put the whole file there and the next sync loads the rest."
            )
    yield from rejections(unit, seen)
    if seen.before_start:
        rows = plural(seen.before_start, "row")
        yield f"{rows} received before the source's start; loaded."
    if seen.ahead:
        yield f"{plural(seen.ahead, 'row')} received more than a day ahead, as they say; loaded."


def rejections(unit: Unit, seen: Seen) -> Iterable[str]:
    """How many rows were rejected for each reason, with the first of them."""
    paths = {file.number: file.path for file in unit.files}
    totals: dict[str, int] = {}
    for reasons in seen.rejected.values():
        for reason, rows in reasons.items():
            totals[reason] = totals.get(reason, 0) + rows
    for reason, rows in sorted(totals.items()):
        first = min((s for s in seen.samples if s.reason == reason), key=lambda s: (s.file, s.line))
        place = f"{paths[first.file]} line {first.line}"
        if reason != Reason.CUT_OFF:
            yield f"{plural(rows, 'row')} rejected, the first in {place}: {first.detail}"


def _conflicts(ids: Mapping[str, TableIds]) -> Iterable[str]:
    """Duplicates with another payload: a sender reuses message ids."""
    other = {table: found.other_payload for table, found in ids.items() if found.other_payload}
    if other:
        yield (
            f"{plural(sum(other.values()), 'duplicate')} with another payload than the event that "
            f"is kept (in {', '.join(sorted(other))}): a sender uses message ids twice."
        )

"""One unit of work, from raw files to a manifest ready to be committed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec

from eventlake.load.blobs import deal_out, rows_key
from eventlake.load.seen import Seen
from eventlake.load.stage_job import StageJob, over_limits
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.resolve import RESCUED, ResolvedTable, resolve
from eventlake.rules.counts import UnitReport
from eventlake.settings.models.models import Tracking
from eventlake.state.ledger import LedgerEntry
from eventlake.state.manifest import Manifest, NewFile, PartitionChange, RunKind
from eventlake.state.replays import RawVersion, ReplayStep
from eventlake.upkeep.unused import with_unused
from eventlake.work.checks import CheckResult, ChecksFailed, check_table
from eventlake.work.deduplicate import Duplicates, deduplicate
from eventlake.work.foreign_folders import kept_apart
from eventlake.work.new_tables import room_for_tables
from eventlake.work.placing import Placement, emptied, partition_changes, place
from eventlake.work.record_log import log_records
from eventlake.work.run_context import Published, now
from eventlake.work.shadows import Shadows, shadows_of
from eventlake.work.unit import tasks
from eventlake.work.unit_report import unit_report
from eventlake.work.unit_work import UnitWork

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def process(work: UnitWork) -> Published:
    """Everything but the commit. Nothing that readers look at is touched."""
    unit, listener = work.unit, work.context.listener
    listener.log(f"{unit.label}: reading {len(unit.files)} raw files, {unit.bytes / 1e6:,.1f} MB")
    seen = _stage(work)
    resolved = kept_apart(work, resolve(work.context.source, work.state.tables, seen.tables))
    listener.log(f"{unit.label}: {seen.rows_in:,} rows for {len(resolved)} tables; deduplicating")
    duplicates = deduplicate(work, seen)
    resolved = {t: r for t, r in resolved.items() if not r.is_new or duplicates.tables[t].kept}
    placements = place(work, seen, resolved)
    shadows = shadows_of(work, resolved, placements)
    doing = "counting" if work.dry else "writing"
    listener.log(f"{unit.label}: {doing} {len(placements)} partitions")
    loaded = _load(work, seen, resolved, placements, shadows, duplicates)
    if not work.dry:
        work.context.storage.settle_soon(len(loaded))
    resolved = _with_rescued_data(resolved, loaded)
    report = unit_report(work, seen, resolved, duplicates.tables, loaded)
    checks = _verify(work, report, resolved, duplicates, loaded)
    records = () if work.dry else log_records(work, seen, duplicates)
    changes = partition_changes(work, placements, loaded) + emptied(work, loaded)
    manifest = _manifest(work, seen, resolved, changes, duplicates, records, report)
    manifest = with_unused(work.state, shadows.noted(manifest, loaded), now())
    return Published(manifest, report, tuple(checks))


def _stage(work: UnitWork) -> Seen:
    source, window = work.context.source, work.unit.window
    job = StageJob(
        storage=work.context.storage,
        naming=source.naming,
        date_partition=source.date_partition,
        limits=source.limits,
        columns={table: frozenset(schema.types()) for table, schema in work.tables.items()},
        skip=source.skipped_tables,
        suppression=work.suppression,
        hash_missing_ids=source.load_without_message_id,
        keep_payloads=source.tracking is Tracking.ALL,
        start_us=_us(datetime(*work.start.timetuple()[:3], tzinfo=UTC)) if work.start else None,
        ahead_us=_us(work.context.facts.start_time + timedelta(days=1)),
        window=(_us(window.start), _us(window.end)) if window else None,
        tables=work.unit.tables,
    )
    seen = Seen.merge(work.flow.stage(job, tasks(work.unit.files, work.flow.slots)))
    job = replace(job, room=room_for_tables(work, seen))
    if over_limits(job, seen):
        # Which events go over a limit depends on all before them: one task reads all, in order.
        work.context.listener.log(f"{work.unit.label}: reading again, to keep to the limits")
        work.flow.release()
        seen = Seen.merge(work.flow.stage(job, [list(work.unit.files)]))
    return seen


def _load(
    work: UnitWork,
    seen: Seen,
    resolved: dict[str, ResolvedTable],
    placements: dict[str, Placement],
    shadows: Shadows,
    duplicates: Duplicates,
) -> list[LoadedFile]:
    job = LoadJob(
        storage=work.context.storage,
        schemas={table: one.schema for table, one in resolved.items()},
        targets={key: one.written_to for key, one in placements.items()},
        locations={key: one.location for key, one in placements.items()} | shadows.lasting,
        duplicates=duplicates.places,
        raw_files=tuple(file.path for file in work.unit.files),
        naming=work.context.source.naming,
        log_folder=work.log_folder,
        operation=work.operation,
        wished=shadows.schemas,
        shadows=shadows.targets,
        dry=work.dry,
    )
    splits = {key: one.splits for key, one in placements.items() if one.splits > 1}
    staged = {rows_key(*at): size for at, size in seen.staged_bytes().items()}
    shares = deal_out(staged, splits, work.flow.slots)
    return work.flow.load(job, shares) if placements else []


def _with_rescued_data(
    resolved: dict[str, ResolvedTable], loaded: list[LoadedFile]
) -> dict[str, ResolvedTable]:
    """A table gets `rescued_data` the first time one of its files needs it."""
    needing = {file.table for file in loaded if any(one.has_rescued for one in file.written)}
    return {t: r.with_column(RESCUED) if t in needing else r for t, r in resolved.items()}


def _verify(
    work: UnitWork,
    report: UnitReport,
    resolved: dict[str, ResolvedTable],
    duplicates: Duplicates,
    loaded: list[LoadedFile],
) -> list[CheckResult]:
    """Raises unless all that was written may be published."""
    days = work.context.source.dedup_days
    files: dict[str, list[LoadedFile]] = {}
    for file in loaded:
        if file.path:
            files.setdefault(file.table, []).append(file)
    results: list[CheckResult] = []
    for table, one in resolved.items():
        table_report, ids = report.tables[one.schema.key], duplicates.tables[table]
        results += check_table(one.schema.key, table_report, files.get(table, []), ids, days)
    if not all(result.passed for result in results):
        raise ChecksFailed(results)
    report.check_balance()
    return results


def _manifest(
    work: UnitWork,
    seen: Seen,
    resolved: dict[str, ResolvedTable],
    changes: list[PartitionChange],
    duplicates: Duplicates,
    records: tuple[NewFile, ...],
    report: UnitReport,
) -> Manifest:
    source = work.context.source
    return msgspec.structs.replace(
        work.state.next_manifest(source, work.context.kind, work.context.facts),
        tables=tuple(one.schema for one in resolved.values() if one.new_columns or one.is_new),
        partitions=tuple(changes),
        ledger=_ledger(work, seen) if work.context.kind is RunKind.SYNC else (),
        index_added=duplicates.added,
        index_days_replaced=duplicates.window.replaced,
        records=records,
        report=report,
        finish_time=None,
        start=str(work.start) if work.start else None,
        replay=_replay_step(work, seen),
    )


def _replay_step(work: UnitWork, seen: Seen) -> ReplayStep | None:
    """What the manifest of a replay's day says of it, with the files that were read."""
    step, files = work.unit.step, work.unit.files
    if step is None:
        return None
    rows = {file.number: file.rows for file in seen.files}
    read = (RawVersion(f.path, f.size, f.stamp, rows.get(f.number, 0)) for f in files)
    return msgspec.structs.replace(step, raw=(*step.raw, *read))


def _ledger(work: UnitWork, seen: Seen) -> tuple[LedgerEntry, ...]:
    files = {file.number: file for file in work.unit.files}
    return tuple(
        LedgerEntry(
            path=files[s.number].path,
            size=files[s.number].size,
            stamp=files[s.number].stamp,
            lines=s.lines,
            hours=tuple(sorted(s.hours)),
            broken=s.broken,
        )
        for s in seen.files
    )


def _us(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND

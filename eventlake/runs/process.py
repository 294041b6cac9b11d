"""One unit of work, from raw files to a manifest ready to be committed."""

from bisect import bisect_left
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import msgspec

from eventlake.catalog import room
from eventlake.load.blobs import deal_out, rows_key
from eventlake.load.seen import Seen
from eventlake.load.stage_job import StageJob, over_limits
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.rules import paths
from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import CheckFailed, InvalidSetting
from eventlake.rules.text import plural, size
from eventlake.runs.archive import archive_storage
from eventlake.runs.clean_up import with_unused
from eventlake.runs.context import Published, now
from eventlake.runs.dedup import Duplicates, RowsMove, deduplicate, freed_copies
from eventlake.runs.placement import Placement, emptied, partition_changes, place_partitions
from eventlake.runs.record_log import log_records
from eventlake.runs.resolve import RESCUED, ResolvedTable, resolve
from eventlake.runs.retype import Shadows, shadows_of
from eventlake.runs.unit import UnitWork, micros, tasks
from eventlake.runs.unit_report import rejections, unit_report
from eventlake.runs.unknown_files import check_folders, refuse_lost_tables
from eventlake.runs.verify import CheckResult, ChecksFailed, check_table
from eventlake.settings.models import Tracking
from eventlake.state.ledger import LedgerEntry
from eventlake.state.manifest import Manifest, NewFile, PartitionChange, RunKind, read_manifest
from eventlake.state.replays import RawVersion, ReplayStep


def kept_apart(work: UnitWork, resolved: dict[str, ResolvedTable]) -> dict[str, ResolvedTable]:
    """New tables whose folder was used before do not use its partition folders.

    Another product may have left files at the same paths, and readers take all files in a partition
    folder as part of the partition.
    """
    new = [table for table, one in resolved.items() if one.is_new and one.schema.owns_folder]
    if not new:
        return resolved
    source_id, storage = work.context.source.id, work.context.storage
    root = paths.table_folder(source_id, "").rpartition("/")[0]
    there = set(storage.folders(root))
    folders = {table: paths.table_folder(source_id, table) for table in new}
    held = {t: storage.files(f) for t, f in folders.items() if f.rpartition("/")[2] in there}
    if work.unit.window is None:  # a replay makes its partitions anew
        refuse_lost_tables(work, [file for files in held.values() for file in files])
    taken = [t for t, files in held.items() if not all(paths.is_own_file(f.name) for f in files)]
    if taken:
        named = ", ".join(taken[:10]) + (", …" if len(taken) > 10 else "")
        work.context.listener.log(
            f"{work.unit.label}: {root} holds files of other tables called {named}. They stay as "
            "they are; ours go to folders of their own."
        )
    return resolved | {table: _apart(resolved[table]) for table in taken}


def _apart(one: ResolvedTable) -> ResolvedTable:
    return replace(one, schema=msgspec.structs.replace(one.schema, owns_folder=False))


def room_for_tables(work: UnitWork, seen: Seen) -> int | None:
    """The number of tables that may still be created in the catalog; None if no table is new.

    The catalog is asked only then: a database may have hundreds of thousands of tables.
    """
    source, catalog = work.context.source, work.context.catalog
    new = {table.table for table in seen.tables} - work.tables.keys()
    if not new:
        return None
    names = catalog.names(source.database)
    if mine := {s.name for s in work.state.tables.values() if s.database == source.database}:
        names = mine | (names or set())  # a dry run plans tables that the catalog does not have
    if taken := {source.catalog_table(table) for table in new} & (names or set()):
        _refuse(work, min(taken))
    return room(catalog, names, source.limits)


def _refuse(work: UnitWork, name: str) -> None:
    """Raise if a new table exists in the catalog already, with its own columns and types."""
    source = work.context.source
    if read_manifest(work.context.storage, source.id, work.state.manifest + 1) is not None:
        return  # a concurrent run has just created it: this run plans again
    raise InvalidSetting(
        f"Table {source.database}.{name} is in the catalog, but was not made by this lake, or by "
        "one whose state is gone: its columns and partitions are not known. It is left as it is. "
        "If the state of this lake was lost, run `datalake recover --from-data`. Else set another "
        "`database` or a `table_prefix` for the source, or remove that table from the catalog (its "
        "files stay)."
    )


def process(work: UnitWork) -> Published:
    """Do everything except the commit. Nothing that readers see is changed."""
    unit, listener = work.unit, work.context.listener
    files = plural(len(unit.files), "raw file")
    listener.log(f"{unit.label}: reading {files}, {size(unit.bytes)}")
    job = _stage_job(work)
    seen = _stage(work, job)
    resolved = kept_apart(work, resolve(work.context.source, work.state.tables, seen.tables))
    found = f"{plural(seen.rows_in, 'row')} for {plural(len(resolved), 'table')}"
    listener.log(f"{unit.label}: {found}; deduplicating")
    duplicates = deduplicate(work, seen)
    freed = _freed(work, job, duplicates)
    resolved = {t: r for t, r in resolved.items() if not r.is_new or duplicates.tables[t].kept}
    placements = place_partitions(work, seen, resolved)
    if not work.dry:
        check_folders(work, placements)
    shadows = shadows_of(work, resolved, placements)
    doing = "counting" if work.dry else "writing"
    listener.log(f"{unit.label}: {doing} {plural(len(placements), 'partition')}")
    loaded = _load(work, seen, resolved, placements, shadows, duplicates)
    if not work.dry:
        work.context.storage.start_sync(len(loaded))
    resolved = _with_rescued_data(resolved, loaded)
    report = unit_report(work, seen, resolved, duplicates.tables, loaded, freed)
    checks = _verify(work, report, resolved, duplicates, loaded)
    records = () if work.dry else log_records(work, seen, duplicates)
    changes = partition_changes(work, placements, loaded) + emptied(work, loaded)
    manifest = _manifest(work, seen, resolved, changes, duplicates, records, report, freed)
    manifest = with_unused(work.state, shadows.noted(manifest, loaded), now())
    return Published(manifest, report, tuple(checks))


def _stage_job(work: UnitWork) -> StageJob:
    source, window = work.context.source, work.unit.window
    return StageJob(
        storage=work.context.storage,
        naming=source.naming,
        date_partition=source.date_partition,
        limits=source.limits,
        columns={table: frozenset(schema.types()) for table, schema in work.tables.items()},
        skip=source.skipped_tables,
        suppression=work.suppression,
        hash_missing_ids=source.load_without_message_id,
        keep_payloads=source.tracking is Tracking.ALL,
        keep_lines=not work.dry,
        start_us=micros(datetime(*work.start.timetuple()[:3], tzinfo=UTC)) if work.start else None,
        ahead_us=micros(work.context.facts.start_time + timedelta(days=1)),
        window=window.in_us if window else None,
        tables=work.unit.tables,
        archive=archive_storage(work.context.storage, source),
    )


def _stage(work: UnitWork, job: StageJob) -> Seen:
    seen = _staged(work, job)
    _refuse_mostly_rejected(work, seen)
    if (days := _days_within_limit(work, seen)) is not None:
        work.context.listener.log(f"{work.unit.label}: reading again, to keep to the limit of days")
        work.flow.release()
        job = replace(job, days=days)
        seen = _staged(work, job)
    job = replace(job, room=room_for_tables(work, seen))
    if over_limits(job, seen):
        # Which events exceed a limit depends on all earlier ones: one task reads all, in order.
        work.context.listener.log(f"{work.unit.label}: reading again, to keep to the limits")
        work.flow.release()
        seen = Seen.merge(work.flow.stage(job, [list(work.unit.files)]))
    _refuse_mostly_rejected(work, seen)  # also for limits that are known only now
    return seen


def _staged(work: UnitWork, job: StageJob) -> Seen:
    return Seen.merge(work.flow.stage(job, tasks(work.unit.files, work.flow.slots)))


_ENOUGH_ROWS = 100
_EPOCH = date(1970, 1, 1).toordinal()


def _refuse_mostly_rejected(work: UnitWork, seen: Seen) -> None:
    """Fail a sync that rejects too much; the next sync loads its files again.

    A few bad files, however large, must not fail it: the limit applies to rows and to files.
    """
    most = work.context.source.fail_above_rejected_percent
    rejected = sum(file.rejected for file in seen.files)
    if work.unit.window is not None or seen.rows_in < _ENOUGH_ROWS:
        return
    files = [file for file in seen.files if file.rows]
    bad = [file for file in files if 100 * file.rejected > most * file.rows]
    if 100 * rejected > most * seen.rows_in and 100 * len(bad) > most * len(files):
        why = "\n  ".join(rejections(work.unit, seen))
        raise CheckFailed(
            f"{rejected:,} of {seen.rows_in:,} rows were rejected, more than "
            f"`fail_above_rejected_percent: {most:g}` allows, so nothing of {work.unit.label} was "
            f"loaded:\n  {why}\nCorrect the files or `raw`: the next sync reads them again. To "
            "load the other rows as they are, raise the setting."
        )


def _days_within_limit(work: UnitWork, seen: Seen) -> tuple[int, ...] | None:
    """The days to load if the unit has too many: the nearest to its day folders."""
    found = [date.fromisoformat(day).toordinal() for day in seen.days()]
    limit = work.context.source.limits.days
    if work.unit.window is not None or len(found) <= limit:
        return None
    names = {file.path.split("/")[-2] for file in work.unit.files}
    folders = sorted(day.toordinal() for name in names if (day := paths.folder_day(name)))

    def distance(day: int) -> int:
        at = bisect_left(folders, day)
        return min(abs(day - folder) for folder in folders[max(at - 1, 0) : at + 1])

    far = sorted((day for day in found if distance(day) > 1), key=lambda day: (distance(day), day))
    if len(far) <= limit:
        return None
    left_out = set(far[limit:])
    return tuple(day - _EPOCH for day in found if day not in left_out)


def _freed(work: UnitWork, job: StageJob, duplicates: Duplicates) -> dict[str, int]:
    """Copies that the unit frees; removes all traces of the unit if it has to be larger."""
    try:
        return freed_copies(work, job, duplicates)
    except RowsMove:
        for file in duplicates.added:
            work.context.storage.delete(file.path)
        raise


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
        duplicates=duplicates.positions,
        raw_files=tuple(file.path for file in work.unit.files),
        naming=work.context.source.naming,
        log_folder=work.log_folder,
        operation=work.operation,
        requested=shadows.schemas,
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
    """Raise unless all written files may be published."""
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
    freed: dict[str, int],
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
        freed=freed,
    )


def _replay_step(work: UnitWork, seen: Seen) -> ReplayStep | None:
    """The step that the manifest of a replayed day records, with the files that were read."""
    step, files = work.unit.step, work.unit.files
    if step is None:
        return None
    read = {file.number: file for file in seen.files}
    versions = (
        RawVersion(f.path, f.size, f.stamp, read[f.number].rows, read[f.number].checksum)
        for f in files
    )
    return msgspec.structs.replace(step, raw=(*step.raw, *versions))


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
            checksum=s.checksum,
        )
        for s in seen.files
    )

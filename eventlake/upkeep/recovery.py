"""Recovery: finishes what a crashed run left, and rebuilds the state of a source that is lost.

A state is rebuilt from data files, reports and catalog. Schemas come from what is left of the
state, else from the catalog, else from the files. Which raw files were loaded is not known then:
the next sync reads all of them, and recognises rows by their ids.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.catalog.base import CatalogPartition, CatalogTable, HeldFile
from eventlake.catalog.local import remove_damaged
from eventlake.lake import Lake
from eventlake.load.write import type_problems
from eventlake.rules import paths
from eventlake.rules.clock import new_run_id
from eventlake.rules.errors import StateError
from eventlake.rules.names import STANDARD_COLUMNS
from eventlake.rules.types import Column, LakeType, TableSchema
from eventlake.runs.clean_up import CleanUp, clean_up, with_unused
from eventlake.runs.context import now
from eventlake.runs.dead_runs import close_dead_runs
from eventlake.runs.dedup import read_ids
from eventlake.runs.open_runs import Healed, heal_reports, restore_reports
from eventlake.runs.publish import catch_up
from eventlake.runs.report_history import read_reports
from eventlake.settings.models import Source
from eventlake.state.id_index import write_index
from eventlake.state.lease import Lease, held_lease, read_lease, remove_dead_lease
from eventlake.state.manifest import (
    IndexFile,
    Manifest,
    PartitionChange,
    RunKind,
    commit,
    note_pruned,
)
from eventlake.state.partitions import Partitions
from eventlake.state.report import RunFacts
from eventlake.state.source_state import SourceState, read_state, write_state
from eventlake.storage import Storage, StoredFile

Values = tuple[str, ...]
_SECTIONS = ("properties", "traits", "context", "integrations", "metadata")


@dataclass
class Rebuilt:
    """The rebuilt state."""

    tables: int = 0
    partitions: int = 0
    files: int = 0
    rows: int = 0
    doubtful: list[str] = field(default_factory=list)  # folders that may not be the current ones
    left_out: list[str] = field(default_factory=list)  # dropped: not in the catalog, of other types


@dataclass(frozen=True, slots=True)
class _File:
    stored: StoredFile
    rows: int
    schema: pa.Schema

    @property
    def run(self) -> tuple[int, str]:
        return _in_order(self.stored.name)


@dataclass(frozen=True, slots=True)
class _Folder:
    location: str
    files: tuple[_File, ...]


def rebuild(lake: Lake, source: Source, waiting: Callable[[Lease], None]) -> Rebuilt:
    """Commit all data files in the folders of a source. Idempotent."""
    lake, run_id, done = lake.for_source(source), new_run_id(), Rebuilt()
    storage, catalog = lake.storage, lake.catalog
    with held_lease(storage, source.id, run_id, "recovery from data", waiting):
        state = _begin(lake, source)
        folders = _folders(storage, source)
        for table in _in_catalog(lake, source):
            folders.setdefault(table, {})
        schemas = {table: _schema(lake, source, state, table, f) for table, f in folders.items()}
        known = {
            schema.key: {p.values: p for p in _known(lake, state, schema)}
            for schema in schemas.values()
        }
        finished = _finished(storage, source)
        changes: list[PartitionChange] = []
        for table, by_values in folders.items():
            schema = schemas[table]
            held = known[schema.key]
            registered, gone = bool(held), state.dropped.get(schema.key, ())
            for values, candidates in by_values.items():
                before = held.pop(values, None)
                if before is None and (values in gone or (registered and not state.tables)):
                    done.left_out.append(candidates[0].location)
                    continue
                chosen = _chosen(candidates, before, finished, done)
                if any(type_problems(file.schema, schema, older=True) for file in chosen.files):
                    done.left_out.append(chosen.location)
                    continue
                changes.append(_change(schema, values, chosen, before))
            changes += [_dropped(schema, partition) for partition in held.values()]
        facts = RunFacts.of(lake.settings, source, run_id, now())
        manifest = msgspec.structs.replace(
            state.next_manifest(source, RunKind.UPKEEP, facts),
            tables=tuple(schemas.values()),
            partitions=tuple(changes),
            start=_start(source, changes),
        )
        index = tuple(_index(storage, source, run_id, changes))
        days = tuple(sorted({*state.index, *(file.day for file in index)}))
        manifest = msgspec.structs.replace(manifest, index_added=index, index_days_replaced=days)
        storage.make_durable(manifest.written)
        state = _counted(state, manifest)
        write_state(storage, state)
        commit(storage, with_unused(state, manifest, now()))
        catch_up(storage, catalog, source.id)
        restore_reports(storage, catalog)
    live = [change for change in changes if not change.dropped]
    done.tables, done.partitions = len(schemas), len(live)
    done.files, done.rows = sum(c.files for c in live), sum(c.rows for c in live)
    return done


def _begin(lake: Lake, source: Source) -> SourceState:
    """The state if it can be read; otherwise a new one, numbered after all known commits."""
    storage, catalog = lake.storage, lake.catalog
    remove_damaged(storage, paths.catalog_database(source.database))
    try:
        state = catch_up(storage, catalog, source.id)
    except StateError:
        storage.delete(paths.state_file(source.id))
        state = SourceState(source.id, paged=True)
    if state.manifest:
        return state
    entries = [entry for entry in catalog.tables(source.database) if _is_of(entry, source)]
    held = [p.version for e in entries for p in catalog.partitions(e.database, e.name)]
    numbers = [_number(file) for file in storage.files(paths.manifests(source.id))]
    retyped = {entry.full_name: entry.retyped for entry in entries if entry.retyped > 0}
    last = max([0, *held, *retyped.values(), *numbers])
    state = SourceState(source.id, manifest=last, paged=True, retyped=retyped)
    if last:
        note_pruned(storage, source.id, last)
        write_state(storage, state)
    return state


def _start(source: Source, changes: Iterable[PartitionChange]) -> str | None:
    """The first day of the source: syncs ignore older folders of the archive."""
    layout = source.date_partition
    days = (f"{layout.parse(c.values):%Y-%m-%d}" for c in changes if not c.dropped)
    return str(source.start) if source.start else min(days, default=None)


def _number(file: StoredFile) -> int:
    stem = file.name.removesuffix(".json")
    return int(stem) if stem.isdecimal() else 0


def _is_of(entry: CatalogTable, source: Source) -> bool:
    return entry.location.startswith(paths.table_folder(source.id, ""))


def _folders(storage: Storage, source: Source) -> dict[str, dict[Values, list[_Folder]]]:
    """Folders with data files of the lake, by table and partition."""
    root = f"segment-data/data/{source.id}"
    stored = [file for file in storage.files(root) if paths.is_own_file(file.name)]
    files = storage.each(lambda file: _read(storage, file), stored)
    found: dict[str, dict[Values, list[_Folder]]] = {}
    for location, group in groupby(files, key=lambda file: file.stored.path.rpartition("/")[0]):
        table, _, partition = location.partition("segment_type=")[2].partition("/")
        named = [part.partition("=") for part in partition.split("/")]
        if tuple(key for key, _, _ in named) == source.date_partition.keys:
            values = tuple(value for _, _, value in named)
            folder = _Folder(location, tuple(group))
            found.setdefault(table, {}).setdefault(values, []).append(folder)
    return found


def _in_catalog(lake: Lake, source: Source) -> Iterator[str]:
    """Tables of the catalog: they stay, also without rows."""
    root = paths.table_folder(source.id, "")
    for entry in lake.catalog.tables(source.database):
        table = entry.location.removeprefix(root)
        if (
            _is_of(entry, source)
            and entry.name == source.catalog_table(table)
            and entry.partition_keys == source.date_partition.keys
        ):
            yield table


def _read(storage: Storage, file: StoredFile) -> _File:
    try:
        with storage.open_input(file.path) as stream:
            footer = pq.read_metadata(stream)
    except (pa.ArrowException, OSError) as error:
        raise StateError(
            f"{storage.full(file.path)} cannot be read: {str(error).splitlines()[0]}. Move it "
            "elsewhere, recover, and replay its day."
        ) from None
    return _File(file, footer.num_rows, footer.schema.to_arrow_schema())


def _schema(
    lake: Lake,
    source: Source,
    state: SourceState,
    table: str,
    folders: dict[Values, list[_Folder]],
) -> TableSchema:
    name = source.catalog_table(table)
    if (known := state.tables.get(f"{source.database}.{name}")) is not None:
        return known
    entry = lake.catalog.table(source.database, name)
    if entry is not None:
        types = {type.sql: type for type in LakeType}
        columns = tuple(Column(c.name, types[c.type], c.comment) for c in entry.columns)
        return TableSchema(table, source.database, name, entry.comment, columns)
    files = [file for found in folders.values() for one in found for file in one.files]
    # Every file has all columns of its time, and new columns come last.
    last = max(files, key=lambda file: (file.run, len(file.schema)))
    types_of = {type.arrow: type for type in LakeType}
    pointers = {c.name(source.naming): c.pointer for c in STANDARD_COLUMNS}
    columns = tuple(
        Column(f.name, types_of[f.type], pointers.get(f.name, _pointer(f.name)))
        for f in last.schema
    )
    return TableSchema(table, source.database, name, table, columns)


def _pointer(column: str) -> str:
    """The likely path of the field of a column: files do not contain it."""
    section, _, rest = column.partition("_")
    if section in _SECTIONS and rest:
        return f"/{'_' if section == 'metadata' else ''}{section}/{rest}"
    return "" if column == "rescued_data" else f"/{column}"


def _known(lake: Lake, state: SourceState, schema: TableSchema) -> list[CatalogPartition]:
    """The schema of a table in state or catalog, if it is still there."""
    if schema.key in state.tables:
        return Partitions(lake.storage, lake.catalog).of(state, schema)
    if lake.catalog.table(schema.database, schema.name) is None:
        return []
    return lake.catalog.partitions(schema.database, schema.name)


def _finished(storage: Storage, source: Source) -> set[str]:
    """Runs whose files are published, by their reports."""
    end = f"/source={source.id}/"
    files = [f.path for f in storage.files(paths.reports_root()) if end in f.path]
    return {report.run_id for report in read_reports(storage, files) if report.finished_well}


def _chosen(
    candidates: list[_Folder],
    before: CatalogPartition | None,
    finished: set[str],
    done: Rebuilt,
) -> _Folder:
    """The current folder of a partition; replaced folders and those of failed runs may still exist.

    While a partition is in a version folder, its documented folder gets no files. So if the
    documented folder has files of later runs, it is the current one.
    """
    for folder in candidates:
        if before is not None and before.location == folder.location:
            return folder
    home = next((one for one in candidates if not paths.is_version_folder(one.location)), None)
    newest = max(file.run for file in home.files) if home else (0, "")
    later = [one for one in candidates if one is not home and _version(one) > newest]
    if home and not later:
        return home
    published = [one for one in later if _version(one)[1] in finished]
    chosen = max(published, key=_version) if published else home or max(later, key=_version)
    done.doubtful.append(chosen.location)
    return chosen


def _version(folder: _Folder) -> tuple[int, str]:
    return _in_order(folder.location.split("/")[4])


def _in_order(name: str) -> tuple[int, str]:
    """The run in the name of a folder or file; run ids are times."""
    run = name.partition("-")[0]
    return len(run), run


def _change(
    schema: TableSchema,
    values: Values,
    folder: _Folder,
    before: CatalogPartition | None,
) -> PartitionChange:
    return PartitionChange(
        table=schema.key,
        values=values,
        location=folder.location,
        added=(),
        rows=sum(file.rows for file in folder.files),
        bytes=sum(file.stored.size for file in folder.files),
        files=len(folder.files),
        rows_before=before.rows if before else 0,
        kept=tuple(HeldFile(file.stored.name, file.stored.size) for file in folder.files),
    )


def _dropped(schema: TableSchema, held: CatalogPartition) -> PartitionChange:
    return PartitionChange(
        schema.key, held.values, held.location, (), 0, 0, 0, held.rows, dropped=True
    )


def _index(
    storage: Storage, source: Source, run_id: str, changes: Iterable[PartitionChange]
) -> Iterator[IndexFile]:
    """The ids of every day, from the files."""
    live = [change for change in changes if not change.dropped]
    layout = source.date_partition

    def day(change: PartitionChange) -> str:
        return f"{layout.parse(change.values):%Y-%m-%d}"

    for name, of_day in groupby(sorted(live, key=day), key=day):
        files = [
            StoredFile(f"{change.location}/{file.name}", file.bytes, "")
            for change in of_day
            for file in change.kept
        ]
        ids = read_ids(storage, source, files)
        if len(ids):
            yield from write_index(storage, source.id, f"{run_id}-{name}", ids)


def _counted(state: SourceState, manifest: Manifest) -> SourceState:
    """The state before the manifest, with the row counts that it assumes."""
    rows = dict(state.rows)
    for change in manifest.partitions:
        rows[change.table] = 0
    for change in manifest.partitions:
        rows[change.table] += change.rows_before
    return msgspec.structs.replace(state, rows=rows)


_AS_LONG_AS_IT_TAKES = float("inf")


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was recovered for a source, and the current lease."""

    source: Source
    applied: tuple[int, ...]  # manifests that were committed, but not applied
    closed: tuple[str, ...]  # runs without a report
    reports: Healed
    freed: Lease | None  # the lease of a crashed holder
    cleaned: CleanUp
    at_work: Lease | None

    def __bool__(self) -> bool:
        return bool(self.applied or self.closed or self.reports or self.freed or self.cleaned)


def recover(lake: Lake, source: Source, now: datetime) -> Recovery:
    """Apply committed manifests, close crashed runs, heal reports, remove what is not needed.

    Running processes are not affected. Idempotent.
    """
    lake = lake.for_source(source)
    storage, catalog = lake.storage, lake.catalog
    before = read_state(storage, source.id).manifest
    state = catch_up(storage, catalog, source.id)
    applied = tuple(range(before + 1, state.manifest + 1))
    closed = close_dead_runs(storage, catalog, source.id, now)
    state = read_state(storage, source.id)
    reports = heal_reports(storage, source.id, state.manifest)
    freed = remove_dead_lease(storage, source.id)
    cleaned = clean_up(storage, catalog, source, state, now, _AS_LONG_AS_IT_TAKES)
    return Recovery(
        source=source,
        applied=applied,
        closed=tuple(closed),
        reports=reports,
        freed=freed,
        cleaned=cleaned,
        at_work=read_lease(storage, source.id),
    )

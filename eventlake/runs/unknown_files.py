"""Files that the state does not know: it may be older than the data.

A restored backup of `_state`, or a copied lake, lacks the last commits. Their files are still in
the folders of partitions, where readers see them, and loading their raw files again would duplicate
the rows. So a run compares the folders that it adds to with the state. It adds complete files of
the lake to the state, plans again, and finds duplicates.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.catalog.base import CatalogPartition, HeldFile
from eventlake.columnar.id_hashes import words
from eventlake.load.write import type_problems
from eventlake.rules import paths
from eventlake.rules.errors import CommitConflict, StateError
from eventlake.rules.names import RECEIVED_AT
from eventlake.rules.partitions import DatePartition
from eventlake.rules.text import plural
from eventlake.rules.types import TableSchema
from eventlake.runs.clean_up import with_unused
from eventlake.runs.context import now
from eventlake.runs.dedup import read_ids
from eventlake.runs.placement import Placement, partition_values
from eventlake.runs.plan import replay_command
from eventlake.runs.unit import UnitWork
from eventlake.state.id_index import read_index, write_index
from eventlake.state.manifest import IndexFile, Manifest, PartitionChange, RunKind, note_abandoned
from eventlake.state.partitions import held_files
from eventlake.storage import StoredFile


class StateBehind(CommitConflict):
    """The state lacks files; `manifest` adds them, then the run plans again."""

    def __init__(self, message: str, manifest: Manifest) -> None:
        self.manifest = manifest
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of a partition: its files in the state, and the files found there."""

    schema: TableSchema
    values: tuple[str, ...]
    location: str
    before: CatalogPartition | None
    there: tuple[HeldFile, ...]

    @property
    def unknown(self) -> list[HeldFile]:
        held = {*self.before.held} if self.before else set()
        return [file for file in self.there if file not in held]

    @property
    def missing(self) -> list[HeldFile]:
        there = {*self.there}
        return [file for file in self.before.held if file not in there] if self.before else []


def check_folders(work: UnitWork, placements: Mapping[str, Placement]) -> None:
    """Raise `StateBehind` or `StateError` if the run would add to folders with unknown files."""
    listener = work.context.listener
    folders = _folders(
        work,
        [
            (p.schema, partition_values(p.partition), p.before)
            for p in placements.values()
            if p.keeps and (p.before or not paths.is_version_folder(p.location))
        ],
    )
    for folder in folders:
        if folder.missing and not folder.unknown:
            listener.warn(
                f"{_full(work, folder)} lacks {len(folder.missing)} of its published files "
                f"({folder.missing[0].name}), so their rows are gone. {_remedy(work, folder)}"
            )
    if any(folder.unknown for folder in folders):
        _refuse_if_overtaken(work)
        raise _taken_in(work)


def refuse_lost_tables(work: UnitWork, files: Iterable[StoredFile]) -> None:
    """Raise `StateError` if files in the folders of new tables are ours."""
    context = work.context
    ours = [file.path for file in files if paths.is_own_file(file.name)]
    if not ours:
        return
    _refuse_if_overtaken(work)
    raise StateError(
        f"The state of source {context.source.id} does not have the table of "
        f"{context.storage.full(min(ours))}: it is older than its data, or lost. Nothing was "
        "loaded. Restore the newest backup of segment-data/_state, or make the state again from "
        f"the data files: `datalake recover --from-data --source {context.source.slug}`. To leave "
        "the files out, move them elsewhere."
    )


def _refuse_if_overtaken(work: UnitWork) -> None:
    """Files of a concurrent commit are not unknown: plan again on top of it."""
    context, number = work.context, work.state.manifest + 1
    if context.storage.exists(paths.manifest(context.source.id, number)):
        note_abandoned(context.storage, context.source.id, context.run_id)
        raise CommitConflict(
            f"Another run committed manifest {number} of source {context.source.id} first; nothing "
            "of this one was published. It is planned again on top of the other."
        )


def _folders(
    work: UnitWork,
    wanted: Iterable[tuple[TableSchema, tuple[str, ...], CatalogPartition | None]],
) -> list[Folder]:
    known = list(wanted)
    places = [before.location if before else _home(work, s, v) for s, v, before in known]
    listed = work.context.storage.each(
        lambda place: held_files(work.context.storage, place), places
    )
    listed = [tuple(f for f in there if f.name.endswith(".parquet")) for there in listed]
    return [
        Folder(schema, values, place, before, there)
        for (schema, values, before), place, there in zip(known, places, listed, strict=True)
    ]


def _home(work: UnitWork, schema: TableSchema, values: tuple[str, ...]) -> str:
    layout = work.context.source.date_partition
    return paths.partition_folder(
        work.context.source.id, schema.table, layout.path(layout.parse(values))
    )


def _taken_in(work: UnitWork) -> StateBehind:
    """A manifest with all unknown files of the source, in all its partitions."""
    behind = [folder for folder in _folders(work, _every(work)) if folder.unknown]
    footers = {id(folder): _footers(work, folder) for folder in behind}
    changes = tuple(_change(folder, footers[id(folder)]) for folder in behind)
    source, state = work.context.source, work.state
    layout = source.date_partition
    days = sorted({f"{layout.parse(folder.values):%Y-%m-%d}" for folder in behind})
    _refuse_known_rows(work, behind, days)
    manifest = msgspec.structs.replace(
        state.next_manifest(source, RunKind.UPKEEP, work.context.facts), partitions=changes
    )
    indexed = tuple(file for day in days for file in _index(work, manifest, day))
    manifest = msgspec.structs.replace(
        manifest, index_days_replaced=tuple(days), index_added=indexed
    )
    files = sum(len(folder.unknown) for folder in behind)
    message = (
        f"The state of source {source.id} is older than its data: {plural(files, 'whole file')} of "
        f"{plural(len(behind), 'partition')} were not in it ({_full(work, behind[0])}). They are "
        "taken in as they are, and the run plans again."
    )
    return StateBehind(message, with_unused(state, manifest, now()))


def _every(
    work: UnitWork,
) -> Iterable[tuple[TableSchema, tuple[str, ...], CatalogPartition | None]]:
    """All partitions of the source, and folders of its tables in which there may be others."""
    keys = work.context.source.date_partition.keys
    for schema in work.tables.values():
        held = {p.values: p for p in work.context.partitions.of(work.state, schema)}
        root = paths.table_folder(work.context.source.id, schema.table)
        listed = work.context.storage.files(root) if schema.owns_folder else []
        gone = work.state.dropped.get(schema.key, set())
        found = {_values(file.path[len(root) + 1 :], keys) for file in listed}
        for values in sorted({v for v in found if v and v not in gone} | held.keys()):
            yield schema, values, held.get(values)


def _values(path: str, keys: tuple[str, ...]) -> tuple[str, ...] | None:
    """The values in the path of a file; None if it is in no partition."""
    *folders, _ = path.split("/")
    named = [folder.partition("=") for folder in folders]
    return tuple(v for _, _, v in named) if tuple(k for k, _, _ in named) == keys else None


def _footers(work: UnitWork, folder: Folder) -> int:
    """The rows of all files in a folder; raises unless unknown ones are complete files of ours."""
    storage, source, rows = work.context.storage, work.context.source, 0
    for file in folder.there:
        path, problem = f"{folder.location}/{file.name}", ""
        try:
            with storage.open_input(path) as stream:
                footer = pq.read_metadata(stream)
            rows += footer.num_rows
            if file in folder.unknown:
                problem = _problem(file, footer, folder, source.date_partition)
                problem = problem or _time_problem(work, path, folder)
        except (pa.ArrowException, OSError) as error:
            problem = str(error).splitlines()[0]
        if problem:
            raise StateError(
                f"{storage.full(path)} is not in the state of the lake, and cannot be taken in: "
                f"{problem}. Nothing was loaded. If the state is an older one, restore the newest "
                f"backup of segment-data/_state. Otherwise move the file elsewhere, or: "
                f"{_remedy(work, folder)}"
            )
    return rows


def _problem(file: HeldFile, footer: pq.FileMetaData, folder: Folder, layout: DatePartition) -> str:
    if not paths.is_own_file(file.name):
        return "it is not called like a file of the lake"
    return next(iter(type_problems(footer.schema.to_arrow_schema(), folder.schema, True)), "")


def _time_problem(work: UnitWork, path: str, folder: Folder) -> str:
    """Raise for rows of another partition: the file was copied here by hand."""
    source = work.context.source
    layout, column = source.date_partition, RECEIVED_AT.name(source.naming)
    with work.context.storage.open_input(path) as stream:
        received = pq.ParquetFile(stream).read([column])[column]
    starts = {layout.floor(moment) for moment in received.unique().to_pylist()}
    elsewhere = starts - {layout.parse(folder.values)}
    return f"it holds rows of {min(elsewhere):%Y-%m-%dT%H}" if elsewhere else ""


def _change(folder: Folder, rows: int) -> PartitionChange:
    return PartitionChange(
        table=folder.schema.key,
        values=folder.values,
        location=folder.location,
        added=(),
        rows=rows,
        bytes=sum(file.bytes for file in folder.there),
        files=len(folder.there),
        rows_before=folder.before.rows if folder.before else 0,
        kept=folder.there,
    )


def _refuse_known_rows(work: UnitWork, behind: list[Folder], days: list[str]) -> None:
    """Raise for rows that the lake has already in other files."""
    storage, source = work.context.storage, work.context.source
    unknown = [
        StoredFile(f"{folder.location}/{file.name}", file.bytes, "")
        for folder in behind
        for file in folder.unknown
    ]
    found = words(read_ids(storage, source, unknown)["id"].combine_chunks())
    replaced = [folder for folder in behind if folder.missing]
    ids, times = np.unique(found, axis=0, return_counts=True)
    indexed = [file for day in days for file in work.state.index.get(day, ())]
    lake = {tuple(row) for row in read_index(storage, indexed).ids.tolist()}
    doubled = (times > 1).any() or any(tuple(row) in lake for row in ids.tolist())
    if doubled and not replaced:
        raise StateError(
            f"{_full(work, behind[0])} holds files that the state does not know, with rows that "
            f"the lake has already. Nothing was loaded. {_remedy(work, behind[0])}"
        )


def _index(work: UnitWork, manifest: Manifest, day: str) -> Iterable[IndexFile]:
    """The ids of a day, including the added files."""
    storage, source = work.context.storage, work.context.source
    partitions = work.context.partitions.with_plan(manifest)
    held = partitions.of_all(work.state, work.tables.values(), (day, day))
    files = [
        StoredFile(f"{partition.location}/{file.name}", file.bytes, "")
        for found in held.values()
        for partition in found
        for file in partition.held
    ]
    ids = read_ids(storage, source, files)
    return write_index(storage, source.id, f"{work.name}-known", ids) if len(ids) else ()


def _full(work: UnitWork, folder: Folder) -> str:
    return work.context.storage.full(folder.location)


def _remedy(work: UnitWork, folder: Folder) -> str:
    source = work.context.source
    day = f"{source.date_partition.parse(folder.values).date()}"
    return f"Replay its day from the raw archive: `{replay_command(source, day, day)}`."

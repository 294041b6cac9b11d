"""Check `partitions`: the catalog has the partitions of the state, and their files exist."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Self

import msgspec

from eventlake.catalog.base import CatalogPartition, partition_day
from eventlake.checks.drift import LATELY, Changes, changes_of, made
from eventlake.checks.view import PartitionFiles, TableView, verdict
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.partitions import DatePartition
from eventlake.rules.text import plural, size
from eventlake.rules.types import TableSchema
from eventlake.runs.verify import CheckResult
from eventlake.settings.models import Source
from eventlake.state.manifest import Manifest, read_manifest
from eventlake.state.partitions import Partitions
from eventlake.state.source_state import SourceState, read_state
from eventlake.storage import Storage
from eventlake.upkeep.candidates import Candidate, candidates


@dataclass(frozen=True, slots=True)
class Comparison:
    """The partitions of one table that differ."""

    missing: tuple[CatalogPartition, ...]
    moved: tuple[tuple[CatalogPartition, CatalogPartition], ...]  # as found, and as wanted
    foreign: tuple[CatalogPartition, ...]

    @classmethod
    def of(cls, wanted: Iterable[CatalogPartition], found: Iterable[CatalogPartition]) -> Self:
        due = {partition.values: partition for partition in wanted}
        there = {partition.values: partition for partition in found}
        return cls(
            tuple(p for values, p in due.items() if values not in there),
            tuple((there[v], p) for v, p in due.items() if v in there and _differ(there[v], p)),
            tuple(p for values, p in there.items() if values not in due),
        )

    def to_put(self) -> list[CatalogPartition]:
        """The partitions to put, with versions that count as the newest."""
        moved = (
            msgspec.structs.replace(wanted, version=max(found.version, wanted.version))
            for found, wanted in self.moved
        )
        return [*self.missing, *moved]


def _differ(found: CatalogPartition, wanted: CatalogPartition) -> bool:
    """Whether two entries differ, except in the version, which a repair may have raised."""
    counts = [(p.location, p.rows, p.bytes, p.files) for p in (found, wanted)]
    return counts[0] != counts[1]


_REMEDY = (
    "`datalake recover --catalog` registers again what was published. A file that is lost or "
    "damaged is restored by a replay of its day; `datalake audit` lists the affected rows."
)


def check_partitions(view: TableView) -> CheckResult:
    problems = [*_differences(view), *_unwanted(view), *_file_problems(view), *_row_problems(view)]
    files = [file for one in view.sampled for file in one.files]
    evidence = {
        "partitions": len(view.partitions),
        "looked_into": len(view.sampled),
        "all_looked_into_after_days": view.days_for_all,
        "files_read": len(files),
        "rows_registered": sum(partition.rows for partition in view.partitions),
        **({} if view.is_partial else {"rows_published": view.rows}),
    }
    return verdict(view.schema.key, "partitions", problems, evidence, _REMEDY)


def _differences(view: TableView) -> Iterator[str]:
    """The differences between catalog and state."""
    compared = Comparison.of(view.published, view.partitions)
    for wanted in compared.missing:
        yield f"{view.named(wanted.values)} is not registered ({_describe(wanted)})"
    for found, wanted in compared.moved:
        name = view.named(wanted.values)
        if found.version < wanted.version:
            yield f"{name} is registered as manifest {found.version} left it ({_describe(wanted)})"
        else:
            there = f"{found.location}, {plural(found.files, 'file')}, {plural(found.rows, 'row')}"
            yield f"{name} is registered with {there} ({_describe(wanted)})"
    for found in compared.foreign:
        yield f"{view.named(found.values)} was not registered by the lake"


def _describe(one: CatalogPartition) -> str:
    what = f"put it into {one.location}, {plural(one.files, 'file')}, {plural(one.rows, 'row')}"
    return f"manifest {one.version} {what}"


def _unwanted(view: TableView) -> Iterator[str]:
    """Partitions of the state that no manifest published."""
    for partition in view.published:
        name = view.named(partition.values)
        if not 0 < partition.version <= view.manifest:
            yield f"{name} was not registered by the lake"
        elif not _is_spelled_right(view, partition):
            yield f"{name} is not spelled like a partition of {view.layout.value}"
        elif not view.is_own_folder(partition):
            yield f"{name} is in {partition.location}, which is no folder of this partition"


def _is_spelled_right(view: TableView, partition: CatalogPartition) -> bool:
    try:
        view.layout.parse(partition.values)
    except ValueError:
        return False
    return True


def _file_problems(view: TableView) -> Iterator[str]:
    for one in view.sampled:
        for problem in file_problems(one):
            yield f"{view.named(one.partition.values)}: {problem}"


def file_problems(one: PartitionFiles) -> Iterator[str]:
    """Differences between the files of a partition and what was published."""
    partition, files = one.partition, one.files
    for file in files:
        if file.problem is not None:
            yield f"{file.name} cannot be read: {file.problem}"
    if len(files) != partition.files:
        yield f"{plural(len(files), 'file')} in its folder, {partition.files:,} published"
    elif (held := sum(file.bytes for file in files)) != partition.bytes:
        yield f"{plural(held, 'byte')} in its files, {partition.bytes:,} published"
    elif (rows := sum(file.rows for file in files)) != partition.rows and _all_read(one):
        yield f"{plural(rows, 'row')} in its files, {partition.rows:,} published"


def _all_read(one: PartitionFiles) -> bool:
    return all(file.problem is None for file in one.files)


def _row_problems(view: TableView) -> Iterator[str]:
    """The row count over all partitions, which the state has counted on its own."""
    registered = sum(partition.rows for partition in view.partitions)
    if registered != view.rows and not view.is_partial:
        rows = plural(registered, "row")
        yield f"the registered partitions have {rows}, {view.rows:,} were published"


_LATELY_AT_MOST = 500
_AT_ONCE = 12


@dataclass(frozen=True)
class ManifestHistory:
    """The state after all commits, including those that are not applied yet, and what is recent."""

    state: SourceState
    partitions: Partitions
    applied: int  # the last applied manifest
    changes: Changes  # of schemas, in the last day
    recent: int  # the first manifest of the last day; without one, the next

    def is_outdated(self, storage: Storage) -> bool:
        """Whether a run is publishing, or has published since the history was read."""
        following = paths.manifest(self.state.source_id, self.state.manifest + 1)
        return self.applied < self.state.manifest or storage.exists(following)


def read_history(lake: Lake, source_id: str, now: datetime) -> ManifestHistory:
    storage, partitions = lake.storage, Partitions(lake.storage, lake.catalog)
    state = read_state(storage, source_id)
    applied, since = state.manifest, now - LATELY
    while manifest := read_manifest(storage, source_id, state.manifest + 1):
        state, partitions = state.after(manifest), partitions.with_plan(manifest)
    # A day more than changes are reported: whether their tables were new then.
    read = list(_newest(storage, source_id, state.manifest, since - LATELY))
    recent = [one.number for one in read if made(one) >= since]
    first = min(recent, default=state.manifest + 1)
    return ManifestHistory(state, partitions, applied, changes_of(read, since), first)


def _newest(storage: Storage, source_id: str, last: int, since: datetime) -> Iterator[Manifest]:
    """The manifests since a timestamp, from the newest on."""
    numbers = range(last, max(0, last - _LATELY_AT_MOST), -1)
    for first in range(0, len(numbers), _AT_ONCE):
        some = numbers[first : first + _AT_ONCE]
        for manifest in storage.each(partial(read_manifest, storage, source_id), some):
            if manifest is None or made(manifest) < since:
                return
            yield manifest


_UPKEEP_INTERVAL = timedelta(days=1)
"""Work that became due within it is left to the next upkeep."""


def check_small_files(
    source: Source,
    schema: TableSchema,
    layout: DatePartition,
    partitions: Sequence[CatalogPartition],
    now: datetime,
    recent: int | None = None,
) -> CheckResult:
    """By the rule of compaction: upkeep compacts what is reported here.

    Partitions that a manifest from `recent` on has written wait for the next upkeep.
    """
    rule = source.compaction
    last_day = (now - timedelta(days=rule.after_days) - _UPKEEP_INTERVAL).date().isoformat()
    known = (
        (partition_day(layout.keys, p.values), Candidate(schema, p))
        for p in partitions
        if recent is None or p.version < recent
    )
    due = candidates(known, rule, last_day)
    files, held = sum(p.files for p in partitions), sum(p.bytes for p in partitions)
    problems = [
        f"{'/'.join(p.values)}: {plural(p.files, 'file')} of {size(p.bytes // p.files)} on average"
        for p in (one.partition for one in due)
    ]
    evidence = {
        "partitions": len(partitions),
        "files": files,
        "most_files_in_a_partition": max((p.files for p in partitions), default=0),
        "average_bytes": held // files if files else 0,
        "files_to_save": sum(one.saved for one in due),
    }
    return verdict(schema.key, "small_files", problems, evidence, _remedy(source))


def _remedy(source: Source) -> str:
    switched_on = "" if source.compaction.enabled else "Set `compaction.enabled: true`. "
    return (
        f"{switched_on}The job `upkeep_{source.name}` and `datalake upkeep --source {source.slug}` "
        "compact them: check that its schedule is on, and the logs of its runs."
    )

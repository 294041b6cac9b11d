"""Compacts the partitions of a source, unit by unit, and moves rewritten partitions home.

A rewrite puts a partition into a version folder, so that readers through the catalog see all of it
or nothing. People also read the documented folders, so the partition returns to its own after the
grace period. Each unit is one manifest; the next run completes what is interrupted after it.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field
from datetime import datetime, timedelta
from operator import add

import pyarrow as pa
from msgspec.structs import replace

from eventlake.catalog.base import partition_day
from eventlake.rules import paths
from eventlake.rules.errors import CheckFailed, CommitConflict
from eventlake.runs.clean_up import with_unused
from eventlake.runs.context import RunContext, now
from eventlake.runs.placement import Placer
from eventlake.runs.run import Run
from eventlake.runs.unit import Unit
from eventlake.state.manifest import Manifest, PartitionChange, RunKind, made_at
from eventlake.state.partitions import held_files
from eventlake.state.source_state import SourceState, partition_name
from eventlake.upkeep.candidates import Candidate, candidates, units, within
from eventlake.upkeep.rewrite import NotAsPublished, Rewritten, rewrite

THREADS = 2
_MB = 1_000_000

PartitionRef = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of a compaction."""

    partitions: int = 0
    rows: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0

    def __add__(self, other: "Compacted") -> "Compacted":
        return Compacted(*map(add, astuple(self), astuple(other)))


def to_compact(context: RunContext, state: SourceState, at: datetime) -> list[Candidate]:
    """The partitions that one run compacts, in order of saved files."""
    source, rule = context.source, context.source.compaction
    if not rule.enabled:
        return []
    schemas = list(state.tables_of(source).values())
    held = context.partitions.of_all(state, schemas)
    keys = source.date_partition.keys
    found = (
        (partition_day(keys, partition.values), Candidate(schema, partition))
        for schema in schemas
        for partition in held[schema.key]
    )
    last_day = (at - timedelta(days=rule.after_days)).date().isoformat()
    return list(within(candidates(found, rule, last_day), rule.run_mb * _MB))


def compact(run: Run, at: datetime) -> Iterator[Compacted]:
    """Merge the small files of past days; yields each unit when it is committed."""
    for chosen in units(to_compact(run.context, run.state, at)):
        with run.lease("compaction"):
            done = _Unit(run, chosen).publish()
        if done.partitions:
            yield done


@dataclass
class _Unit:
    """Partitions that are compacted by one commit."""

    run: Run
    chosen: list[Candidate]
    rewritten: dict[PartitionRef, Rewritten] = field(default_factory=dict)
    refused: set[PartitionRef] = field(default_factory=set)
    placer: Placer = field(init=False)

    def __post_init__(self) -> None:
        context = self.run.context
        number, self.run.attempts = self.run.attempts, self.run.attempts + 1
        unit = Unit(number, "compaction", ())
        self.placer = Placer(context.source.id, context.run_id, unit)

    def publish(self) -> Compacted:
        """Commit on top of concurrent commits; a partition that they changed is left to another
        run."""
        while True:
            state = self.run.catch_up()
            same = self._unchanged(state)
            self._rewrite(one for one in same if one.place not in self.rewritten)
            done = [self.rewritten[one.place] for one in same if one.place in self.rewritten]
            if not done:
                return Compacted()
            try:
                self.run.commit(self._manifest(state, done))
            except CommitConflict as conflict:
                self.run.context.listener.log(str(conflict))
                continue
            return sum(map(_counted, done), Compacted())

    def _unchanged(self, state: SourceState) -> list[Candidate]:
        """The partitions that have not changed since they were selected."""
        context, by_table = self.run.context, dict[str, list[Candidate]]()
        for one in self.chosen:
            by_table.setdefault(one.schema.key, []).append(one)
        keys = context.source.date_partition.keys

        def still_there(mine: list[Candidate]) -> list[Candidate]:
            schema = mine[0].schema
            days = [partition_day(keys, one.partition.values) for one in mine]
            span = min(days), max(days)
            held = context.partitions.of(state, schema, span)
            known = {partition.values: partition for partition in held}
            return [one for one in mine if known.get(one.partition.values) == one.partition]

        found = context.storage.each(still_there, list(by_table.values()))
        return [one for mine in found for one in mine]

    def _rewrite(self, todo: Iterable[Candidate]) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            wanted = (one for one in todo if one.place not in self.refused)
            for one in pool.map(self._rewritten, wanted):
                if one is not None:
                    self.rewritten[one.candidate.place] = one

    def _rewritten(self, one: Candidate) -> Rewritten | None:
        context = self.run.context
        partition = context.source.date_partition
        # The current schema: it may have new columns since the partition was selected.
        schema = self.run.state.tables[one.schema.key]
        path = partition.path(partition.parse(one.partition.values))
        folder = self.placer.version_folder(schema, path)
        try:
            current = Candidate(schema, one.partition)
            return rewrite(context.storage, context.source, current, folder, self.placer.file_stem)
        except (NotAsPublished, CheckFailed, pa.ArrowInvalid) as error:
            context.listener.warn(f"{schema.key} {path} is not compacted. {error}")
            context.storage.delete_folder(folder)
            self.refused.add(one.place)
            return None

    def _manifest(self, state: SourceState, done: list[Rewritten]) -> Manifest:
        source = self.run.context.source
        manifest = replace(
            state.next_manifest(source, RunKind.UPKEEP, self.run.context.facts),
            partitions=tuple(one.change() for one in done),
            shadows=tuple(_shadows(state, done)),
        )
        return with_unused(state, manifest, now())


def _shadows(state: SourceState, done: Iterable[Rewritten]) -> Iterator[PartitionChange]:
    """Shadows keep their content and stay with their partitions."""
    for one in done:
        key, before = one.candidate.schema.key, one.candidate.partition
        held = state.shadows.get(key, {}).get(partition_name(before.values))
        if held is not None and held.version == before.version:
            yield PartitionChange.whole(key, held)


def _counted(one: Rewritten) -> Compacted:
    before, after = one.candidate.partition, one.change()
    return Compacted(1, after.rows, before.files, after.files, before.bytes, after.bytes)


PER_LEASE = 20
"""Partitions moved per lease; then waiting runs may take the lease."""


def away(context: RunContext, state: SourceState, at: datetime) -> list[Candidate]:
    """Partitions that have been in a version folder for longer than the grace period."""
    before = at - timedelta(hours=context.source.retention.replaced_hours)
    schemas = {
        key: schema
        for key, schema in state.tables.items()
        if schema.owns_folder and key not in state.shadows
    }
    found = [
        Candidate(schemas[key], partition)
        for key, held in context.partitions.of_all(state, schemas.values()).items()
        for partition in held
        if paths.is_version_folder(partition.location)
    ]
    numbers = sorted({one.partition.version for one in found})
    times = context.storage.each(
        lambda number: made_at(context.storage, state.source_id, number), numbers
    )
    due = {n for n, made in zip(numbers, times, strict=True) if made is None or made < before}
    return [one for one in found if one.partition.version in due]


def bring_home(run: Run, at: datetime) -> Iterator[Candidate]:
    """Move partitions home, each by its own commit; yields each when it is done."""
    due = away(run.context, run.catch_up(), at)
    for first in range(0, len(due), PER_LEASE):
        with run.lease("bringing partitions home"):
            run.attempts += 1
            for one in due[first : first + PER_LEASE]:
                if _brought(run, one):
                    yield one


def _brought(run: Run, one: Candidate) -> bool:
    while True:
        state = run.catch_up()
        change = _change(run.context, state, one)
        if change is None:
            return False
        source, facts = run.context.source, run.context.facts
        manifest = state.next_manifest(source, RunKind.UPKEEP, facts)
        try:
            run.commit(with_unused(state, replace(manifest, partitions=(change,)), now()))
        except CommitConflict as conflict:
            run.context.listener.log(str(conflict))
            continue
        return True


def _change(context: RunContext, state: SourceState, one: Candidate) -> PartitionChange | None:
    """The change for the manifest; None if the partition has changed, or cannot move home."""
    key, partition, storage = one.schema.key, one.partition, context.storage
    day = partition_day(state.page_table(key).keys, partition.values)
    if partition not in context.partitions.of(state, one.schema, (day, day)):
        return None
    home = state.home(key, partition.values)
    if {*held_files(storage, partition.location)} != {*partition.held}:
        context.listener.warn(
            f"{storage.full(partition.location)} does not hold the files that were published. The "
            "partition stays there: `datalake check --tables` names the difference."
        )
        return None
    there = [file.name for file in storage.files(home, recursive=False)]
    if foreign := [name for name in there if not paths.is_own_file(name)]:
        context.listener.warn(
            f"{storage.full(home)} holds files of others ({foreign[0]}), so its partition stays in "
            f"{storage.full(partition.location)}. Move them elsewhere."
        )
        return None
    names = {file.name for file in partition.held}
    cleared = tuple(name for name in there if name not in names)
    whole = PartitionChange.whole(key, replace(partition, location=home), partition.location)
    return replace(whole, cleared=cleared)

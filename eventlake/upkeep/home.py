"""Brings partitions home: from version folders to the folders that are documented for them.

A rewrite puts a partition into a version folder, so that readers through the catalog see all of it
or nothing. People also read the documented folders, so the partition returns to its own after the
grace period. The commit says which files change places; whatever is interrupted after it, the next
run completes.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from eventlake.catalog.base import partition_day
from eventlake.rules import paths
from eventlake.rules.errors import CommitConflict
from eventlake.runs.clean_up import with_unused
from eventlake.runs.context import RunContext, now
from eventlake.runs.run import Run
from eventlake.state.manifest import PartitionChange, RunKind, made_at
from eventlake.state.partitions import held_files
from eventlake.state.source_state import SourceState
from eventlake.upkeep.candidates import Candidate

PER_LEASE = 20
"""Partitions that come home before waiting runs have their turn."""


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
    """Bring partitions home, each by a commit of its own; yields each when it is there."""
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
    """What a manifest says of it; None if it has changed, or cannot come home."""
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

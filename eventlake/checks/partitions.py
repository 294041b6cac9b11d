"""Partitions: what was published is registered, and nothing else; its files are there."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial

from eventlake.catalog.base import CatalogPartition, partition_day
from eventlake.checks.drift import LATELY, Changes, changes_of, made
from eventlake.checks.view import LookedInto, Promise, TableView, Values, sample, turn_of, verdict
from eventlake.rules import paths
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import TableSchema
from eventlake.runs.verify import CheckResult
from eventlake.settings.models import Source
from eventlake.state.manifest import Manifest, read_manifest, read_pruned
from eventlake.state.source_state import SourceState, read_state
from eventlake.storage import Storage
from eventlake.upkeep.candidates import Candidate, candidates

_REMEDY = (
    "`datalake recover --catalog` registers again what was published. A file that is lost or "
    "damaged comes back by a replay of its day; `datalake audit` tells which rows are concerned."
)


def check_partitions(view: TableView) -> CheckResult:
    problems = [*_unregistered(view), *_unwanted(view), *_file_problems(view), *_row_problems(view)]
    files = [file for one in view.looked_into for file in one.files]
    evidence = {
        "partitions": len(view.partitions),
        "looked_into": len(view.looked_into),
        "all_looked_into_after_days": view.turns,
        "files_read": len(files),
        "rows_registered": sum(partition.rows for partition in view.partitions),
        **({} if view.is_partial else {"rows_published": view.rows}),
    }
    return verdict(view.schema.key, "partitions", problems, evidence, _REMEDY)


def _unregistered(view: TableView) -> Iterator[str]:
    """Manifests that the catalog does not follow."""
    for values, promise in view.promises.items():
        found, name = view.registered.get(values), view.named(values)
        if found is None:
            # Of one that was dropped at some time the manifests not read may have the last word.
            if not promise.change.dropped and values not in view.dropped:
                yield f"{name} is not registered ({_said(promise)})"
        elif found.version < promise.manifest:
            yield f"{name} is registered as manifest {found.version} left it ({_said(promise)})"
        elif found.version == promise.manifest and _differs(found, promise):
            there = f"{found.location}, {found.files} files, {found.rows} rows"
            yield f"{name} is registered with {there} ({_said(promise)})"


def _differs(found: CatalogPartition, promise: Promise) -> bool:
    said = promise.change
    told = (found.location, found.files, found.rows, found.bytes)
    return said.dropped or told != (said.location, said.files, said.rows, said.bytes)


def _said(promise: Promise) -> str:
    change = promise.change
    what = (
        "dropped it"
        if change.dropped
        else f"put it into {change.location}, {change.files} files, {change.rows} rows"
    )
    return f"run {promise.run_id}, manifest {promise.manifest}, {what}"


def _unwanted(view: TableView) -> Iterator[str]:
    """Partitions that no manifest has put there."""
    for partition in view.partitions:
        name = view.named(partition.values)
        if not 0 < partition.version <= view.manifest:
            yield f"{name} was registered by somebody else"
        elif not _is_spelled_right(view, partition):
            yield f"{name} is not spelled like a partition of {view.layout.value}"
        elif not view.is_place_of_ours(partition.location):
            yield f"{name} lies in {partition.location}, which is no place of the table"


def _is_spelled_right(view: TableView, partition: CatalogPartition) -> bool:
    try:
        view.layout.parse(partition.values)
    except ValueError:
        return False
    return True


def _file_problems(view: TableView) -> Iterator[str]:
    for one in view.looked_into:
        for problem in file_problems(one):
            yield f"{view.named(one.partition.values)}: {problem}"


def file_problems(one: LookedInto) -> Iterator[str]:
    """Where the files of a partition are not those that were published."""
    partition, files = one.partition, one.files
    for file in files:
        if file.problem is not None:
            yield f"{file.name} cannot be read: {file.problem}"
    if len(files) != partition.files:
        yield f"{len(files)} files in its folder, {partition.files} published"
    elif (held := sum(file.bytes for file in files)) != partition.bytes:
        yield f"{held} bytes in its files, {partition.bytes} published"
    elif (rows := sum(file.rows for file in files)) != partition.rows and _all_read(one):
        yield f"{rows} rows in its files, {partition.rows} published"


def _all_read(one: LookedInto) -> bool:
    return all(file.problem is None for file in one.files)


def _row_problems(view: TableView) -> Iterator[str]:
    """What the sum over all partitions tells also of those that no manifest just read named."""
    registered = sum(partition.rows for partition in view.partitions)
    if registered != view.rows and not view.is_partial:
        yield f"the registered partitions have {registered} rows, {view.rows} were published"


_READ = 60
"""Manifests in one run of the checks: the newest half are two days of syncs, and some more."""
_LATELY_AT_MOST = 500
_AT_ONCE = 12


def promises_of(manifests: Iterable[Manifest]) -> dict[str, dict[Values, Promise]]:
    """The last entry for each partition, by key of the table."""
    promises: dict[str, dict[Values, Promise]] = {}
    for manifest in manifests:
        for change in manifest.partitions:
            promise = Promise(manifest.number, manifest.run_id, change)
            promises.setdefault(change.table, {})[change.values] = promise
    return promises


@dataclass(frozen=True)
class Story:
    """The state after all commits, also those whose actions are not all done yet."""

    state: SourceState
    applied: int  # up to here they are
    manifests: tuple[Manifest, ...]  # that were read, oldest first
    changes: Changes  # to schemas, lately
    recent: int  # the first manifest of the last day; without one, the next

    @cached_property
    def promises(self) -> dict[str, dict[Values, Promise]]:
        return promises_of(self.manifests)

    def goes_on(self, storage: Storage) -> bool:
        """Whether somebody publishes, or has since it was read."""
        following = paths.manifest(self.state.source_id, self.state.manifest + 1)
        return self.applied < self.state.manifest or storage.exists(following)


def read_story(storage: Storage, source_id: str, now: datetime) -> Story:
    state = read_state(storage, source_id)
    applied, since = state.manifest, now - LATELY
    while manifest := read_manifest(storage, source_id, state.manifest + 1):
        state = state.after(manifest)
    # A day more than changes are reported: whether their tables were new then.
    read = {one.number: one for one in _newest(storage, source_id, state.manifest, since - LATELY)}
    kept = range(read_pruned(storage, source_id) + 1, state.manifest + 1)
    due = [number for number in sample(kept, _READ, turn_of(now)) if number not in read]
    for found in storage.each(lambda number: read_manifest(storage, source_id, number), due):
        if found is not None:
            read[found.number] = found
    manifests = tuple(read[number] for number in sorted(read))
    recent = [one.number for one in manifests if made(one) >= since]
    first = min(recent, default=state.manifest + 1)
    return Story(state, applied, manifests, changes_of(manifests, since), first)


def _newest(storage: Storage, source_id: str, last: int, since: datetime) -> Iterator[Manifest]:
    """From the last one back, as far as they were made since a moment."""
    numbers = range(last, max(0, last - _LATELY_AT_MOST), -1)
    for first in range(0, len(numbers), _AT_ONCE):
        some = numbers[first : first + _AT_ONCE]
        for manifest in storage.each(partial(read_manifest, storage, source_id), some):
            if manifest is None or made(manifest) < since:
                return
            yield manifest


_ITS_TURN = timedelta(days=1)
"""What became due within it the next upkeep still has to do."""


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
    last_day = (now - timedelta(days=rule.after_days) - _ITS_TURN).date().isoformat()
    known = (
        (partition_day(layout.keys, p.values), Candidate(schema, p))
        for p in partitions
        if recent is None or p.version < recent
    )
    due = candidates(known, rule, last_day)
    files, held = sum(p.files for p in partitions), sum(p.bytes for p in partitions)
    problems = [
        f"{'/'.join(p.values)}: {p.files} files of {p.bytes // p.files:,} bytes on average"
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
        "compact them: see whether its schedule is on, and what its runs say."
    )

"""What the manifests of a source say: all of them added up, and some of them word by word."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from eventlake.checking.sample import sample, turn_of
from eventlake.checking.schema_change import LATELY, Changes, changes_of, first_run, made
from eventlake.checking.view import Promise, Values
from eventlake.rules import paths
from eventlake.state.manifest import Manifest, read_manifest, read_pruned
from eventlake.state.source_state import SourceState, read_state
from eventlake.storage import Storage

_READ = 60
"""Manifests in one run of the checks: the newest half are two days of syncs, and some more."""
_LATELY_AT_MOST = 500


@dataclass(frozen=True)
class Story:
    """The state after all commits, also those whose actions are not all done yet."""

    state: SourceState
    applied: int  # up to here they are
    manifests: tuple[Manifest, ...]  # that were read, oldest first
    changes: Changes  # to schemas, lately

    @cached_property
    def promises(self) -> dict[str, dict[Values, Promise]]:
        """What was last said about partitions, by key of the table."""
        said: dict[str, dict[Values, Promise]] = {}
        for manifest in self.manifests:
            for change in manifest.partitions:
                promise = Promise(manifest.number, manifest.run_id, change)
                said.setdefault(change.table, {})[change.values] = promise
        return said

    def goes_on(self, storage: Storage) -> bool:
        """Whether somebody publishes, or has since it was read."""
        following = paths.manifest(self.state.source_id, self.state.manifest + 1)
        return self.applied < self.state.manifest or storage.exists(following)


def read_story(storage: Storage, source_id: str, now: datetime) -> Story:
    state = read_state(storage, source_id)
    applied, since = state.manifest, now - LATELY
    while manifest := read_manifest(storage, source_id, state.manifest + 1):
        state = state.after(manifest)
    read = {one.number: one for one in _newest(storage, source_id, state.manifest, since)}
    kept = range(read_pruned(storage, source_id) + 1, state.manifest + 1)
    due = [number for number in sample(kept, _READ, turn_of(now)) if number not in read]
    for found in storage.each(lambda number: read_manifest(storage, source_id, number), due):
        if found is not None:
            read[found.number] = found
    manifests = tuple(read[number] for number in sorted(read))
    changes = changes_of(manifests, since, first_run(storage, source_id))
    return Story(state, applied, manifests, changes)


def _newest(storage: Storage, source_id: str, last: int, since: datetime) -> Iterator[Manifest]:
    """From the last one back, as far as they were made since a moment."""
    for number in range(last, max(0, last - _LATELY_AT_MOST), -1):
        manifest = read_manifest(storage, source_id, number)
        if manifest is None or made(manifest) < since:
            return
        yield manifest

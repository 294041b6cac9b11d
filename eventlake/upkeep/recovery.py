"""Completes what a crashed run left unfinished."""

from dataclasses import dataclass
from datetime import datetime

from eventlake.lake import Lake
from eventlake.runs.clean_up import CleanUp, clean_up
from eventlake.runs.dead_runs import close_dead_runs
from eventlake.runs.publish import catch_up
from eventlake.settings.models import Source
from eventlake.state.lease import Lease, read_lease, remove_dead_lease
from eventlake.state.source_state import read_state

_AS_LONG_AS_IT_TAKES = float("inf")


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was recovered for a source, and the current lease."""

    source: Source
    applied: tuple[int, ...]  # manifests that were committed, but not applied
    closed: tuple[str, ...]  # runs without a report
    freed: Lease | None  # the lease of a crashed holder
    cleaned: CleanUp
    at_work: Lease | None

    def __bool__(self) -> bool:
        return bool(self.applied or self.closed or self.freed or self.cleaned)


def recover(lake: Lake, source: Source, now: datetime) -> Recovery:
    """Apply committed manifests, close crashed runs and remove what is not needed.

    Running processes are not affected. Idempotent.
    """
    lake = lake.for_source(source)
    storage, catalog = lake.storage, lake.catalog
    before = read_state(storage, source.id).manifest
    state = catch_up(storage, catalog, source.id)
    applied = tuple(range(before + 1, state.manifest + 1))
    closed = close_dead_runs(storage, catalog, source.id, now)
    state = read_state(storage, source.id)
    freed = remove_dead_lease(storage, source.id)
    cleaned = clean_up(storage, catalog, source, state, now, _AS_LONG_AS_IT_TAKES)
    return Recovery(
        source=source,
        applied=applied,
        closed=tuple(closed),
        freed=freed,
        cleaned=cleaned,
        at_work=read_lease(storage, source.id),
    )

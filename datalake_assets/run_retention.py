"""Dagster's own memory: runs that are long over go, but for the last word on any partition."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import dagster as dg
from dagster._core.storage.dagster_run import FINISHED_STATUSES

PAGE = 100
MOST_RUNS = 2_000
"""Looked at in one go; what is left over waits for the next day."""


@dataclass(frozen=True, slots=True)
class RunsRemoved:
    """How many runs were old enough, how many went, and how many stay for their partitions."""

    old: int = 0
    removed: int = 0

    @property
    def kept(self) -> int:
        return self.old - self.removed


@dataclass
class _Latest:
    """The runs in which partitions of an asset were last materialized: asked once for each asset.

    By run and not by the number of an event: on SQLite a run's own events have other numbers.
    """

    instance: dg.DagsterInstance
    known: dict[dg.AssetKey, frozenset[str]] = field(default_factory=dict)

    def runs(self, key: dg.AssetKey) -> frozenset[str]:
        if key not in self.known:
            self.known[key] = frozenset(self._runs(key))
        return self.known[key]

    def _runs(self, key: dg.AssetKey) -> Iterator[str]:
        found = self.instance.event_log_storage.get_latest_storage_id_by_partition(
            key, dg.DagsterEventType.ASSET_MATERIALIZATION
        )
        ids = sorted(found.values())
        for first in range(0, len(ids), PAGE):
            some = dg.AssetRecordsFilter(key, storage_ids=ids[first : first + PAGE])
            for record in self.instance.fetch_materializations(some, limit=PAGE).records:
                yield record.run_id
        # And the last of all, which has no partition if the asset has none.
        for record in self.instance.fetch_materializations(key, limit=1).records:
            yield record.run_id


def remove_old_runs(
    instance: dg.DagsterInstance, before: datetime, dry: bool = False, most: int = MOST_RUNS
) -> RunsRemoved:
    """Delete finished runs that began before a moment, unless an asset would lose its last word."""
    latest, old, removed = _Latest(instance), 0, 0
    for run_id in _old_runs(instance, before, most):
        old += 1
        if _is_needed(instance, run_id, latest):
            continue
        removed += 1
        if not dry:
            _delete(instance, run_id)
    return RunsRemoved(old, removed)


def _old_runs(instance: dg.DagsterInstance, before: datetime, most: int) -> Iterator[str]:
    """The oldest first; listed before any goes, since a cursor is a run."""
    chosen = dg.RunsFilter(statuses=FINISHED_STATUSES, created_before=before)
    found: list[str] = []
    cursor: str | None = None
    while len(found) < most:
        page = instance.get_run_records(chosen, limit=PAGE, ascending=True, cursor=cursor)
        found += [record.dagster_run.run_id for record in page]
        if len(page) < PAGE:
            break
        cursor = found[-1]
    yield from found[:most]


def _is_needed(instance: dg.DagsterInstance, run_id: str, latest: _Latest) -> bool:
    cursor: str | None = None
    while True:
        page = instance.get_records_for_run(
            run_id, cursor, dg.DagsterEventType.ASSET_MATERIALIZATION, limit=1_000
        )
        for record in page.records:
            event = record.event_log_entry.dagster_event
            if event and event.asset_key and run_id in latest.runs(event.asset_key):
                return True
        if not page.has_more:
            return False
        cursor = page.cursor


def _delete(instance: dg.DagsterInstance, run_id: str) -> None:
    instance.delete_run(run_id)
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    # On SQLite each run has a database of its own, which Dagster empties and leaves there.
    shard = getattr(instance.event_log_storage, "path_for_shard", None)
    if shard is not None:
        for path in Path(shard(run_id)).parent.glob(f"{run_id}.db*"):
            path.unlink(missing_ok=True)

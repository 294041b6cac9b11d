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
    """The last materialization of each partition, by asset: one question for each asset."""

    instance: dg.DagsterInstance
    known: dict[dg.AssetKey, dict[str, int]] = field(default_factory=dict)

    def is_latest(self, key: dg.AssetKey, partition: str | None, storage_id: int) -> bool:
        if partition is None:
            [*last] = self.instance.fetch_materializations(key, limit=1).records
            return [record.storage_id for record in last] == [storage_id]
        if key not in self.known:
            found = self.instance.event_log_storage.get_latest_storage_id_by_partition(
                key, dg.DagsterEventType.ASSET_MATERIALIZATION
            )
            self.known[key] = dict(found)
        return self.known[key].get(partition) == storage_id


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
            key = event.asset_key if event else None
            if event and key and latest.is_latest(key, event.partition, record.storage_id):
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

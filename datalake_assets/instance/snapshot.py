"""The known tables, stored beside Dagster's own files: loading code needs no remote request.

The snapshot only grows: a queued run must still find its tables when it starts.
"""

import os
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import msgspec

from eventlake.lake import Lake
from eventlake.rules.errors import LakeError
from eventlake.rules.types import TableSchema
from eventlake.settings.models import Source
from eventlake.state.source_state import SourceState, read_state
from eventlake.storage import LocalStorage
from eventlake.storage.documents import decode, encode


class SourceSnapshot(msgspec.Struct, frozen=True):
    """The first day of a source and its tables, by name in the catalog."""

    start: str | None = None
    tables: dict[str, TableSchema] = {}

    @property
    def first_day(self) -> date | None:
        return None if self.start is None else date.fromisoformat(self.start)

    def tables_of(self, source: Source) -> list[TableSchema]:
        """The tables that the source writes now, with its current database, prefix and skips."""
        return [
            schema
            for schema in self.tables.values()
            if schema.database == source.database
            and schema.name == source.catalog_table(schema.table)
            and not source.skips(schema.table)
        ]


class Snapshot(msgspec.Struct, frozen=True):
    """The sources of one lake, by id."""

    sources: dict[str, SourceSnapshot] = {}

    def of(self, source_id: str) -> SourceSnapshot:
        return self.sources.get(source_id, SourceSnapshot())

    def with_states(self, states: Iterable[SourceState]) -> "Snapshot":
        """The same with the additional tables of some states."""
        sources = dict(self.sources)
        for state in states:
            old = self.of(state.source_id)
            sources[state.source_id] = SourceSnapshot(
                state.start or old.start, old.tables | state.tables
            )
        return Snapshot(sources)


def grown(snapshot: Snapshot, other: Snapshot) -> Snapshot:
    """A snapshot with the additional tables of another."""
    both = dict(snapshot.sources)
    for id, theirs in other.sources.items():
        ours = snapshot.of(id)
        both[id] = SourceSnapshot(theirs.start or ours.start, ours.tables | theirs.tables)
    return Snapshot(both)


def snapshot_path(lake: Lake) -> Path | None:
    """The path of the local copy; None if Dagster has no home."""
    home = os.environ.get("DAGSTER_HOME")
    if not home:
        return None
    name = lake.settings.storage_uri.replace("://", "_").strip("/").replace("/", "_")
    return Path(home) / "datalake" / f"{name[-150:]}.json"


def local_snapshot(lake: Lake) -> Snapshot | None:
    """The local copy, if there is one."""
    path = snapshot_path(lake)
    if path is None or not path.exists():
        return None
    return decode(path.read_bytes(), Snapshot, str(path))


def read_snapshot(lake: Lake) -> Snapshot:
    """The local copy, else the tables of the lake, else (on failure) an empty snapshot."""
    return local_snapshot(lake) or Snapshot().with_states(lake_states(lake))


def refresh_snapshot(lake: Lake) -> bool:
    """Update the local copy from the lake; returns whether it has grown."""
    path = snapshot_path(lake)
    before = read_snapshot(lake)
    after = before.with_states(lake_states(lake))
    if path is None or (after == before and path.exists()):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    LocalStorage(str(path.parent)).write(path.name, encode(after))
    return after != before


def lake_states(lake: Lake) -> list[SourceState]:
    """What the lake knows of its sources; nothing if it cannot be read."""
    try:
        return [
            read_state(lake.for_source(source).storage, source.id)
            for source in lake.settings.sources
        ]
    except (LakeError, OSError):
        return []

"""The state of a source: the sum of its manifests, and when the source was first seen."""

from datetime import datetime, timedelta

import msgspec

from eventlake.catalog.base import CatalogPartition
from eventlake.catalog.pages import PageTable
from eventlake.rules import paths
from eventlake.rules.errors import Problem, SettingsError, StateError
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import LakeType, TableSchema
from eventlake.settings.models import Source
from eventlake.state.manifest import IndexFile, Manifest, RunKind
from eventlake.state.replays import DoneDay, Replays
from eventlake.state.report import RunFacts
from eventlake.storage import Storage
from eventlake.storage.documents import decode, decode_note, encode


class Layout(msgspec.Struct, frozen=True):
    """Settings that cannot change for existing tables."""

    date_partition: str
    naming: str


Shadows = dict[str, CatalogPartition]
"""Shadow files by partition: the same rows in the requested types, not visible to readers until a
replay switches the table; with the manifest that last changed both."""


class SourceState(msgspec.Struct, frozen=True):
    """The sum of all manifests up to number `manifest`, without the ledger."""

    source_id: str
    manifest: int = 0
    start: str | None = None
    tables: dict[str, TableSchema] = {}  # by name in the catalog: database.table
    layouts: dict[str, Layout] = {}  # settings of the tables at creation
    rows: dict[str, int] = {}  # of the tables
    dropped: dict[str, set[tuple[str, ...]]] = {}  # partitions that were dropped once
    index: dict[str, tuple[IndexFile, ...]] = {}  # by received day
    index_from: str | None = None  # earlier days without an index may have rows
    requested_types: dict[str, dict[str, LakeType]] = msgspec.field(
        default_factory=dict, name="wishes"
    )  # by table and column
    shadows: dict[str, Shadows] = {}  # tables whose switch to the requested types is in progress
    replays: Replays = Replays()
    retyped: dict[str, int] = {}  # the manifest that last changed types of a table
    freed: dict[str, int] = {}  # by day, copies of removed rows that a replay would load
    paged: bool = False  # whether the pages have its partitions (see `eventlake.state.partitions`)

    def page_table(self, key: str) -> PageTable:
        """The pages of a table."""
        schema, layout = self.tables[key], DatePartition(self.layouts[key].date_partition)
        return PageTable(schema.database, schema.name, layout.keys, self.retyped.get(key, 0))

    def home(self, key: str, values: tuple[str, ...]) -> str:
        """The documented folder of a partition."""
        layout = DatePartition(self.layouts[key].date_partition)
        path = layout.path(layout.parse(values))
        return paths.partition_folder(self.source_id, self.tables[key].table, path)

    def tables_of(self, source: Source) -> dict[str, TableSchema]:
        """The tables with the current database and prefix of the source, by table."""
        return {
            schema.table: schema
            for schema in self.tables.values()
            if schema.database == source.database
            and schema.name == source.catalog_table(schema.table)
        }

    def tables_elsewhere(self, source: Source) -> str | None:
        """A message if slug, database or prefix changed after tables were created."""
        if not self.tables or self.tables_of(source):
            return None
        databases = ", ".join(sorted({schema.database for schema in self.tables.values()}))
        prefix = f" with table_prefix {source.table_prefix}" if source.table_prefix else ""
        return (
            f"its tables ({len(self.tables)}) are in database {databases} and stay there; from now "
            f"on syncs write to new tables in {source.database}{prefix}. To stay with them, set "
            "`database` and `table_prefix` back; to fill the new ones, replay"
        )

    def next_manifest(self, source: Source, kind: RunKind, run: RunFacts) -> Manifest:
        """The next manifest, without changes."""
        return Manifest(
            number=self.manifest + 1,
            source_id=source.id,
            kind=kind,
            run=run,
            date_partition=source.date_partition,
            naming=source.naming,
        )

    def after(self, manifest: Manifest) -> "SourceState":
        """The state after a manifest; unchanged if it was applied before."""
        if manifest.number <= self.manifest:
            return self
        index = {d: f for d, f in self.index.items() if d not in manifest.index_days_replaced}
        for file in manifest.index_added:
            index[file.day] = (*index.get(file.day, ()), file)
        layout = Layout(manifest.date_partition, manifest.naming)
        rows, dropped = dict(self.rows), dict(self.dropped)
        for change in manifest.partitions:
            rows[change.table] = rows.get(change.table, 0) + change.rows - change.rows_before
            if change.dropped:
                dropped[change.table] = dropped.get(change.table, set()) | {change.values}
        return SourceState(
            source_id=self.source_id,
            manifest=manifest.number,
            start=self.start or manifest.start,
            tables=self.tables | {table.key: table for table in manifest.tables},
            layouts=dict.fromkeys((table.key for table in manifest.tables), layout) | self.layouts,
            rows=rows,
            dropped=dropped,
            index=index,
            index_from=max(filter(None, (self.index_from, manifest.index_from)), default=None),
            requested_types=_requested_types(self.requested_types, manifest),
            shadows=_shadows(self.shadows, manifest),
            replays=self.replays.after(
                manifest.replay,
                DoneDay(manifest.number, manifest.run_id),
                finished=manifest.finish_time is not None,
            ),
            retyped=self.retyped | dict.fromkeys(manifest.retyped, manifest.number),
            paged=self.paged,
            freed=_freed(self.freed, manifest),
        )


def _freed(known: dict[str, int], manifest: Manifest) -> dict[str, int]:
    """The copies that wait for a replay of all tables of their day."""
    step = manifest.replay
    done = step.days if step and step.replay.tables is None else {}
    waiting = {day: copies for day, copies in known.items() if not done.get(day)}
    return waiting | {d: waiting.get(d, 0) + copies for d, copies in manifest.freed.items()}


def _requested_types(
    known: dict[str, dict[str, LakeType]], manifest: Manifest
) -> dict[str, dict[str, LakeType]]:
    requested = {table: types for table, types in known.items() if table not in manifest.retyped}
    for one in manifest.requested_types:
        types = {c: t for c, t in requested.pop(one.table, {}).items() if c != one.column}
        if one.type is not None:
            types[one.column] = one.type
        if types:
            requested[one.table] = types
    return requested


def _shadows(known: dict[str, Shadows], manifest: Manifest) -> dict[str, Shadows]:
    """Shadows stay valid only for unchanged partitions, and for the current requests."""
    over = {*manifest.retyped, *(request.table for request in manifest.requested_types)}
    shadows = {table: dict(held) for table, held in known.items() if table not in over}
    for table in manifest.switching:
        shadows.setdefault(table, {})
    for change in manifest.partitions:
        shadows.get(change.table, {}).pop(partition_name(change.values), None)
    for shadow in manifest.shadows:
        if (partition := shadow.partition(manifest.number)) is not None:
            shadows[shadow.table][partition_name(shadow.values)] = partition
    return shadows


def partition_name(values: tuple[str, ...]) -> str:
    return "/".join(values)


def read_state(storage: Storage, source_id: str) -> SourceState:
    """The state, empty for a new source. It is written after each commit, before the next."""
    path = paths.state_file(source_id)
    data = storage.read(path)
    if data is not None:
        return decode(data, SourceState, path)
    manifests = storage.files(paths.manifests(source_id), recursive=False)
    if any(file.path != paths.manifest(source_id, 1) for file in manifests):
        raise lost_state(source_id)
    return SourceState(source_id, paged=True)


def lost_state(source_id: str) -> StateError:
    return StateError(
        f"{paths.state_file(source_id)} is missing, but its source has data. Restore the file from "
        "a backup, or make the state again from the data files: `datalake recover --from-data`."
    )


class _Reached(msgspec.Struct, frozen=True):
    """The number of the last manifest in a state, without decoding the rest."""

    manifest: int = 0


def write_state(storage: Storage, state: SourceState) -> None:
    """Write the state unless a newer one has been written."""
    path = paths.state_file(state.source_id)

    def newest(data: bytes | None) -> bytes | None:
        known = 0 if data is None else decode(data, _Reached, path).manifest
        return encode(state) if known <= state.manifest else None

    storage.update(path, newest)


INVALID_PARTITIONS = (
    "The Table Partitions configuration for this Data Lake is invalid. The field name does not "
    "appear to map to the data being processed, which likely means it is misconfigured."
)


def refuse_changed_layout(source: Source, state: SourceState) -> None:
    """Raise if layout or naming changed: tables keep those they were created with."""
    tables = state.tables_of(source).values()
    if not tables:
        return
    made_with = state.layouts[next(iter(tables)).key]
    changed = [
        Problem(
            f"sources[{source.slug}].{name}",
            f"{now!r}, but its tables in database {source.database!r} were made with {then!r}",
            f"set it back to {then!r}, or give the source a new `database` or `table_prefix` "
            "and replay into it",
        )
        for name, then, now in (
            ("date_partition", made_with.date_partition, source.date_partition.value),
            ("naming", made_with.naming, source.naming.value),
        )
        if then != now
    ]
    if changed:
        partitions = any(problem.place.endswith("date_partition") for problem in changed)
        naming = f"The naming configuration of source {source.slug!r} is invalid."
        raise SettingsError(INVALID_PARTITIONS if partitions else naming, changed)


class FirstSeen(msgspec.Struct, frozen=True):
    at: datetime


def read_first_seen(storage: Storage, source_id: str) -> datetime | None:
    """The recorded time; None if the source was not seen yet."""
    return _at(storage.read(paths.first_seen(source_id)), source_id)


def note_first_seen(storage: Storage, source_id: str, now: datetime) -> datetime:
    """The recorded time; records the current time if there is none.

    A time in the future, from a wrong clock, is corrected: the source would wait for it.
    """
    known = read_first_seen(storage, source_id)
    if known is not None and known <= now:
        return known

    def noted(data: bytes | None) -> bytes | None:
        nonlocal known
        known = _at(data, source_id)
        return encode(FirstSeen(now)) if known is None or known > now else None

    storage.update(paths.first_seen(source_id), noted)
    return now if known is None or known > now else known


def _at(data: bytes | None, source_id: str) -> datetime | None:
    note = decode_note(data, FirstSeen, paths.first_seen(source_id))
    return note.at if note else None


def first_sync_due(storage: Storage, source: Source, now: datetime) -> datetime | None:
    """When the first sync is due; records that the source was seen. None if it has data already."""
    if _has_begun(storage, source):
        return None
    return note_first_seen(storage, source.id, now) + timedelta(hours=source.first_sync_hours)


def expected_first_sync(storage: Storage, source: Source) -> datetime | None:
    """The same without recording anything; None also if the source was not seen yet."""
    seen = read_first_seen(storage, source.id)
    if seen is None or _has_begun(storage, source):
        return None
    return seen + timedelta(hours=source.first_sync_hours)


def _has_begun(storage: Storage, source: Source) -> bool:
    """Whether a run has loaded anything: if so, the source is not new."""
    return storage.exists(paths.state_file(source.id))

"""Asset keys, job names, tags, and partitions: days in UTC, while the lake keeps its hours."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import dagster as dg

from eventlake.catalog.sync_reports import DATABASE, NAME
from eventlake.lake import Lake
from eventlake.rules.types import TableSchema
from eventlake.runs.unit import Window
from eventlake.settings.models import Source

RAW_ARCHIVE, SYNC, UPKEEP = "raw_archive", "sync", "upkeep"
_SCHEMA = "_schema"


@dataclass(frozen=True)
class LakeAsset:
    """An asset of a lake, with its key before translation; `data` in the `translation` of YAML.

    `kind` is raw_archive, sync, upkeep, table, schema or sync_reports. Of a table, `database` and
    `name` are those of the catalog; else `name` is that of the source.
    """

    kind: str
    database: str
    name: str
    key: dg.AssetKey


def raw_archive(source: Source) -> LakeAsset:
    return _of_source(RAW_ARCHIVE, source)


def sync(source: Source) -> LakeAsset:
    return _of_source(SYNC, source)


def upkeep(source: Source) -> LakeAsset:
    return _of_source(UPKEEP, source)


def _of_source(kind: str, source: Source) -> LakeAsset:
    return LakeAsset(kind, source.database, source.name, dg.AssetKey([source.name, kind]))


def table(schema: TableSchema) -> LakeAsset:
    return _table(schema.database, schema.name)


def _table(database: str, name: str) -> LakeAsset:
    is_taken = name in (RAW_ARCHIVE, SYNC, UPKEEP) or name.endswith(_SCHEMA)
    key = dg.AssetKey([database, "tables", name] if is_taken else [database, name])
    return LakeAsset("table", database, name, key)


def table_schema(schema: TableSchema) -> LakeAsset:
    key = dg.AssetKey([schema.database, f"{schema.name}{_SCHEMA}"])
    return LakeAsset("schema", schema.database, schema.name, key)


def reports(source: Source) -> LakeAsset:
    return _reports(source.name)


def _reports(source_name: str) -> LakeAsset:
    key = dg.AssetKey([DATABASE, f"{source_name}_{NAME}"])
    return LakeAsset(NAME, DATABASE, source_name, key)


def checked(name: str) -> LakeAsset:
    """The asset of a check result: `database.table`, or `<reports table>.source`."""
    database, name, *source = name.split(".")
    return _reports(*source) if source else _table(database, name)


def checked_name(key: dg.AssetKey, source: Source) -> str:
    """The reverse of `checked`, for the untranslated key of an asset of this source."""
    if key == reports(source).key:
        return f"{DATABASE}.{NAME}.{source.name}"
    return f"{key.path[0]}.{key.path[-1]}"


def is_table_of(source: Source, key: dg.AssetKey) -> bool:
    """Whether an asset is a table or a catalog entry with the source's database and prefix."""
    path = key.path
    begins = source.catalog_table("")
    if key in (raw_archive(source).key, sync(source).key, upkeep(source).key):
        return False
    return len(path) > 1 and path[0] == source.database and path[-1].startswith(begins)


Translation = Callable[[dg.AssetSpec, LakeAsset], dg.AssetSpec]


@dataclass(frozen=True)
class Names:
    """The names of one lake in Dagster: of jobs, ops, schedules, sensors, resources and assets.

    `lake` is a prefix of all of them, for projects with several lakes; `translation` may change
    keys, groups, owners, tags and descriptions of assets.
    """

    lake: str = ""
    translation: Translation | None = None
    _keys: dict[dg.AssetKey, dg.AssetKey] = field(default_factory=dict)

    def of(self, name: str) -> str:
        return f"{self.lake}_{name}" if self.lake else name

    def key(self, asset: LakeAsset) -> dg.AssetKey:
        """The key of an asset, also of one that has no definition yet."""
        if asset.key not in self._keys:
            self.spec(asset)
        return self._keys[asset.key]

    def spec(
        self,
        asset: LakeAsset,
        source: Source | None = None,
        deps: Iterable[LakeAsset] = (),
        mapping: dg.PartitionMapping | None = None,
        **attributes: Any,
    ) -> dg.AssetSpec:
        """The definition of an asset, in the group and with the owners of its source."""
        path = [self.lake, *asset.key.path] if self.lake else asset.key.path
        spec = dg.AssetSpec(
            dg.AssetKey(path),
            deps=[dg.AssetDep(self.key(dep), partition_mapping=mapping) for dep in deps],
            group_name=self.of(source.name if source else asset.database),
            owners=list(source.owners) if source else [],
            **attributes,
        )
        if self.translation is not None:
            spec = self.translation(spec, asset)
        self._keys[asset.key] = spec.key
        return spec

    def untranslated(self, key: dg.AssetKey) -> dg.AssetKey:
        """The reverse of `key`; a key that is not of this lake stays as it is."""
        if not self.lake and self.translation is None:
            return key
        found = next((ours for ours, theirs in self._keys.items() if theirs == key), None)
        if found is None and self.lake and key.path[0] == self.lake:
            return dg.AssetKey(key.path[1:])
        return found or key

    def sync_job(self, source: Source) -> str:
        return self.of(f"sync_{source.name}")

    def replay_job(self, source: Source) -> str:
        return self.of(f"replay_{source.name}")

    def upkeep_job(self, source: Source) -> str:
        return self.of(f"upkeep_{source.name}")

    def check_tables_job(self, source: Source) -> str:
        return self.of(f"check_tables_{source.name}")


NAMES = Names()
"""Those of a code location with a single lake, and of the command line."""

SOURCE_TAG = "datalake/source"
LAKE_TAG = ".dagster/datalake_lake"  # Dagster's UI does not show tags with this prefix
ACCEPT_TAG = "datalake/accept_changes"
"""`true` on a replay: load raw files that changed after they were loaded."""


def run_tags(lake: Lake, source: Source | None = None) -> dict[str, str]:
    """The tags of every run of a lake, or of one of its sources."""
    tags = {LAKE_TAG: lake.settings.storage_uri}
    return tags | ({SOURCE_TAG: source.slug} if source else {})


# Used until the first day of a source is known. It is only the first day in the UI: events are
# recorded by day, so a later start loses nothing.
FALLBACK_START = date(2024, 1, 1)

REPLAY = dg.BackfillPolicy.single_run()
"""One replay, one run."""


def days(start: date | None) -> dg.DailyPartitionsDefinition:
    """All days of a source, today included."""
    first = start or FALLBACK_START
    return dg.DailyPartitionsDefinition(start_date=f"{first}", timezone="UTC", end_offset=1)


def window_of(keys: dg.PartitionKeyRange, partitions: dg.DailyPartitionsDefinition) -> Window:
    """The range of a run: for one day, a range, and direct invocation."""
    first = partitions.time_window_for_partition_key(keys.start)
    last = partitions.time_window_for_partition_key(keys.end)
    return Window(first.start, last.end)

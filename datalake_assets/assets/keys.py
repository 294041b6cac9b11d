"""Asset keys, job names, tags, and partitions: days in UTC, while the lake keeps its hours."""

from datetime import date

import dagster as dg

from eventlake.catalog.sync_reports import DATABASE, NAME
from eventlake.lake import Lake
from eventlake.rules.types import TableSchema
from eventlake.runs.archive import archive_storage
from eventlake.runs.unit import Window
from eventlake.settings.models import Source

RAW_ARCHIVE, SYNC, UPKEEP = "raw_archive", "sync", "upkeep"
_SCHEMA = "_schema"


def raw_archive_key(source: Source) -> dg.AssetKey:
    return dg.AssetKey([source.name, RAW_ARCHIVE])


def table_key(schema: TableSchema) -> dg.AssetKey:
    return _table_key(schema.database, schema.name)


def _table_key(database: str, name: str) -> dg.AssetKey:
    is_taken = name in (RAW_ARCHIVE, SYNC, UPKEEP) or name.endswith(_SCHEMA)
    return dg.AssetKey([database, "tables", name] if is_taken else [database, name])


def schema_key(schema: TableSchema) -> dg.AssetKey:
    return dg.AssetKey([schema.database, f"{schema.name}{_SCHEMA}"])


def reports_key(source: Source) -> dg.AssetKey:
    return _reports_key(source.name)


def _reports_key(source_name: str) -> dg.AssetKey:
    return dg.AssetKey([DATABASE, f"{source_name}_{NAME}"])


def checked_key(checked: str) -> dg.AssetKey:
    """The asset of a check result: `database.table`, or `<reports table>.source`."""
    database, name, *source = checked.split(".")
    return _reports_key(*source) if source else _table_key(database, name)


def checked_name(key: dg.AssetKey, source: Source) -> str:
    """The reverse of `checked_key`, for an asset of this source."""
    if key == reports_key(source):
        return f"{DATABASE}.{NAME}.{source.name}"
    return f"{key.path[0]}.{key.path[-1]}"


def is_table_of(source: Source, key: dg.AssetKey) -> bool:
    """Whether an asset is a table or a catalog entry with the source's database and prefix."""
    path = key.path
    begins = source.catalog_table("")
    return len(path) > 1 and path[0] == source.database and path[-1].startswith(begins)


def replay_job_name(source: Source) -> str:
    return f"replay_{source.name}"


def upkeep_key(source: Source) -> dg.AssetKey:
    return dg.AssetKey([source.name, UPKEEP])


def upkeep_job_name(source: Source) -> str:
    return f"upkeep_{source.name}"


def check_tables_job_name(source: Source) -> str:
    return f"check_tables_{source.name}"


SOURCE_TAG = "datalake/source"
LAKE_TAG = ".dagster/datalake_lake"  # Dagster's UI does not show tags with this prefix
ACCEPT_TAG = "datalake/accept_changes"
"""`true` on a replay: load raw files that changed after they were loaded."""


def run_tags(lake: Lake, source: Source | None = None) -> dict[str, str]:
    """The tags of every run of a lake, or of one of its sources."""
    tags = {LAKE_TAG: lake.settings.storage_uri}
    return tags | ({SOURCE_TAG: source.slug} if source else {})


def raw_archive(lake: Lake, source: Source) -> dg.AssetSpec:
    """The archive of a source; each sync records its number of files and the newest timestamp."""
    return dg.AssetSpec(
        raw_archive_key(source),
        description=f"Raw events of {source.slug}: gzipped JSON by day.",
        group_name=source.name,
        kinds={"json"},
        metadata={"dagster/uri": archive_storage(lake.storage, source).full(source.raw)},
    )


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

"""What the assets are called."""

import dagster as dg

from eventlake.catalog.sync_reports import DATABASE, NAME
from eventlake.lake import Lake
from eventlake.rules.types import TableSchema
from eventlake.settings.models import Source


def landing_key(source: Source) -> dg.AssetKey:
    return dg.AssetKey(["landing", source.name])


def table_key(schema: TableSchema) -> dg.AssetKey:
    return dg.AssetKey([schema.database, schema.name])


def schema_key(schema: TableSchema) -> dg.AssetKey:
    return dg.AssetKey([schema.database, schema.name, "schema"])


def reports_key(source: Source) -> dg.AssetKey:
    return dg.AssetKey([DATABASE, NAME, source.name])


def sync_job_name(source: Source) -> str:
    return f"sync_{source.name}"


def replay_job_name(source: Source) -> str:
    return f"replay_{source.name}"


def upkeep_key(source: Source) -> dg.AssetKey:
    return dg.AssetKey([DATABASE, "upkeep", source.name])


def upkeep_job_name(source: Source) -> str:
    return f"upkeep_{source.name}"


def check_tables_job_name(source: Source) -> str:
    return f"check_tables_{source.name}"


SOURCE_TAG = "datalake/source"
ACCEPT_TAG = "datalake/accept_changes"
"""`true` on a replay: take raw files as they are now, though they changed after loading."""


def landing(lake: Lake, source: Source) -> dg.AssetSpec:
    """The archive of a source; every sync notes how many files it holds and how new they are."""
    return dg.AssetSpec(
        landing_key(source),
        description=f"Raw events of {source.slug} as they were collected: gzipped JSON by day.",
        group_name=source.name,
        kinds={"json"},
        metadata={"dagster/uri": lake.storage.full(source.raw)},
    )

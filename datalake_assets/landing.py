"""The raw archives, which others write and we only read."""

import dagster as dg

from datalake_assets.keys import landing_key
from eventlake.lake import Lake
from eventlake.settings.models import Source


def landing(lake: Lake, source: Source) -> dg.AssetSpec:
    """The archive of a source; every sync notes how many files it holds and how new they are."""
    return dg.AssetSpec(
        landing_key(source),
        description=f"Raw events of {source.slug} as they were collected: gzipped JSON by day.",
        group_name=source.name,
        kinds={"json"},
        metadata={"dagster/uri": lake.storage.full(source.raw)},
    )

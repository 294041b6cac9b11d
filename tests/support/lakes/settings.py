"""Settings of a lake, in memory or in a file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eventlake.lake import Lake
from eventlake.sample import SampleSource
from eventlake.settings.file import load_settings
from eventlake.settings.models import Settings

SHOP = {"id": "S1", "slug": "shop", "unit_bytes": 1}
"""Each day folder is a unit, so that a sync has several."""


def settings_of(
    storage: Path | str, *sources: Mapping[str, object] | SampleSource, **more: Any
) -> Settings:
    """Settings of a lake with the given sources, or with the source `S1` called `shop`."""
    return Settings.model_validate(_document(storage, *sources, **more))


def lake_in(
    folder: Path,
    *sources: Mapping[str, object] | SampleSource,
    storage: str = "./data",
    **more: Any,
) -> Lake:
    """The same, written to `lake.yaml` in a folder, with the storage in `data` below it."""
    document = _document(storage, *sources, **more)
    (folder / "lake.yaml").write_text(json.dumps(document))  # every JSON document is YAML
    return Lake.open(load_settings(None, {}, folder))


def _document(
    storage: Path | str, *sources: Mapping[str, object] | SampleSource, **more: Any
) -> dict[str, Any]:
    listed = [
        {"id": source.id, "slug": source.slug} if isinstance(source, SampleSource) else source
        for source in sources or (SHOP,)
    ]
    return {"workspace_id": "W1", "storage": str(storage), "sources": listed} | more

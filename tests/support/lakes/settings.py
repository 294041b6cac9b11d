"""Settings of a lake."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eventlake.sample import SampleSource
from eventlake.settings.models import Settings

SHOP = {"id": "S1", "slug": "shop"}


def settings_of(
    storage: Path | str, *sources: Mapping[str, object] | SampleSource, **more: Any
) -> Settings:
    """Settings of a lake with the given sources, or with the source `S1` called `shop`."""
    listed = [
        {"id": source.id, "slug": source.slug} if isinstance(source, SampleSource) else source
        for source in sources or (SHOP,)
    ]
    given = {"workspace_id": "W1", "storage": str(storage), "sources": listed}
    return Settings.model_validate(given | more)

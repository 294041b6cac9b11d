"""Clean-up of a source, at the end of its runs: everything that is due, within a bounded time."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from eventlake.catalog.base import Catalog
from eventlake.settings.models.models import Source
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage
from eventlake.upkeep.abandoned import clean_abandoned
from eventlake.upkeep.removal import Removed
from eventlake.upkeep.replaced import clean_replaced
from eventlake.upkeep.staging import clean_staging

MOST_SECONDS = 60.0
"""At the end of a run; what is left over waits for the next."""


@dataclass(frozen=True, slots=True)
class CleanUp:
    """What is gone."""

    replaced: Removed
    abandoned: Removed
    staging: tuple[str, ...]  # runs
    staged: Removed  # by these

    def __bool__(self) -> bool:
        return bool(self.replaced or self.abandoned or self.staging)


def clean_up(
    storage: Storage,
    catalog: Catalog,
    source: Source,
    state: SourceState,
    now: datetime,
    most_seconds: float = MOST_SECONDS,
) -> CleanUp:
    """Remove what has been replaced or abandoned for longer than the grace time. Catch up before:
    what is committed but not applied needs what is staged."""
    end = time.monotonic() + most_seconds
    before = now - timedelta(hours=source.retention.replaced_hours)
    replaced = Removed()
    for removed in clean_replaced(storage, catalog, state, before):
        replaced += removed
        if time.monotonic() > end:
            break
    abandoned = clean_abandoned(storage, catalog, state, before)
    staging = clean_staging(storage, source.id, now, source.retention.stage_days)
    return CleanUp(replaced, abandoned, tuple(staging), sum(staging.values(), Removed()))

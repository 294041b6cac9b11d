"""The code location: assets, checks, schedules and the `datalake` command."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eventlake.api import EventLake

__all__ = ["open"]


def open(settings: "str | os.PathLike[str] | None" = None) -> "EventLake":
    """Open a lake like `eventlake.open`, which can also sync and replay: as Dagster runs."""
    from datalake_assets.launch import DagsterLauncher
    from eventlake.api import EventLake

    return EventLake.of_file(settings, DagsterLauncher())

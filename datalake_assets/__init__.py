"""The code location: assets, checks, schedules and the `datalake` command."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datalake_assets.component import EventLakeComponent as EventLakeComponent
    from eventlake.api import EventLake

__all__ = ["EventLakeComponent", "open"]


def __getattr__(name: str) -> Any:
    """Import the component when Dagster asks for it: most commands do without Dagster."""
    if name != "EventLakeComponent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from datalake_assets.component import EventLakeComponent

    return EventLakeComponent


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def open(settings: "str | os.PathLike[str] | None" = None) -> "EventLake":
    """Open a lake like `eventlake.open`, which can also sync and replay: as Dagster runs."""
    from datalake_assets.launch import DagsterLauncher
    from eventlake.api import EventLake

    return EventLake.of_file(settings, DagsterLauncher())

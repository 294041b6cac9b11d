"""Eventlake: typed Parquet tables from raw event archives. `eventlake.open` is the Python API.

The rooms below it (docs/architecture.md) are internal: they change without notice.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eventlake.api import EventLake, Launcher

__all__ = ["open"]


def open(
    settings: "str | os.PathLike[str] | None" = None, launcher: "Launcher | None" = None
) -> "EventLake":
    """Open the lake of a settings file; nothing is read or written but this file.

    Without a file, it is that of the command line: $DATALAKE_CONFIG, else ./lake.yaml. Syncs and
    replays are Dagster runs, like those of the command line; a launcher of your own starts them
    otherwise.

    >>> import eventlake
    >>> my = eventlake.open("lake.yaml")
    >>> my.databases()
    ['__segment_datalake', 'web_shop']
    """
    from eventlake.api import EventLake

    return EventLake.of_file(settings, launcher)

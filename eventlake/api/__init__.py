"""The public Python API: what `eventlake.open` returns, and all that this leads to."""

from eventlake.api.health import Health, SourceHealth
from eventlake.api.lake import EventLake, Launcher
from eventlake.api.records import Records
from eventlake.api.tables import Fill, Scan, Table, TableColumn, TableSize

__all__ = [
    "EventLake",
    "Fill",
    "Health",
    "Launcher",
    "Records",
    "Scan",
    "SourceHealth",
    "Table",
    "TableColumn",
    "TableSize",
]

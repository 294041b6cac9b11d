"""The public Python API: what `eventlake.open` returns, and all that this leads to."""

from eventlake.api.health import Health, SourceHealth
from eventlake.api.lake import EventLake, Launcher
from eventlake.api.passport import FirstSeen, Passport, Profile, Proposal, Values
from eventlake.api.records import Records
from eventlake.api.tables import Scan, Table, TableColumn, TableSize
from eventlake.checks.fill import Fill

__all__ = [
    "EventLake",
    "Fill",
    "FirstSeen",
    "Health",
    "Launcher",
    "Passport",
    "Profile",
    "Proposal",
    "Records",
    "Scan",
    "SourceHealth",
    "Table",
    "TableColumn",
    "TableSize",
    "Values",
]

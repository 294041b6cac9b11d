"""Realistic raw archives by seed, with the exact results that a lake must have."""

from eventlake.sample.archive import write_archive
from eventlake.sample.expected import (
    ArchiveFile,
    Duplicate,
    Expected,
    Likeness,
    Load,
    Reason,
    Rejected,
    SampleArchive,
    Slot,
    Totals,
    history,
)
from eventlake.sample.spec import IOS_PROD, WEB_SHOP, SampleSource, SampleSpec

__all__ = [
    "IOS_PROD",
    "WEB_SHOP",
    "ArchiveFile",
    "Duplicate",
    "Expected",
    "Likeness",
    "Load",
    "Reason",
    "Rejected",
    "SampleArchive",
    "SampleSource",
    "SampleSpec",
    "Slot",
    "Totals",
    "history",
    "write_archive",
]

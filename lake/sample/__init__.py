"""Realistic raw archives by seed, with an exact account of what a lake must make of them."""

from lake.sample.account import Account, Load, RawFile, history
from lake.sample.archive import write_archive
from lake.sample.expected import Duplicate, Expected, Likeness, Rejected, Slot, Totals
from lake.sample.row import Reason
from lake.sample.spec import IOS_PROD, WEB_SHOP, SampleSource, SampleSpec

__all__ = [
    "IOS_PROD",
    "WEB_SHOP",
    "Account",
    "Duplicate",
    "Expected",
    "Likeness",
    "Load",
    "RawFile",
    "Reason",
    "Rejected",
    "SampleSource",
    "SampleSpec",
    "Slot",
    "Totals",
    "history",
    "write_archive",
]

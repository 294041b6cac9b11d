"""Mending the catalog of a test's lake."""

from typing import Any

from eventlake.checks.repair import Mended, mend_catalog
from tests.eventlake.checking.conftest import Checked
from tests.eventlake.retyping import lake_of


def mend(checked: Checked) -> Mended:
    def nobody_is_at_work(lease: object) -> None:
        raise AssertionError(f"waits for {lease}")

    return mend_catalog(lake_of(checked.runs), checked.runs.source, nobody_is_at_work)


def columns_and_places(told: dict[str, Any]) -> dict[str, Any]:
    """What readers go by, of all that a catalog says."""
    return {
        name: (entry.columns, entry.location, [(p.values, p.location, p.rows) for p in partitions])
        for name, (entry, partitions) in told.items()
    }

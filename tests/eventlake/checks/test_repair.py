"""What somebody changed in the catalog by hand is put back from the manifests."""

import pytest

from eventlake.rules import paths
from eventlake.rules.errors import StateError
from eventlake.state.manifest import note_pruned
from tests.eventlake.checks.test_published import BROKEN
from tests.support.catalogs.by_hand import Checked, columns_and_places, mend
from tests.support.lakes.archive import track
from tests.support.lakes.glue_runs import told


@pytest.mark.parametrize("broken", [name for name in BROKEN if "file " not in name])
def test_what_was_broken_by_hand_is_mended(checked: Checked, broken: str) -> None:
    before = told(checked.runs)
    BROKEN[broken][0](checked)
    assert mend(checked)
    assert checked.failed() == {}
    assert columns_and_places(told(checked.runs)) == columns_and_places(before)
    assert not mend(checked)


def test_runs_go_on_after_it(checked: Checked) -> None:
    checked.hand.unregister("track_order", ("2026-10-01", "07"))
    mend(checked)
    checked.runs.archive.day("2026-10-04").file(
        "d", track("Order", "m8", "2026-10-01T07:40", n=8), track("Order", "m1", "2026-10-04", n=1)
    )
    checked.runs.sync()
    checked.runs.replay("2026-10-01", "2026-10-02")
    assert checked.failed() == {}
    assert checked.runs.ids("track_order") == ["m1", "m2", "m4", "m5", "m8"]


def test_of_manifests_that_are_gone_the_catalog_is_believed(checked: Checked) -> None:
    """Years later only the last manifests are kept; what is lost besides is told."""
    runs = checked.runs
    note_pruned(runs.storage, "S1", 1)
    runs.storage.delete(paths.manifest("S1", 1))
    checked.hand.unregister("track_order", ("2026-10-02", "00"))
    mended = mend(checked)
    assert (mended.registered, mended.lost_rows) == ({"shop.track_order": 1}, {})
    assert checked.failed() == {}
    checked.hand.unregister("track_order", ("2026-10-01", "07"))
    assert mend(checked).lost_rows == {"shop.track_order": 1}
    assert checked.failed() == {
        "track_order.partitions": ["the registered partitions have 3 rows, 4 were published"]
    }


def test_without_all_manifests_nothing_is_guessed(checked: Checked) -> None:
    checked.runs.storage.delete(paths.manifest("S1", 1))
    before = told(checked.runs)
    with pytest.raises(StateError, match="Manifest 1 of source S1 is not there"):
        mend(checked)
    assert told(checked.runs) == before

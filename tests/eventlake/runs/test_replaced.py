"""What is replaced stays for a while, then goes; what is in use stays for ever."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from eventlake.rules import paths
from eventlake.runs import clean_up, placement
from eventlake.runs.publish import catch_up
from eventlake.state.manifest import commit, read_manifest
from tests.support.faults.failing_storage import Fault, Faults
from tests.support.faults.faults import break_off
from tests.support.faults.lying import lying, needed
from tests.support.faults.places import Folders
from tests.support.lakes.archive import identify, track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.retyping import days_of_a_replay, wish
from tests.support.lakes.runs import SOURCE_ID, CleanAfter, Runs

HOUR_7 = f"segment-data/data/{SOURCE_ID}/segment_type=track_order/day=2026-10-01/hr=07"


def two_days(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", track("Order", day, f"{day}T07:00", n=1))
    runs.sync()


def replayed(runs: Runs) -> None:
    """Both days have new folders, and new index files."""
    runs.replay("2026-10-01", "2026-10-03")


def replayed_in_part(runs: Runs) -> None:
    runs.replay("2026-10-01", "2026-10-02", "track_order")


def grown_by_two_files(runs: Runs) -> None:
    """What the partition held is copied to the folder it has from now on."""
    day = runs.archive.day("2026-10-03")
    for name in "ab":
        day.file(name, track("Order", name, "2026-10-01T07:30", n=2, text="x" * 2000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "SPLIT_BYTES", 220)
        patch.setattr(InProcess, "slots", 2)
        runs.sync()
    [moved, _] = runs.partitions("track_order").values()
    assert ("/_v/" in moved.location, moved.files) == (True, 3)


def emptied(runs: Runs) -> None:
    """The raw file is gone, and with a replay its partition."""
    (runs.root / paths.raw_root(SOURCE_ID)).rglob("*.gz").__next__().unlink()
    runs.replay("2026-10-01", "2026-10-03")
    assert len(runs.partitions("track_order")) == 1


def retyped(runs: Runs) -> None:
    """The replay leaves its partitions in the old types for those in the new ones."""
    wish(runs, "track_order.n", "string")
    runs.replay("2026-10-01", "2026-10-03")


def wished_in_vain(runs: Runs) -> None:
    """Shadows are made, and then the wish is taken back."""
    wish(runs, "track_order.n", "string")
    days = days_of_a_replay(runs, "2026-10-01", "2026-10-03")
    next(days)
    days.close()
    wish(runs, "track_order.n", "bigint")


STEPS: list[Callable[[Runs], None]] = [
    replayed,
    replayed_in_part,
    grown_by_two_files,
    emptied,
    retyped,
    wished_in_vain,
]


@pytest.mark.parametrize("step", STEPS)
def test_what_is_replaced_goes_after_the_grace_time_and_nothing_else(
    runs: Runs, clean_after: CleanAfter, step: Callable[[Runs], None]
) -> None:
    two_days(runs)
    before = lying(runs)
    step(runs)
    rows, index = runs.rows("track_order"), runs.index()
    assert before <= lying(runs)
    assert not clean_after(23)
    assert before <= lying(runs)
    useless = lying(runs) - needed(runs)
    assert useless
    assert clean_after(25).replaced.files == len(useless)
    assert lying(runs) == needed(runs)
    assert (runs.rows("track_order"), runs.index()) == (rows, index)
    assert not clean_after(25)
    # The lake goes on from there.
    runs.archive.day("2026-10-04").file("a", track("Order", "new", "2026-10-01T07:00", n=1))
    runs.sync()
    assert "new" in runs.ids("track_order")


def test_the_grace_time_is_a_setting(runs: Runs, clean_after: CleanAfter) -> None:
    two_days(runs)
    replayed(runs)
    runs.set(retention={"replaced_hours": 1000})
    assert not clean_after(999)
    assert clean_after(1001)


def test_the_end_of_a_run_removes_what_is_due(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    two_days(runs)
    replayed(runs)
    [manifest] = [m for m in (read_manifest(runs.storage, SOURCE_ID, n) for n in (3,)) if m]
    assert manifest.made is not None
    runs.set(retention={"replaced_hours": 1})
    runs.sync()
    assert lying(runs) > needed(runs)
    monkeypatch.setattr(clean_up, "timedelta", lambda hours: timedelta(0))
    runs.sync()
    assert lying(runs) == needed(runs)
    assert any(line.startswith("Removed ") for line in runs.logged)


def test_what_the_catalog_leads_to_stays_whatever_a_manifest_says(
    runs: Runs, clean_after: CleanAfter
) -> None:
    two_days(runs)
    state, first = runs.state(), read_manifest(runs.storage, SOURCE_ID, 1)
    assert first is not None
    [partition] = first.partitions
    assert partition.location == HOUR_7
    mistaken = msgspec.structs.replace(
        first,
        number=state.manifest + 1,
        partitions=(msgspec.structs.replace(partition, added=(), left=HOUR_7),),
        unused=tuple(file.path for files in state.index.values() for file in files),
    )
    commit(runs.storage, mistaken)
    catch_up(runs.storage, runs.catalog, SOURCE_ID)
    before = lying(runs)
    clean_after(25)
    assert lying(runs) == before == needed(runs)


@pytest.mark.parametrize("fault", Fault)
def test_whoever_is_stopped_in_the_middle_of_it_has_lost_nothing(
    tmp_path: Path, fault: Fault
) -> None:
    place = Folders(tmp_path)
    base = place.new()
    two_days(base)
    base.archive.day("2026-10-02").file("b", identify("x", "2026-10-02T07:00"))
    replayed(base)
    rows = base.rows("track_order")

    def clean(runs: Runs) -> None:
        later = datetime.now(UTC) + timedelta(hours=25)
        clean_up.clean_up(runs.storage, runs.catalog, runs.source, runs.state(), later)

    undisturbed = Faults(fault)
    whole = break_off(place, place.copy(base, "whole"), clean, undisturbed)
    assert undisturbed.changes > 5
    assert lying(whole) == needed(whole)
    for at, change in enumerate(undisturbed.log):
        runs = break_off(place, place.copy(base, str(at)), clean, Faults(fault, at))
        assert runs.rows("track_order") == rows, change
        clean(runs)
        assert lying(runs) == needed(runs), change
        assert runs.rows("track_order") == rows, change

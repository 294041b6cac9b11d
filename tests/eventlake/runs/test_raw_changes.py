"""Raw files that changed after loading: a replay says so before, and needs to be told to go on."""

import shutil
from pathlib import Path

import pytest

from eventlake.rules import paths
from eventlake.rules.errors import ConsentNeeded
from eventlake.runs.replay import replay_units
from eventlake.runs.unit import Window
from eventlake.state.manifest import RunKind
from tests.support.lakes.archive import page, track
from tests.support.lakes.runs import Runs, utc

DAY = ("2026-10-01", "2026-10-02")
BOTH = ("2026-10-01", "2026-10-03")
MORNING, EVENING = "2026-10-01T07:00", "2026-10-01T22:00"


@pytest.fixture
def loaded(runs: Runs) -> Runs:
    """Two days; `b` of the second holds a row of the first, too."""
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", MORNING), page("p1", MORNING))
    runs.archive.day("2026-10-02").file(
        "b", track("Order", "m2", EVENING), track("Order", "m3", "2026-10-02T07:00")
    )
    runs.archive.day("2026-10-02").file("c", track("Order", "m4", "2026-10-02T07:00"))
    runs.sync()
    return runs


def everything(runs: Runs) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(runs.root.rglob("*")) if p.is_file()}


def refused(runs: Runs, *span: str) -> str:
    """What a replay says that refuses to go on; it has changed nothing."""
    before = everything(runs)
    with pytest.raises(ConsentNeeded) as error:
        runs.replay(*span, accept=False)
    assert everything(runs) == before
    return str(error.value)


def raw(runs: Runs, day: str, name: str) -> Path:
    return runs.archive.day(day).folder / f"{name}.gz"


def test_where_nothing_has_changed_nobody_is_asked(loaded: Runs) -> None:
    assert loaded.replay(*BOTH, accept=False).row_count == 5


def test_a_changed_file_needs_consent_and_is_then_taken_as_it_is(loaded: Runs) -> None:
    path = loaded.archive.day("2026-10-01").file("a", track("Order", "new", MORNING))
    told = refused(loaded, *DAY)
    assert f"  changed: {path.relative_to(loaded.root)} (" in told
    assert f" bytes then, {path.stat().st_size} now; 2 lines loaded)" in told
    assert "The range holds 3 rows" in told
    assert "--accept-changes" in told
    assert loaded.replay(*DAY).row_count == 2
    assert loaded.warnings == [
        "Takes 1 raw files that changed after loading as they are now, and does without 0 that are "
        "gone."
    ]
    assert (loaded.ids("track_order"), loaded.ids("page")) == (["m2", "m3", "m4", "new"], [])


@pytest.mark.parametrize("whole_folder", [False, True])
def test_a_removed_file_needs_consent_and_its_rows_are_then_gone(
    loaded: Runs, whole_folder: bool
) -> None:
    path = raw(loaded, "2026-10-02", "b")
    shutil.rmtree(path.parent) if whole_folder else path.unlink()
    told = refused(loaded, *DAY)
    assert f"  removed: {path.relative_to(loaded.root)} (2 lines loaded)\n" in told
    assert "c.gz" not in told  # no row of the range came from it
    loaded.replay(*DAY)
    assert loaded.ids("track_order") == ["m1", "m3", "m4"]


def test_many_are_counted_and_the_first_are_named(runs: Runs) -> None:
    for n in range(13):
        runs.archive.day(DAY[0]).file(f"{n:02}", track("Order", f"m{n}", MORNING))
    runs.sync()
    shutil.rmtree(raw(runs, DAY[0], "00").parent)
    told = refused(runs, *DAY).splitlines()
    assert [line for line in told if line.startswith("  ")][-2:][0].strip().startswith("removed: ")
    assert "  … and 3 more" in told


def test_what_was_agreed_to_is_not_asked_again_but_the_next_change_is(loaded: Runs) -> None:
    day = loaded.archive.day("2026-10-01")
    day.file("a", track("Order", "new", MORNING))
    raw(loaded, "2026-10-02", "b").unlink()
    loaded.replay(*DAY)
    loaded.replay(*DAY, accept=False)
    assert "b.gz" in refused(loaded, *BOTH)  # the second day has not been replayed since
    day.file("a", track("Order", "newer", MORNING))
    told = refused(loaded, *DAY)
    assert "a.gz" in told and "1 rows of a day loaded by a replay" in told
    assert "b.gz" not in told


def test_a_file_that_is_back_brings_its_rows_back(loaded: Runs) -> None:
    path = raw(loaded, "2026-10-02", "b")
    content, stat = path.read_bytes(), path.stat()
    path.unlink()
    loaded.replay(*DAY)
    path.write_bytes(content)
    loaded.replay(*DAY, accept=False)
    assert loaded.ids("track_order") == ["m1", "m2", "m3", "m4"]
    assert stat.st_size == path.stat().st_size


def test_a_replay_of_one_table_does_not_agree_for_the_others(loaded: Runs) -> None:
    loaded.archive.day("2026-10-01").file("a", track("Order", "new", MORNING))
    loaded.replay(*DAY, "track_order")
    assert "a.gz" in refused(loaded, *DAY)
    assert loaded.ids("page") == ["p1"]


def test_files_that_only_a_replay_has_read_count_too(runs: Runs) -> None:
    path = runs.archive.day(DAY[0]).file("a", track("Order", "m1", MORNING))
    runs.replay(*DAY)
    path.unlink()
    runs.archive.day(DAY[0]).file("b", track("Order", "m2", MORNING))
    assert "removed" in refused(runs, *DAY)


def test_the_whole_of_a_file_that_was_cut_off_is_what_everybody_waits_for(runs: Runs) -> None:
    lines = [track("Order", f"m{n}", MORNING, text="x" * 50) for n in range(50)]
    runs.archive.day(DAY[0]).file("a", *lines, keep=0.6)
    runs.sync()
    runs.archive.day(DAY[0]).file("a", *lines)
    assert runs.replay(*DAY, accept=False).row_count == 50


def test_an_empty_place_has_nothing_to_lose(loaded: Runs) -> None:
    raw(loaded, "2026-10-02", "b").unlink()
    loaded.set(database="another")
    assert loaded.replay(*DAY, accept=False).row_count == 2
    assert loaded.ids("track_order") == ["m1"]


def test_a_file_that_changes_under_way_stops_the_replay_before_its_day(loaded: Runs) -> None:
    window = Window(*map(utc, BOTH))
    days = replay_units(loaded.context(RunKind.REPLAY, window), window)
    next(days)
    raw(loaded, "2026-10-02", "c").unlink()
    with pytest.raises(ConsentNeeded, match=r"c\.gz"):
        next(days)
    report = loaded.reports()["R2"][0]
    assert (report["status"], report["row_count"]) == ("failed", 3)
    assert loaded.ids("track_order") == ["m1", "m2", "m3", "m4"]
    assert loaded.storage.read(paths.lease("S1")) is None

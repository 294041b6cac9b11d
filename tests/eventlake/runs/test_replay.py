"""Replays: rows are replaced, raw files have changed, an interrupted replay resumes."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from eventlake.rules import paths
from eventlake.rules.errors import ConsentNeeded
from eventlake.runs import clean_up, placement
from eventlake.runs.publish import catch_up
from eventlake.runs.replay import replay_units
from eventlake.runs.unit import Window
from eventlake.state import lease
from eventlake.state.manifest import RunKind, commit, read_manifest
from eventlake.storage import LocalStorage
from tests.support.faults.failing_storage import (
    Broken,
    FailingStorage,
    Fault,
    Faults,
    lying,
    needed,
)
from tests.support.faults.faults import break_off
from tests.support.faults.flows import FIRST, Counting, cancel, load_days
from tests.support.faults.places import Folders
from tests.support.lakes.archive import identify, order, page
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.retyping import days_of_a_replay, request_type, seen
from tests.support.lakes.runs import SOURCE_ID, CleanAfter, Runs, utc


def test_a_replay_loads_all_tables_of_its_days_from_the_current_archive(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", order("m1", "2026-10-01T07:00", n=1), identify("m2", "2026-10-01T08:00"))
    runs.load("2026-10-02", order("m3", "2026-10-02T07:00", n=1))
    day.file("a", order("m1", "2026-10-01T07:00", n=2), page("m4", "2026-10-01T09:00"))
    report = runs.replay("2026-10-01", "2026-10-02")
    assert (report.rows_in, report.row_count) == (2, 2)
    assert runs.tables() == ["identify", "page", "track_order"]
    assert runs.rows("track_order", "message_id", "properties_n") == [
        {"message_id": "m1", "properties_n": 2},
        {"message_id": "m3", "properties_n": 1},
    ]
    assert runs.rows("identify") == []
    assert runs.ids("page") == ["m4"]


def test_a_replay_of_one_table_leaves_the_others_alone(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", order("m1", "2026-10-01T07:00"), identify("m2", "2026-10-01T07:00"))
    runs.sync()
    day.file("a", order("m3", "2026-10-01T07:00"), identify("m4", "2026-10-01T07:00"))
    report = runs.replay("2026-10-01", "2026-10-02", "track_order")
    assert list(report.tables) == ["shop.track_order"]
    assert report.rows_in == 1
    assert (runs.ids("track_order"), runs.ids("identify")) == (["m3"], ["m2"])


def test_a_replay_of_an_hour_keeps_the_ids_of_the_rest_of_the_day(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", order("m1", "2026-10-01T07:00"), order("m2", "2026-10-01T08:00"))
    runs.sync()
    index = runs.index()
    report = runs.replay("2026-10-01T07:00", "2026-10-01T08:00")
    assert report.row_count == 1
    assert runs.index() == index
    day.file("b", order("m1", "2026-10-01T09:00"), order("m2", "2026-10-01T09:00"))
    assert runs.sync().duplicates == 2


def test_partitions_outside_of_the_range_stay_as_they_are(runs: Runs) -> None:
    """One file has rows of three days; the middle one is replayed, then an hour of it."""
    days = ("2026-10-01", "2026-10-02", "2026-10-03")
    times = (f"{day}T{hour}" for day in days for hour in ("07", "08"))
    runs.load(days[1], *(order(at, f"{at}:00") for at in times))
    before, rows = runs.partitions("track_order"), runs.rows("track_order")
    runs.replay(days[1], days[2])
    runs.replay(f"{days[1]}T07:00", f"{days[1]}T08:00")
    after = runs.partitions("track_order")
    assert {key for key in after if after[key] != before[key]} == {(days[1], "07"), (days[1], "08")}
    assert runs.rows("track_order") == rows


def test_a_replay_changes_nothing_where_nothing_has_changed(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02", "2026-10-03"):
        copy = order("copy", f"{day}T08:00", n="x")
        own = order(f"{day}", f"{day}T07:00", n=1)
        runs.archive.day(day).file("a", own, copy, "no JSON")
    runs.sync()
    rows, index, state = runs.rows("track_order"), runs.index(), runs.state()
    ledger = runs.ledger()
    report = runs.replay("2026-10-01", "2026-10-04")
    assert (report.row_count, report.duplicates, report.rejected) == (4, 2, 0)
    assert runs.rows("track_order") == rows
    assert runs.index() == index
    assert runs.ledger() == ledger
    assert runs.state().tables == state.tables
    assert runs.state().rows == state.rows == {"shop.track_order": 4}


def test_a_duplicate_is_loaded_when_the_kept_event_was_removed(runs: Runs) -> None:
    first = runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T07:00"))
    runs.load("2026-10-02", order("m1", "2026-10-02T07:00"))
    assert list(runs.partitions("track_order")) == [("2026-10-01", "07")]
    first.unlink()
    runs.replay("2026-10-01", "2026-10-03")
    assert list(runs.partitions("track_order")) == [("2026-10-02", "07")]


def test_what_the_lake_has_around_the_range_is_kept_against_what_is_replayed(runs: Runs) -> None:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00"))
    # It came first, but was found later: the one in the lake stays, also in a replay of the other.
    runs.archive.day("2026-10-02").file("late", order("m1", "2026-09-30T07:00"))
    assert runs.sync().duplicates == 1
    assert runs.replay("2026-09-30", "2026-10-01").duplicates == 1
    assert list(runs.partitions("track_order")) == [("2026-10-01", "07")]


def test_rows_that_a_replay_loaded_are_recognised_by_their_ids(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", order("m1", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.ledger() == {}
    day.file("b", order("m2", "2026-10-01T07:00"))
    report = runs.sync()
    assert (report.row_count, report.duplicates) == (1, 1)
    assert runs.ids("track_order") == ["m1", "m2"]


def test_skipped_events_leave_the_range_and_come_back(runs: Runs) -> None:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00"), page("m2", "2026-10-01T07:00"))
    runs.set(skip_events=["Order"])
    report = runs.replay("2026-10-01", "2026-10-02")
    assert (report.row_count, report.skipped, report.rows_in) == (1, 1, 2)
    assert runs.rows("track_order") == []
    runs.set()
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.ids("track_order") == ["m1"]


@pytest.mark.parametrize("kind", ["file", "all"])
def test_a_missing_index_is_rebuilt_from_the_lake(tmp_path: Path, kind: str) -> None:
    """The same archive with and without the loss ends in the same lake."""
    ends = []
    for lost in (False, True):
        runs = Runs(tmp_path / str(lost))
        for day in ("2026-10-01", "2026-10-03", "2026-10-08"):
            lines = (order(f"{day}{n}", f"{day}T0{n}:00") for n in range(3))
            runs.archive.day(day).file("a", *lines)
        runs.sync()
        if lost:
            files = runs.storage.files(f"{paths.source_state(SOURCE_ID)}/ids")
            for file in files if kind == "all" else files[:1]:
                runs.storage.delete(file.path)
        report = runs.load(
            "2026-10-08",
            order("2026-10-010", "2026-10-08T00:00"),
            order("2026-10-011", "2026-10-08T01:00:00.000001"),
            order("2026-10-082", "2026-10-08T05:00"),
            name="b",
        )
        assert (report.row_count, report.duplicates) == (1, 2)
        ends.append((runs.rows("track_order"), runs.index()))
    assert ends[0] == ends[1]


HOUR_7 = f"segment-data/data/{SOURCE_ID}/segment_type=track_order/day=2026-10-01/hr=07"


def two_days(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", order(day, f"{day}T07:00", n=1))
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
        day.file(name, order(name, "2026-10-01T07:30", n=2, text="x" * 2000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "SPLIT_BYTES", 220)
        patch.setattr(InProcess, "slots", 2)
        runs.sync()
    [moved, _] = runs.partitions("track_order").values()
    assert ("/versions/" in moved.location, moved.files) == (True, 3)


def emptied(runs: Runs) -> None:
    """The raw file is gone, and with a replay its partition."""
    (runs.root / paths.raw_root(SOURCE_ID)).rglob("*.gz").__next__().unlink()
    runs.replay("2026-10-01", "2026-10-03")
    assert len(runs.partitions("track_order")) == 1


def retyped(runs: Runs) -> None:
    """The replay leaves its partitions in the old types for those in the new ones."""
    request_type(runs, "track_order.n", "string")
    runs.replay("2026-10-01", "2026-10-03")


def request_withdrawn(runs: Runs) -> None:
    """Shadows are made, and then the request is taken back."""
    request_type(runs, "track_order.n", "string")
    days = days_of_a_replay(runs, "2026-10-01", "2026-10-03")
    next(days)
    days.close()
    request_type(runs, "track_order.n", "bigint")


STEPS: list[Callable[[Runs], None]] = [
    replayed,
    replayed_in_part,
    grown_by_two_files,
    emptied,
    retyped,
    request_withdrawn,
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
    assert clean_after(25).replaced.files == len(useless)
    assert lying(runs) == needed(runs)
    assert (runs.rows("track_order"), runs.index()) == (rows, index)
    assert not clean_after(25)
    # Old files of a partition that has moved wait in its folder until it comes home.
    assert useless or runs.come_home()
    # The lake goes on from there.
    runs.load("2026-10-04", order("new", "2026-10-01T07:00", n=1))
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


def test_files_in_the_catalog_are_never_removed(runs: Runs, clean_after: CleanAfter) -> None:
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
def test_an_interrupted_cleanup_loses_nothing(tmp_path: Path, fault: Fault) -> None:
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


DAY = ("2026-10-01", "2026-10-02")
BOTH = ("2026-10-01", "2026-10-03")
MORNING, EVENING = "2026-10-01T07:00", "2026-10-01T22:00"


@pytest.fixture
def loaded(runs: Runs) -> Runs:
    """Two days; `b` of the second holds a row of the first, too."""
    runs.archive.day("2026-10-01").file("a", order("m1", MORNING), page("p1", MORNING))
    runs.archive.day("2026-10-02").file("b", order("m2", EVENING), order("m3", "2026-10-02T07:00"))
    runs.load("2026-10-02", order("m4", "2026-10-02T07:00"), name="c")
    return runs


def refused(runs: Runs, *span: str) -> str:
    """What a replay says that refuses to go on; it has changed nothing."""
    before = runs.contents()
    with pytest.raises(ConsentNeeded) as error:
        runs.replay(*span, accept=False)
    assert runs.contents() == before
    return str(error.value)


def raw(runs: Runs, day: str, name: str) -> Path:
    return runs.archive.day(day).folder / f"{name}.gz"


def test_without_changes_no_consent_is_needed(loaded: Runs) -> None:
    assert loaded.replay(*BOTH, accept=False).row_count == 5


def test_a_changed_file_needs_consent_and_is_then_loaded_as_it_is(loaded: Runs) -> None:
    path = loaded.archive.day("2026-10-01").file("a", order("new", MORNING))
    reason = refused(loaded, *DAY)
    assert f"  changed: {path.relative_to(loaded.root)} (" in reason
    assert f" bytes then, {path.stat().st_size} now; 2 lines loaded)" in reason
    assert "The range holds 3 rows" in reason
    assert "--accept-changes" in reason
    assert loaded.replay(*DAY).row_count == 2
    assert loaded.warnings == [
        "Takes 1 changed raw file as found now, and does without 0 that are gone."
    ]
    assert (loaded.ids("track_order"), loaded.ids("page")) == (["m2", "m3", "m4", "new"], [])


def test_the_same_warning_of_several_days_is_logged_once_with_their_number(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02", "2026-10-03"):
        both = (order(f"m{day}", f"{day}T07:00", price=price) for price in (1, 2))
        runs.archive.day(day).file("a", *both)
    runs.sync()
    runs.warnings.clear()
    assert runs.replay("2026-10-01", "2026-10-04").duplicates == 3
    first, more = runs.warnings
    assert first.startswith("1 duplicate with another payload")
    assert more == f"2 more warnings like this one: {first}"


@pytest.mark.parametrize("whole_folder", [False, True])
def test_a_removed_file_needs_consent(loaded: Runs, whole_folder: bool) -> None:
    path = raw(loaded, "2026-10-02", "b")
    shutil.rmtree(path.parent) if whole_folder else path.unlink()
    reason = refused(loaded, *DAY)
    assert f"  removed: {path.relative_to(loaded.root)} (2 lines loaded)\n" in reason
    assert "c.gz" not in reason  # no row of the range came from it
    loaded.replay(*DAY)
    assert loaded.ids("track_order") == ["m1", "m3", "m4"]


def test_many_are_counted_and_the_first_are_named(runs: Runs) -> None:
    for n in range(13):
        runs.archive.day(DAY[0]).file(f"{n:02}", order(f"m{n}", MORNING))
    runs.sync()
    shutil.rmtree(raw(runs, DAY[0], "00").parent)
    reason = refused(runs, *DAY).splitlines()
    *_, last, _ = (line for line in reason if line.startswith("  "))
    assert last.strip().startswith("removed: ")
    assert "  … and 3 more" in reason


def test_consent_holds_until_the_next_change(loaded: Runs) -> None:
    day = loaded.archive.day("2026-10-01")
    day.file("a", order("new", MORNING))
    raw(loaded, "2026-10-02", "b").unlink()
    loaded.replay(*DAY)
    loaded.replay(*DAY, accept=False)
    assert "b.gz" in refused(loaded, *BOTH)  # the second day has not been replayed since
    day.file("a", order("newer", MORNING))
    reason = refused(loaded, *DAY)
    assert "a.gz" in reason and "1 row of a day loaded by a replay" in reason
    assert "b.gz" not in reason


def test_a_file_that_is_back_restores_its_rows(loaded: Runs) -> None:
    path = raw(loaded, "2026-10-02", "b")
    content, stat = path.read_bytes(), path.stat()
    path.unlink()
    loaded.replay(*DAY)
    path.write_bytes(content)
    loaded.replay(*DAY, accept=False)
    assert loaded.ids("track_order") == ["m1", "m2", "m3", "m4"]
    assert stat.st_size == path.stat().st_size


def test_a_replay_of_one_table_does_not_agree_for_the_others(loaded: Runs) -> None:
    loaded.archive.day("2026-10-01").file("a", order("new", MORNING))
    loaded.replay(*DAY, "track_order")
    assert "a.gz" in refused(loaded, *DAY)
    assert loaded.ids("page") == ["p1"]


def test_files_that_only_a_replay_has_read_count_too(runs: Runs) -> None:
    path = runs.archive.day(DAY[0]).file("a", order("m1", MORNING))
    runs.replay(*DAY)
    path.unlink()
    runs.archive.day(DAY[0]).file("b", order("m2", MORNING))
    assert "removed" in refused(runs, *DAY)


def test_the_rest_of_a_broken_file_needs_no_consent(runs: Runs) -> None:
    lines = [order(f"m{n}", MORNING, text="x" * 50) for n in range(50)]
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


@pytest.fixture(autouse=True)
def _count_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("rows", 0), ("units", 0), ("cancelled_at", None)):
        monkeypatch.setattr(Counting, name, value)


def content(runs: Runs) -> object:
    return {table: sorted(map(repr, runs.rows(table))) for table in runs.tables()}, runs.index()


def statuses(runs: Runs) -> dict[str, tuple[str, int]]:
    """How each replay ended, and the rows it reported."""
    reports = [(run, lines[0]) for run, lines in runs.reports().items()]
    return {run: (one["status"], one["row_count"]) for run, one in reports if one["replay"]}


def test_thirty_days_interrupted_three_times_cost_little_more_than_once(tmp_path: Path) -> None:
    whole, broken = Runs(tmp_path / "whole"), Runs(tmp_path / "broken")
    span = load_days(whole, 30)
    whole.replay(*span)
    undisturbed = (Counting.rows, Counting.units)
    assert undisturbed[1] == 30

    Counting.rows = Counting.units = 0
    load_days(broken, 30)
    for unit in (9, 17, 26):
        cancel(broken, unit, *span)
    report = broken.replay(*span)

    assert content(broken) == content(whole)
    assert Counting.rows < 1.2 * undisturbed[0]
    assert Counting.units == 33  # each time the day in which it was cancelled, and nothing else
    ended = statuses(broken)
    assert [status for status, _ in ended.values()] == ["failed"] * 3 + ["finished"]
    [(_, rows)] = statuses(whole).values()
    assert sum(rows for _, rows in ended.values()) == rows
    assert ended["R5"][1] == report.row_count
    source = broken.reports()["R5"][0]
    assert (source["replay_from"][:10], source["replay_to"][:10]) == span
    assert (
        "Resumes the replay that run R2 began: 23 of 30 days are in the lake (2026-09-01 to "
        "2026-09-08 by run R2, 2026-09-09 to 2026-09-15 by run R3, 2026-09-16 to 2026-09-23 by "
        "run R4)." in broken.logged
    )


def test_a_finished_replay_starts_over(runs: Runs) -> None:
    span = load_days(runs, 3)
    for units in (3, 6):
        runs.replay(*span)
        assert Counting.units == units
    assert runs.state().replays.open == ()


def test_a_replay_resumes_between_two_days(runs: Runs) -> None:
    span = load_days(runs, 3)
    window = Window(*map(utc, span))
    days = replay_units(runs.context(RunKind.REPLAY, window), window)
    next(days)
    days.close()
    [lines] = [lines for lines in runs.reports().values() if lines[0]["replay"]]
    assert (lines[0]["status"], lines[0]["row_count"]) == ("failed", 7)
    assert lines[0]["partitions"] == [{"day": "2026-09-01", "hr": "07"}]
    assert "stopped" in lines[0]["error"]
    assert runs.replay(*span).rows_in == 16
    assert Counting.units == 3


def test_a_replay_resumes_after_its_process_died(runs: Runs) -> None:
    span = load_days(runs, 3)
    before = content(runs)
    faults = Faults(Fault.DEATH)
    runs.storage = FailingStorage(str(runs.root), faults)
    window = Window(*map(utc, span))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lease, "LIFETIME", timedelta(0))
        days = replay_units(runs.context(RunKind.REPLAY, window), window)
        next(days)
        faults.at = faults.changes + 3
        with pytest.raises(Broken):
            next(days)
    runs.storage = LocalStorage(str(runs.root))
    assert statuses(runs) == {}
    assert runs.replay(*span).rows_in == 16
    assert [status for status, _ in statuses(runs).values()] == ["failed", "finished"]
    assert content(runs) == before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda runs: runs.set(skip_events=["Cart"]), "with other settings"),
        (lambda runs: runs.set(dedup_days=3), "with other settings"),
        (lambda runs: request_type(runs, "track_order.n", "string"), "with other types"),
        # These change nothing in the tables.
        (lambda runs: runs.set(tracking="all", enabled=False, emr_cluster_id="j-2"), ""),
    ],
)
def test_with_other_settings_or_types_it_begins_at_its_first_day(
    runs: Runs, change: Callable[[Runs], None], why: str
) -> None:
    span = load_days(runs, 3)
    cancel(runs, 2, *span)
    change(runs)
    runs.replay(*span)
    assert Counting.units == 2 + (3 if why else 2)
    anew = any(f"(begun by run R2), but {why}: this one begins" in line for line in runs.logged)
    assert anew == bool(why)
    assert runs.state().replays.open == ()


def test_of_other_tables_or_another_range_it_begins_at_its_first_day(runs: Runs) -> None:
    span = load_days(runs, 3)
    cancel(runs, 2, *span)
    runs.replay(*span, "track_order")
    assert Counting.units == 2 + 3
    assert any("with other tables" in line for line in runs.logged)
    cancel(runs, 7, *span)
    runs.replay(span[0], "2026-09-03")
    assert Counting.units == 7 + 2


@pytest.mark.parametrize(
    ("day", "name", "units"),
    # Changed, the first day has lost a row with copies on the others: all three are one unit then.
    [("2026-09-01", "a", 2), ("2026-09-01", "new", 3), ("2026-09-03", "a", 2)],
    ids=["changed of a day that is done", "new to a day that is done", "of a day to come"],
)
def test_other_files_of_done_days_restart_it(runs: Runs, day: str, name: str, units: int) -> None:
    span = load_days(runs, 3)
    # The first day reads the folders up to the next one, so that the second is not in question.
    cancel(runs, 2, *span)
    runs.archive.day(day).file(name, order("other", f"{day}T07:00", n=9))
    runs.replay(*span)
    assert Counting.units == 2 + units
    assert "other" in runs.ids("track_order")
    anew = [text for text in runs.warnings if "begins anew" in text]
    assert bool(anew) == (day == "2026-09-01")


def test_files_that_syncs_load_meanwhile_do_not_restart_it(runs: Runs) -> None:
    span = load_days(runs, 3)
    cancel(runs, 2, *span)
    runs.archive.day("2026-09-01").file("new", order("new", "2026-09-01T07:00", n=9))
    assert runs.sync().row_count == 1
    runs.replay(*span)
    assert Counting.units == 2 + 1 + 2
    assert "new" in runs.ids("track_order")


def test_restarted_and_interrupted_again_it_resumes_from_the_restart(runs: Runs) -> None:
    span = load_days(runs, 4)
    cancel(runs, 4, *span)
    runs.archive.day("2026-09-02").file("a", order("other", "2026-09-02T07:00", n=9))
    cancel(runs, 6, *span)  # in its second day
    runs.replay(*span)
    assert Counting.units == 4 + 2 + 3
    assert runs.ids("track_order").count("other") == 1


def test_a_day_that_another_replay_rewrote_is_not_done(runs: Runs) -> None:
    span = load_days(runs, 3)
    cancel(runs, 3, *span)
    runs.set(skip_events=["Order"])
    runs.replay("2026-09-01", "2026-09-02")
    runs.set()
    runs.replay(*span)
    assert Counting.units == 3 + 1 + 3  # each day compares with those before it
    assert len(runs.ids("track_order")) == 3 * 6 + 1 + 3


@pytest.mark.parametrize(
    ("tables", "days_left"), [(["identify"], 2), (["identify", "track_order"], 3), ([], 3)]
)
def test_replays_of_other_tables_are_apart(runs: Runs, tables: list[str], days_left: int) -> None:
    runs.archive.day(f"{FIRST}").file("b", identify("i1", f"{FIRST}T07:00"))
    span = (*load_days(runs, 3), "track_order")
    cancel(runs, 2, *span)
    runs.replay("2026-09-01", "2026-09-02", *tables)
    Counting.units = 0
    runs.replay(*span)
    assert Counting.units == days_left


def test_a_replay_of_hours_resumes(runs: Runs) -> None:
    load_days(runs, 3)
    hours = ("2026-09-01T07:00", "2026-09-03T08:00", "track_order")
    cancel(runs, 2, *hours)
    runs.replay(*hours)
    assert Counting.units == 2 + 2


def test_two_concurrent_replays_share_the_days(runs: Runs) -> None:
    span = load_days(runs, 4)
    window = Window(*map(utc, span))
    first = replay_units(runs.context(RunKind.REPLAY, window), window)
    next(first)
    second = replay_units(runs.context(RunKind.REPLAY, window), window)
    next(second)
    rows = [unit.report.tables["shop.track_order"].day_rows for unit in first]
    assert rows == [{"2026-09-03": 7}, {"2026-09-04": 8}]  # not the second day once more
    list(second)
    assert {status for status, _ in statuses(runs).values()} == {"finished"}
    assert runs.state().replays.open == ()


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_the_switch_of_types_comes_at_the_end_of_the_last_launch(runs: Runs, at: int) -> None:
    for day in (1, 2, 3):
        date = f"2026-10-0{day}"
        runs.archive.day(date).file("a", order(f"m{day}", f"{date}T07:00", n=day))
    runs.load("2026-10-03", order("late", "2026-09-30T07:00", n=0), name="b")
    runs.flow = Counting
    request_type(runs, "track_order.n", "string")
    span = ("2026-10-01", "2026-10-04")
    cancel(runs, at, *span)  # the fourth is the day before the first, which is taken along
    runs.replay(*span)
    assert Counting.units == at + 5 - at
    texts = {"m1": "1", "m2": "2", "m3": "3", "late": "0"}
    assert seen(runs, "track_order.n") == ("string", texts)
    assert runs.state().replays.open == ()


def test_a_request_that_changed_and_changed_back_restarts_it(runs: Runs) -> None:
    span = (load_days(runs, 3)[0], "2026-09-05")
    request_type(runs, "track_order.n", "string")
    cancel(runs, 2, *span)
    request_type(runs, "track_order.n", "decimal")
    request_type(runs, "track_order.n", "string")
    runs.replay(*span)
    assert any("no longer exists in the requested types" in text for text in runs.warnings)
    assert seen(runs, "track_order.n")[0] == "string"

"""Which raw files a run reads: late ones, changed ones, broken ones, and those of some days."""

import os
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.load.stage_job import RawFile
from eventlake.rules.errors import ConsentNeeded, UsageError
from eventlake.runs.dry_run import dry_sync
from eventlake.runs.plan import plan_replay, plan_sync, raw_files, replay_days
from eventlake.runs.replay import replay_units
from eventlake.runs.unit import TASK_BYTES, Unit, Window, evenly, tasks
from eventlake.state.manifest import RunKind
from tests.support.lakes.archive import order
from tests.support.lakes.runs import Runs, utc

DAY = date.fromisoformat


def planned(runs: Runs, *days: str) -> list[tuple[str, list[str]]]:
    """Label and files of each unit that a sync would do now."""
    span = (DAY(days[0]), DAY(days[1])) if days else None
    plan = plan_sync(runs.storage, runs.source, runs.state(), span)
    return [(unit.label, names(unit)) for unit in plan.units]


def names(unit: Unit) -> list[str]:
    return [file.path.rsplit("/", 1)[-1] for file in unit.files]


def test_a_missing_archive_is_a_mistake_and_nothing_is_written(runs: Runs) -> None:
    with pytest.raises(UsageError, match=r"segment-logs/S1 does not exist.*set `raw`"):
        runs.sync()
    with pytest.raises(UsageError, match="does not exist"):
        runs.replay("2026-10-01", "2026-10-02")
    assert list(runs.root.iterdir()) == []


def test_an_empty_archive_is_a_warning_and_a_finished_run(runs: Runs) -> None:
    runs.archive.folder.mkdir(parents=True)
    (runs.archive.folder / "dummy-object.txt").write_text("hello")
    assert runs.sync().rows_in == 0
    assert runs.warnings == ["segment-logs/S1 holds no raw files yet."]
    [[line]] = runs.reports().values()
    assert (line["status"], line["row_count"]) == ("finished", 0)


def test_the_backlog_goes_day_folder_by_day_folder_oldest_first(runs: Runs) -> None:
    runs.archive.day("2026-10-02").file("b", order("m2", "2026-10-02T07:00"))
    runs.archive.day("2026-10-02").file("a", order("m3", "2026-10-01T07:00"))
    runs.archive.day("2026-10-01").file("z", order("m1", "2026-10-01T07:00"))
    expected = [("2026-10-01", ["z.gz"]), ("2026-10-02", ["a.gz", "b.gz"])]
    assert planned(runs) == [(f"day folder {day}", files) for day, files in expected]
    runs.sync()
    assert planned(runs) == []


@pytest.mark.parametrize(
    ("fit", "units"),
    [
        (9.0, ["day folders 2026-10-01 to 2026-10-04"]),
        (2.5, ["day folders 2026-10-01 to 2026-10-02", "day folders 2026-10-03 to 2026-10-04"]),
        (1.0, [f"day folder 2026-10-0{n}" for n in (1, 2, 3, 4)]),
        (0.1, [f"day folder 2026-10-0{n}" for n in (1, 2, 3, 4)]),
    ],
)
def test_files_that_fit_one_unit_are_one_unit_whatever_their_folders(
    runs: Runs, fit: float, units: list[str]
) -> None:
    for day in range(1, 5):
        path = runs.archive.day(f"2026-10-0{day}").file("a", order("m", f"2026-10-0{day}"))
    runs.set(unit_bytes=int(fit * path.stat().st_size) or 1)
    assert [label for label, _ in planned(runs)] == units


def test_columns_of_one_sync_are_inferred_from_all_its_folders(runs: Runs) -> None:
    runs.set(unit_bytes=1_000_000)
    runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T23:50", price=12))
    report = runs.load("2026-10-02", order("m2", "2026-10-02T00:05", price=12.5))
    assert dict(c[:2] for c in runs.columns("track_order"))["properties_price"] == "decimal(38,6)"
    assert report.tables["shop.track_order"].day_rows == {"2026-10-01": 1, "2026-10-02": 1}
    assert runs.state().manifest == 1
    paths = [file.path for file in runs.storage.files("sync_tracking_datasets")]
    assert sum("records_loaded" in path for path in paths) == 1


def test_only_raw_files_in_day_folders_are_read(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    for name in ("a.json", "b.jsonl", "c.gz", "d.txt", "e.gz.tmp", ".f.gz"):
        day.raw(name, b"")
    for folder in ("old", "1790812800001", "²", "9" * 30, "99999999999999" + "0" * 8):
        stray = runs.archive.folder / folder / "x.gz"
        stray.parent.mkdir()
        stray.write_bytes(b"")
    assert planned(runs) == [("day folder 2026-10-01", ["a.json", "b.jsonl", "c.gz"])]


def test_a_late_file_is_loaded_with_any_hours(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T07:00"))
    runs.load("2026-10-05", order("m2", "2026-10-05T07:00"))
    runs.archive.day("2026-10-01").file("late", order("m3", "2026-09-29T23:00"))
    runs.archive.day("2026-10-05").file("late", order("m4", "2026-10-01T07:00"))
    days = ("2026-10-01", "2026-10-05")
    assert planned(runs) == [(f"day folder {day}", ["late.gz"]) for day in days]
    runs.sync()
    assert runs.ids("track_order") == ["m1", "m2", "m3", "m4"]
    assert ("2026-09-29", "23") in runs.partitions("track_order")
    assert any("1 row received before the source's start" in w for w in runs.warnings)


def test_syncs_keep_to_the_oldest_folder_there_was_at_first(runs: Runs) -> None:
    runs.load("2026-10-02", order("m1", "2026-10-02T07:00"))
    runs.archive.day("2026-10-01").file("a", order("m2", "2026-10-01T07:00"))
    assert planned(runs) == []
    runs.set(start="2026-10-01")
    assert planned(runs) == [("day folder 2026-10-01", ["a.gz"])]


def test_syncs_ignore_folders_before_the_start_that_is_set(tmp_path: Path) -> None:
    runs = Runs(tmp_path, start="2026-10-02")
    for day in ("2026-10-01", "2026-10-02", "2026-10-03"):
        runs.archive.day(day).file("a", order(day, f"{day}T07:00"))
    assert planned(runs, "2026-10-01", "2026-10-02") == [("day folder 2026-10-02", ["a.gz"])]
    runs.sync()
    assert runs.ids("track_order") == ["2026-10-02", "2026-10-03"]


def test_a_sync_of_some_days_takes_their_folders_and_leaves_the_rest(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02", "2026-10-03", "2026-10-04"):
        runs.archive.day(day).file("a", order(day, f"{day}T07:00"))
    expected = [(f"day folder 2026-10-0{n}", ["a.gz"]) for n in (2, 3)]
    assert planned(runs, "2026-10-02", "2026-10-03") == expected
    runs.sync((DAY("2026-10-02"), DAY("2026-10-02")))
    assert runs.ids("track_order") == ["2026-10-02"]
    runs.sync()
    assert len(runs.ids("track_order")) == 4


def test_a_file_that_changed_after_loading_is_a_warning_and_stays_as_it_was(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", order("m1", "2026-10-01T07:00"))
    runs.sync()
    day.file("a", order("m1", "2026-10-01T07:00"), order("m2", "2026-10-01T07:00"))
    for _ in range(2):
        runs.warnings.clear()
        runs.sync()
        [warning] = runs.warnings
        assert "a.gz changed after it was loaded" in warning
        assert "Replay its days" in warning
    assert runs.ids("track_order") == ["m1"]
    runs.replay("2026-10-01", "2026-10-02", "track_order")
    runs.warnings.clear()
    runs.sync()
    assert "a.gz changed after it was loaded" in runs.warnings.pop()  # other tables may lack rows
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.ids("track_order") == ["m1", "m2"]
    runs.warnings.clear()
    runs.sync()
    assert runs.warnings == []
    day.file("a", order("m3", "2026-10-01T07:00"))
    runs.sync()
    assert "a.gz changed after it was loaded" in runs.warnings.pop()


def test_a_copied_archive_has_not_changed(runs: Runs) -> None:
    """`cp -r` gives files another time. Other bytes of the same size are a change all the same."""
    day = runs.archive.day("2026-10-01")
    lines = [order(id, "2026-10-01T07:00") for id in ("m1", "m2", "m3")]
    files = [day.file(str(number), line) for number, line in enumerate(lines)]
    files.append(day.file("cut", order("m4", "2026-10-01T07:00"), keep=0.7))
    runs.sync()
    runs.warnings.clear()
    runs.replay("2026-10-01", "2026-10-02", accept=False)
    clock = runs.archive.clock
    for file in files:
        clock[0] += 1
        os.utime(file, (clock[0], clock[0]))
    dry = [*dry_sync(runs.context())]
    runs.sync()
    assert (dry, runs.warnings) == ([], [])
    assert sum("comparing their bytes" in text for text in runs.logged) == 1
    runs.logged.clear()
    runs.sync()
    runs.replay("2026-10-01", "2026-10-02", accept=False)
    assert not [text for text in runs.logged if "comparing" in text]

    content = files[0].read_bytes()
    day.raw(files[0].name, content[:-1] + bytes([content[-1] ^ 1]))
    for _ in range(2):
        runs.sync()
        assert "0.gz changed after it was loaded" in runs.warnings.pop()
    assert sum("comparing their bytes" in text for text in runs.logged) == 1
    with pytest.raises(ConsentNeeded, match=r"0\.gz"):
        runs.replay("2026-10-01", "2026-10-02", accept=False)


def test_a_replay_of_a_copied_archive_resumes(runs: Runs) -> None:
    days = ("2026-10-01", "2026-10-02")
    for day in days:
        runs.archive.day(day).file("a", order(day, f"{day}T07:00"))
    runs.sync()
    units = replay_units(runs.context(RunKind.REPLAY), Window(utc(days[0]), utc("2026-10-03")))
    next(units)
    units.close()
    for day in days:
        os.utime(runs.archive.day(day).folder / "a.gz", (1, 1))
    runs.replay(days[0], "2026-10-03", accept=False)
    assert any("Resumes the replay" in text for text in runs.logged)


def test_a_broken_file_that_is_replaced_loads_only_the_rest(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    lines = [order(f"m{n:03}", f"2026-10-01T{n // 25:02}:00") for n in range(300)]
    day.file("a", *lines, keep=0.5)
    first = runs.sync()
    read = first.row_count
    assert 0 < read < 300
    assert (first.rejected, first.rows_in) == (1, read + 1)
    assert runs.ledger()["a.gz"].broken
    [warning] = runs.warnings
    assert (
        f"a.gz: the file is cut off before its end. {read} lines before it could be read" in warning
    )
    assert runs.sync().rows_in == 0  # nothing new while it stays broken
    day.file("a", *lines)
    rest = runs.sync()
    assert (rest.row_count, rest.rows_in, rest.duplicates) == (300 - read, 300 - read, 0)
    assert len(runs.ids("track_order")) == 300
    entry = runs.ledger()["a.gz"]
    assert (entry.broken, entry.lines) == (None, 300)
    # All its hours are known, so that a replay of the first of them still finds it.
    assert entry.hours == tuple(f"2026-10-01T{hour:02}" for hour in range(12))
    assert runs.replay("2026-10-01T00:00", "2026-10-01T02:00").row_count == 50


def test_a_replay_reads_the_files_that_have_rows_of_its_days(runs: Runs) -> None:
    first, second = runs.archive.day("2026-10-01"), runs.archive.day("2026-10-02")
    first.file("early", order("m1", "2026-10-01T05:00"))
    first.file("both", order("m2", "2026-10-01T05:00"), order("m3", "2026-10-02T05:00"))
    second.file("late", order("m4", "2026-10-01T06:00"))
    second.file("own", order("m5", "2026-10-02T06:00"))
    runs.sync()
    runs.archive.day("2026-10-09").file("unknown", order("m6", "2026-10-09T05:00"))
    second.file("unknown", order("m7", "2026-10-02T05:00"))

    def files(start: str, end: str) -> list[list[str]]:
        days = replay_days(runs.source, Window(utc(start), utc(end)))
        return [names(plan_replay(raw_files(runs.storage, runs.source), day, None)) for day in days]

    of_first = ["both.gz", "early.gz", "late.gz", "unknown.gz"]
    assert files("2026-10-01", "2026-10-03") == [of_first, ["both.gz", "own.gz", "unknown.gz"]]
    assert files("2026-10-01T05:00", "2026-10-01T06:00") == [["both.gz", "early.gz", "unknown.gz"]]
    assert files("2026-10-12", "2026-10-13") == [[]]


def test_a_replay_takes_the_late_rows_of_a_file_that_changed(runs: Runs) -> None:
    late = order("m1", "2026-10-01T07:00")
    runs.load("2026-10-05", late, name="late")
    runs.archive.day("2026-10-05").file("late", late, order("m2", "2026-10-01T07:30"))
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.ids("track_order") == ["m1", "m2"]


def test_a_replay_goes_day_by_day(runs: Runs) -> None:
    window = Window(utc("2026-10-01T22:00"), utc("2026-10-03T02:00"))
    times = ("2026-10-01T22", "2026-10-02T00", "2026-10-03T00", "2026-10-03T02")
    expected = [f"{start} to {end}" for start, end in pairwise(times)]
    assert [str(day) for day in replay_days(runs.source, window)] == expected


@pytest.mark.parametrize(
    ("layout", "start", "end", "whole"),
    [
        ("day/hour", "2026-10-01T07:30", "2026-10-01T09:00", "hour"),
        ("day", "2026-10-01T00:00", "2026-10-01T09:00", "day"),
        ("year/month/day", "2026-10-01T07:00", "2026-10-02T00:00", "day"),
    ],
)
def test_a_replay_of_a_part_of_a_partition_is_refused(
    tmp_path: Path, layout: str, start: str, end: str, whole: str
) -> None:
    runs = Runs(tmp_path, date_partition=layout)
    lines = (order("m1", "2026-10-01T07:00"), order("m2", "2026-10-01T10:00"))
    runs.load("2026-10-01", *lines)
    with pytest.raises(UsageError, match=f"Begin and end with a full {whole}"):
        runs.replay(start, end)
    assert runs.ids("track_order") == ["m1", "m2"]


def test_tasks_share_the_files_evenly_each_in_order() -> None:
    files = [RawFile(n, f"{n}", size, "") for n, size in enumerate([5, 1, 4, 2, 3])]
    shares = tasks(files, slots=2)
    assert [[file.number for file in share] for share in shares] == [[0, 1, 3], [2, 4]]
    assert len(tasks(files, slots=9)) == 5
    assert tasks([], slots=2) == []
    assert len(tasks([RawFile(n, "", TASK_BYTES, "") for n in range(5)], slots=2)) == 5


def test_the_heaviest_come_first_and_no_share_is_empty() -> None:
    assert evenly([1, 7, 5, 4, 2], lambda weight: weight, 2) == [[7, 2, 1], [5, 4]]
    assert evenly([3], lambda weight: weight, 4) == [[3]]
    assert evenly([], lambda weight: weight, 4) == []


@given(st.lists(st.integers(0, 100)), st.integers(1, 8))
def test_shares_are_complete_and_even(weights: list[int], count: int) -> None:
    shares = evenly(weights, lambda weight: weight, count)
    assert sorted(weight for share in shares for weight in share) == sorted(weights)
    loads = [sum(share) for share in shares] + [0] * (count - len(shares))
    assert max(loads) - min(loads) <= max(weights, default=0)

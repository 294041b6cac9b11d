"""How files are published, and how files that were never published are cleaned up."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventlake.rules import paths
from eventlake.runs.open_runs import OpenRun
from eventlake.state.lease import Holder, myself
from eventlake.storage.documents import encode
from tests.support.faults.failing_storage import lying, needed
from tests.support.faults.flows import Raises, flow, overtaken
from tests.support.lakes.archive import Line, identify, order, track
from tests.support.lakes.runs import SOURCE_ID, CleanAfter, Runs


def two_days(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", order(day, f"{day}T07:00"))
    runs.sync()


def noted(runs: Runs) -> list[str]:
    return [file.name for file in runs.storage.files(paths.abandoned(SOURCE_ID))]


def failing_replay(runs: Runs, end: str = "2026-10-02", at: int = 1) -> None:
    runs.flow = flow(after_load=Raises(OSError("the network is gone"), at=at))
    with pytest.raises(OSError, match="network"):
        runs.replay("2026-10-01", end)


def test_only_unpublished_files_of_a_failed_run_go(runs: Runs, clean_after: CleanAfter) -> None:
    two_days(runs)

    failing_replay(runs, "2026-10-03", at=2)
    assert noted(runs) == ["R2.json"]
    left = lying(runs) - needed(runs)
    assert any("/versions/R2-1/" in path for path in left)
    assert any("/ids/" in path and "R2-1" in path for path in left)
    assert not clean_after(23)
    cleaned = clean_after(25)
    # What the first day replaced, and what the second day wrote in vain.
    assert cleaned.replaced.files and cleaned.abandoned.files
    assert lying(runs) == needed(runs)
    assert runs.ids("track_order") == ["2026-10-01", "2026-10-02"]
    assert any("/versions/R2/" in path for path in lying(runs))
    assert noted(runs) == []
    assert not clean_after(25)


def test_the_loser_of_a_race_leaves_only_its_result(runs: Runs, clean_after: CleanAfter) -> None:
    two_days(runs)
    runs.flow = overtaken(runs, runs.sync)
    runs.archive.day("2026-10-02").file("b", order("late", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    assert noted(runs) == ["R2.json"]
    assert lying(runs) > needed(runs)
    clean_after(25)
    assert lying(runs) == needed(runs)
    assert runs.ids("track_order") == ["2026-10-01", "2026-10-02", "late"]


def test_published_files_keep_their_own_grace_period(runs: Runs, clean_after: CleanAfter) -> None:
    """A run that lost a race once, and published after all; a replay replaces it a day later."""
    two_days(runs)
    runs.flow = overtaken(runs, runs.sync)
    runs.archive.day("2026-10-02").file("b", order("late", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    clean_after(0)
    published = {path for path in needed(runs) if "/versions/R2-1/" in path}
    assert published
    runs.replay("2026-10-01", "2026-10-02")
    path = f"{paths.abandoned(SOURCE_ID)}/R2.json"
    data = runs.storage.read(path) or b""
    runs.storage.write(path, data.replace(b'"since":"2', b'"since":"1'))  # long ago
    assert clean_after(0).abandoned
    assert published <= lying(runs)
    assert clean_after(25).replaced
    assert lying(runs) == needed(runs)


def test_index_files_of_another_run_at_work_are_kept(runs: Runs, clean_after: CleanAfter) -> None:
    two_days(runs)
    failing_replay(runs)

    def clean_up(_: object) -> None:
        assert clean_after(25).abandoned.files

    runs.flow = flow(before_load=clean_up)
    runs.load("2026-10-03", order("new", "2026-10-03T07:00"))
    assert [*runs.index()] == ["2026-10-01", "2026-10-02", "2026-10-03"]
    assert needed(runs) <= lying(runs)


@pytest.mark.parametrize("alive", [True, False])
def test_files_of_open_runs_stay(runs: Runs, clean_after: CleanAfter, alive: bool) -> None:
    two_days(runs)
    failing_replay(runs)
    dead = Holder("another-machine", 1, datetime.now(UTC) - timedelta(minutes=5))
    again = OpenRun(runs.context().facts, 0, myself() if alive else dead)
    runs.storage.write(paths.open_run(SOURCE_ID, "R2"), encode(again))
    before = lying(runs)
    assert not clean_after(25)
    assert lying(runs) == before > needed(runs)


def test_nothing_is_removed_during_a_commit(runs: Runs, clean_after: CleanAfter) -> None:
    two_days(runs)
    failing_replay(runs)
    before = lying(runs)
    runs.storage.write(paths.manifest(SOURCE_ID, runs.state().manifest + 1), b"just committed")
    assert not clean_after(25).abandoned
    assert lying(runs) == before


TABLE = "segment-data/data/S1/segment_type=track_order"
HOUR_7 = f"{TABLE}/day=2026-10-01/hr=07"
HOUR_8 = f"{TABLE}/day=2026-10-01/hr=08"


def moved(run: str, hour: str = "07", day: str = "2026-10-01") -> str:
    return f"segment-data/data/S1/versions/{run}/segment_type=track_order/day={day}/hr={hour}"


def orders(*names: str, at: str = "2026-10-01T07:00") -> list[Line]:
    return [order(name, at) for name in names]


def test_the_first_publication_goes_into_the_folder_of_the_partition(runs: Runs) -> None:
    runs.load("2026-10-01", *orders("m1"), *orders("m2", at="2026-10-01T08:00"))
    assert runs.files("track_order") == {HOUR_7: ["R1-0-0.parquet"], HOUR_8: ["R1-0-0.parquet"]}
    assert runs.table("track_order").location == TABLE


@pytest.mark.usefixtures("small_files")
def test_the_first_publication_does_so_also_with_several_files(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", *orders("m1"))
    day.file("b", *orders("m2"))
    assert runs.sync().tables["shop.track_order"].files_written == 2
    assert runs.files("track_order") == {HOUR_7: ["R1-0-0.parquet", "R1-0-1.parquet"]}


def test_one_file_more_goes_into_the_folder_too(runs: Runs) -> None:
    runs.load("2026-10-01", *orders("m1"), *orders("m2", at="2026-10-01T08:00"))
    before = runs.partitions("track_order")
    runs.load("2026-10-01", *orders("m3"), name="b")
    after = runs.partitions("track_order")
    seven = ["R1-0-0.parquet", "R2-0-0.parquet"]
    assert runs.files("track_order") == {HOUR_7: seven, HOUR_8: ["R1-0-0.parquet"]}
    grown = after["2026-10-01", "07"]
    assert (grown.rows, grown.files, grown.version) == (2, 2, 2)
    assert after["2026-10-01", "08"] == before["2026-10-01", "08"]


@pytest.mark.usefixtures("small_files")
def test_several_files_more_move_the_whole_partition(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", *orders("m1"), *orders("m2", at="2026-10-01T08:00"))
    runs.sync()
    eight = runs.partitions("track_order")["2026-10-01", "08"]
    day.file("b", *orders("m3"))
    day.file("c", *orders("m4"))
    runs.sync()
    files = ["R1-0-0.parquet", "R2-0-0.parquet", "R2-0-1.parquet"]
    assert runs.files("track_order") == {moved("R2"): files, HOUR_8: ["R1-0-0.parquet"]}
    seven = runs.partitions("track_order")["2026-10-01", "07"]
    assert (seven.rows, seven.files) == (3, 3)
    assert seven.bytes == sum(file.size for file in runs.storage.files(moved("R2")))
    assert runs.partitions("track_order")["2026-10-01", "08"] == eight
    # Readers of the old location still find what it held.
    assert [file.name for file in runs.storage.files(HOUR_7)] == ["R1-0-0.parquet"]
    assert runs.ids("track_order") == ["m1", "m2", "m3", "m4"]


def test_one_file_more_follows_a_partition_that_has_moved(runs: Runs) -> None:
    runs.load("2026-10-01", *orders("m1"))
    runs.replay("2026-10-01", "2026-10-02")
    runs.load("2026-10-01", *orders("m2"), name="b")
    assert runs.files("track_order") == {moved("R2"): ["R2-0-0.parquet", "R3-0-0.parquet"]}


def test_a_replay_moves_its_partitions_and_touches_no_other(runs: Runs) -> None:
    runs.load(
        "2026-10-01",
        *orders("m1"),
        *orders("m2", at="2026-10-01T08:00"),
        identify("m3", "2026-10-01T07:00"),
    )
    eight = runs.partitions("track_order")["2026-10-01", "08"]
    people = runs.partitions("identify")
    runs.replay("2026-10-01T07:00", "2026-10-01T08:00", "track_order")
    files = {moved("R2"): ["R2-0-0.parquet"], HOUR_8: ["R1-0-0.parquet"]}
    assert runs.files("track_order") == files
    assert runs.partitions("track_order")["2026-10-01", "08"] == eight
    assert runs.partitions("identify") == people
    assert [file.name for file in runs.storage.files(HOUR_7)] == ["R1-0-0.parquet"]


def test_each_day_of_a_replay_has_a_folder_of_its_own(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", *orders(day, at=f"{day}T07:00"))
    runs.sync()
    runs.replay("2026-10-01", "2026-10-03")
    assert list(runs.files("track_order")) == [moved("R2"), moved("R2-1", day="2026-10-02")]


def test_a_replay_that_finds_no_row_drops_the_partition(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    gone = day.file("a", *orders("m1"), identify("m2", "2026-10-01T07:00"))
    day.file("b", *orders("m3", at="2026-10-01T08:00"))
    runs.sync()
    gone.unlink()
    report = runs.replay("2026-10-01", "2026-10-02")
    assert report.row_count == 1
    assert list(runs.partitions("track_order")) == [("2026-10-01", "08")]
    assert runs.partitions("identify") == {}
    assert runs.state().rows == {"shop.identify": 0, "shop.track_order": 1}
    # A second time there is nothing left to drop.
    runs.replay("2026-10-01", "2026-10-02")
    assert list(runs.partitions("track_order")) == [("2026-10-01", "08")]


def test_a_dropped_partition_returns_without_its_old_files(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    gone = day.file("a", *orders("m1"))
    runs.sync()
    gone.unlink()
    runs.replay("2026-10-01", "2026-10-02")
    assert [file.name for file in runs.storage.files(HOUR_7)] == ["R1-0-0.parquet"]
    day.file("b", *orders("m2"))
    runs.sync()
    assert runs.ids("track_order") == ["m2"]
    assert runs.files("track_order") == {moved("R3"): ["R3-0-0.parquet"]}


def test_another_database_or_prefix_is_a_new_place_that_shares_no_folder(runs: Runs) -> None:
    runs.load("2026-10-01", *orders("m1"))
    runs.set(database="new_shop")
    runs.load("2026-10-01", *orders("m2"), name="b")
    assert runs.ids("track_order") == ["m2"]
    assert runs.files("track_order") == {moved("R2"): ["R2-0-0.parquet"]}
    assert [file.name for file in runs.storage.files(HOUR_7)] == ["R1-0-0.parquet"]
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.ids("track_order") == ["m1", "m2"]
    runs.set()
    assert runs.ids("track_order") == ["m1"]
    runs.set(table_prefix="web")
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.tables() == ["track_order", "web_track_order"]
    assert runs.ids("web_track_order") == ["m1", "m2"]
    assert runs.table("web_track_order").comment == "Order"


def test_a_table_of_nothing_but_duplicates_is_not_created(runs: Runs) -> None:
    report = runs.load(
        "2026-10-01",
        *orders("m1"),
        track("Other", "m1", "2026-10-01T07:30"),
        identify(None, "2026-10-01"),
    )
    assert runs.tables() == ["track_order"]
    assert (report.rows_in, report.row_count, report.duplicates, report.rejected) == (3, 1, 1, 1)


def test_rows_are_in_order_of_time_then_position(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("b", *orders("m4", "m1"), *orders("m2", at="2026-10-01T07:00:01"))
    day.file("a", *orders("m3", at="2026-10-01T07:00:01"), *orders("m5"))
    runs.sync()
    found = [row["message_id"] for row in runs.rows("track_order")]
    assert found == ["m5", "m4", "m1", "m3", "m2"]


def test_other_folders_of_the_storage_are_left_alone(runs: Runs, tmp_path: Path) -> None:
    stranger = tmp_path / "finance" / "2026.csv"
    stranger.parent.mkdir()
    stranger.write_text("1,2")
    runs.load("2026-10-01", *orders("m1"))
    ours = {"segment-data", "segment-logs", "segment-stage", "sync_tracking_datasets", "logs"}
    assert {path.name for path in tmp_path.iterdir()} <= {*ours, "finance"}
    assert stranger.read_text() == "1,2"

"""What files are called while they wait, and afterwards."""

from eventlake.rules import paths
from eventlake.rules.names import TABLE_LENGTH


def test_a_file_that_waits_says_what_it_is_and_gets_its_own_name_back() -> None:
    name = paths.waiting_name("track_order", "day=2026-10-01/hr=07", "R1-0-3.parquet")
    assert name == "segment_type=track_order,day=2026-10-01,hr=07,R1-0-3.parquet"
    waiting = f"segment-stage/S1/R1/0/{name}"
    assert paths.published_name(waiting) == "R1-0-3.parquet"
    assert paths.published_name(paths.own_path(waiting, "8f3a0")) == "R1-0-3.parquet"
    assert paths.waits(waiting) and not paths.waits("segment-data/data/S1/day=2026-10-01/R1-0")


def test_tables_with_the_longest_names_have_room_for_the_rest_and_are_told_apart() -> None:
    partition, file = "year=2026/month=10/day=01/hr=07", f"{10**18}-100-1000.parquet"
    names = {
        paths.waiting_name("t" * (TABLE_LENGTH - 1) + last, partition, file) for last in ("a", "b")
    }
    assert len(names) == 2
    hidden = len("..") + 32 + 8  # as long as it is written, with what makes that name its own
    assert max(map(len, names)) + hidden <= 255

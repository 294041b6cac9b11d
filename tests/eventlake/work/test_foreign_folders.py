"""A lake beside tables that another product has kept at the same paths."""

from tests.support.lakes.archive import identify, track
from tests.support.lakes.runs import Runs

OTHERS = "segment-data/data/S1/segment_type=identify/day=2026-10-01/hr=07/part-0000.parquet"


def test_files_of_others_are_neither_read_nor_joined(runs: Runs) -> None:
    runs.storage.write(OTHERS, b"rows of another product")
    day = runs.archive.day("2026-10-01")
    day.file("a", identify("m1", "2026-10-01T07:00"), track("Order", "m2", "2026-10-01T07:00"))
    runs.sync()
    day.file("b", identify("m3", "2026-10-01T07:10"), identify("m4", "2026-10-01T08:00"))
    runs.sync()

    assert [row["message_id"] for row in runs.rows("identify")] == ["m1", "m3", "m4"]
    assert sorted(runs.files("identify")) == [
        "segment-data/data/S1/_v/R1/segment_type=identify/day=2026-10-01/hr=07",
        "segment-data/data/S1/_v/R2/segment_type=identify/day=2026-10-01/hr=08",
    ]
    assert list(runs.files("track_order")) == [
        "segment-data/data/S1/segment_type=track_order/day=2026-10-01/hr=07"
    ]
    assert runs.storage.read(OTHERS) == b"rows of another product"
    assert [line for line in runs.logged if "holds files of other tables" in line] == [
        "day folder 2026-10-01: segment-data/data/S1 holds files of other tables called identify. "
        "They stay as they are; ours go to folders of their own."
    ]

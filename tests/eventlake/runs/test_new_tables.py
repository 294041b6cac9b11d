"""New tables are made while the catalog has room for them, and under names that are free."""

from pathlib import Path

import pytest

from eventlake.catalog.base import CatalogTable
from eventlake.rules import paths
from eventlake.rules.errors import InvalidSetting
from tests.support.faults.flows import flow
from tests.support.lakes.archive import identify, page, track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import Runs


def three_tables(runs: Runs) -> None:
    """A table in each file; tables are made in the order of the files."""
    day = runs.archive.day("2026-10-01")
    day.file(
        "a", track("Order", "m1", "2026-10-01T07:00"), track("Order", "m2", "2026-10-01T07:30")
    )
    day.file("b", page("m3", "2026-10-01T07:00"))
    day.file("c", identify("m4", "2026-10-01T07:00"), track("Order", "m5", "2026-10-01T07:00"))


@pytest.mark.parametrize("tasks", [InProcess, flow(slots=3)], ids=["InProcess", "ThreeTasks"])
def test_past_the_limit_of_tables_events_are_rejected_until_there_is_room(
    tmp_path: Path, tasks: type[InProcess]
) -> None:
    runs = Runs(tmp_path, limits={"catalog_tables": 3})
    runs.flow = tasks
    runs.catalog.ensure_database("shop")
    runs.catalog.create_table(CatalogTable("shop", "of_somebody_else", (), ("day",), "elsewhere"))
    three_tables(runs)
    report = runs.sync()
    assert runs.tables() == ["of_somebody_else", "page", "track_order"]
    assert (report.row_count, report.rejected) == (4, 1)
    assert any("the catalog has reached its limit" in warning for warning in runs.warnings)
    runs.set(limits={"catalog_tables": 4})
    runs.replay("2026-10-01", "2026-10-02")
    assert runs.ids("identify") == ["m4"]


def test_known_tables_go_on_when_the_catalog_is_full(tmp_path: Path) -> None:
    runs = Runs(tmp_path, limits={"catalog_tables": 1})
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    runs.sync()
    runs.archive.day("2026-10-02").file(
        "b", track("Order", "m2", "2026-10-02T07:00"), page("m3", "2026-10-02T07:00")
    )
    report = runs.sync()
    assert (report.row_count, report.rejected) == (1, 1)
    assert runs.tables() == ["track_order"]


def test_no_database_is_made_past_the_limit_of_databases(tmp_path: Path) -> None:
    runs = Runs(tmp_path, limits={"catalog_databases": 1})
    runs.catalog.ensure_database("of_somebody_else")
    three_tables(runs)
    report = runs.sync()
    assert (report.row_count, report.rejected) == (0, 5)
    assert "shop" not in runs.catalog.databases()


def test_a_table_that_the_lake_did_not_make_is_not_written_to(runs: Runs) -> None:
    runs.catalog.ensure_database("shop")
    theirs = CatalogTable("shop", "page", (), ("day", "hr"), "elsewhere")
    runs.catalog.create_table(theirs)
    three_tables(runs)
    with pytest.raises(InvalidSetting, match=r"shop\.page is in the catalog, but was not made by"):
        runs.sync()
    assert runs.catalog.tables("shop") == [theirs]
    assert runs.storage.read(paths.manifest("S1", 1)) is None
    [[line]] = runs.reports().values()
    assert line["error_code"] == "Segment.InvalidSettings"
    runs.set(table_prefix="ours")
    runs.sync()
    assert runs.tables() == ["ours_identify", "ours_page", "ours_track_order", "page"]


def test_a_table_that_another_run_has_just_created_is_not_an_invalid_setting(runs: Runs) -> None:
    def overtake(*_: object) -> None:
        if runs.flow is not InProcess:
            runs.flow = InProcess
            runs.storage.delete(paths.lease("S1"))  # as if it had expired
            runs.sync()

    three_tables(runs)
    runs.flow = flow(after_stage=overtake)
    assert runs.sync().row_count == 0
    assert runs.tables() == ["identify", "page", "track_order"]
    assert {lines[0]["status"] for lines in runs.reports().values()} == {"finished"}


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

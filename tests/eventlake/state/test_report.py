"""The lines of a report from what a run did: times, durations, and what is left out."""

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from eventlake.rules.counts import NewColumn, TableReport, UnitReport
from eventlake.state.report import Failure, RunFacts, report_json, report_lines

START = datetime(2026, 10, 1, 7, 0, 0, 44_999, tzinfo=UTC)
RUN = RunFacts("W1", "S1", "shop", "1597581273464733073", START, "lake", dagster_run_id="d1")
DONE = UnitReport(
    tables={
        "shop.page": TableReport(
            table="page",
            name="web_page",
            rows_in=3,
            row_count=2,
            duplicates=1,
            partitions=({"day": "2026-10-01", "hr": "07"},),
            new_columns=(NewColumn("a", "bigint"),),
            rescued_cells=4,
            files_written=1,
            bytes_written=100,
        ),
        "shop.identify": TableReport(table="identify", name="identify", rows_in=0),
    },
    rows_in=5,
    duplicates=1,
    rejected=2,
    raw_files=1,
)


def test_times_have_milliseconds_and_are_cut_not_rounded() -> None:
    [source, *_] = report_lines(RUN, DONE, START + timedelta(milliseconds=1))
    assert source.start_time == "2026-10-01 07:00:00.044"
    assert source.finish_time == "2026-10-01 07:00:00.045"
    assert source.day == "2026-10-01"


@pytest.mark.parametrize(("seconds", "minutes"), [(0, 0), (59.9, 0), (60, 1), (179, 2), (3600, 60)])
def test_durations_are_whole_minutes(seconds: float, minutes: int) -> None:
    lines = report_lines(RUN, DONE, START + timedelta(seconds=seconds))
    assert {line.duration_mins for line in lines} == {minutes}


def test_the_source_sums_its_tables_and_each_table_has_its_line() -> None:
    source, page, identify = report_lines(RUN, DONE, START)
    assert (source.row_count, source.rows_in, source.bytes_written) == (2, 5, 100)
    assert source.rescued_cells == 4
    assert page.table_name == "web_page"
    assert page.new_columns == (NewColumn("a", "bigint"),)
    assert identify.new_columns is msgspec.UNSET
    assert {line.dagster_run_id for line in (source, page, identify)} == {"d1"}


def test_a_failed_run_has_the_line_of_the_source_and_its_error() -> None:
    failure = Failure("Segment.Internal", "it broke")
    [source] = report_lines(RUN, DONE, START, failure)
    assert (source.status, source.error_code) == ("failed", "Segment.Internal")
    assert source.error == "it broke"
    assert source.row_count == 2
    assert source.partitions is msgspec.UNSET
    [replay] = report_lines(msgspec.structs.replace(RUN, replay=True), DONE, START, failure)
    assert replay.partitions == ({"day": "2026-10-01", "hr": "07"},)  # which it had published


def test_a_report_is_one_object_a_line() -> None:
    lines = report_lines(RUN, DONE, START)
    text = report_json(lines).decode()
    assert text.endswith("}\n")
    expected = json.loads(msgspec.json.encode(lines))
    assert [json.loads(line) for line in text.splitlines()] == expected

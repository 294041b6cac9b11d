"""The questions about syncs that users of the original product ask, as they wrote them."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from eventlake.rules.errors import StateError
from tests.support.lakes.small_lake import SmallLake
from tests.support.lakes.sync_report_queries import (
    FAILURES,
    LAST_SUCCESS,
    ROWS_PER_DAY,
    ROWS_PER_DAY_AND_TABLE,
)


def days_ago(days: int) -> str:
    return f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}"


def report(day: str, **fields: object) -> dict[str, object]:
    return {
        "start_time": f"{day} 10:15:59.044",
        "finish_time": f"{day} 10:18:12.891",
        "status": "finished",
        **fields,
    }


@pytest.mark.parametrize("sql", [ROWS_PER_DAY, ROWS_PER_DAY_AND_TABLE, FAILURES])
def test_before_any_sync_there_are_no_rows(lake: SmallLake, sql: str) -> None:
    assert lake.ask(sql) == []


def test_before_any_sync_nothing_has_finished(lake: SmallLake) -> None:
    assert lake.ask(LAST_SUCCESS) == [(None,)]


def test_rows_per_day(lake: SmallLake) -> None:
    for day, run, count in [("2026-10-02", "2", 5), ("2026-10-01", "1", 3), ("2026-10-02", "3", 7)]:
        lines = [
            report(day, type="source", table_name="", row_count=100),
            report(day, type="event", table_name="checkout_started", row_count=count),
            report(day, type="event", table_name="page", row_count=1),
        ]
        lake.report("9IP56Shn6", day, run, lines)
    other = report("2026-10-01", type="event", table_name="checkout_started", row_count=99)
    lake.report("other", "2026-10-01", "4", [other])
    assert lake.ask(ROWS_PER_DAY) == [("2026-10-01", 3), ("2026-10-02", 12)]
    assert sorted(lake.ask(ROWS_PER_DAY_AND_TABLE)) == [
        ("2026-10-01", "checkout_started", 3),
        ("2026-10-01", "page", 1),
        ("2026-10-02", "checkout_started", 12),
        ("2026-10-02", "page", 2),
    ]


def test_the_last_success_and_the_failures_of_some_days(lake: SmallLake) -> None:
    now, day_3 = days_ago(0), days_ago(3)
    lake.report("9IP56Shn6", now, "1", [report(now, type="source")])
    failed = {"status": "failed", "error": "no role", "error_code": "Segment.InvalidSettings"}
    lake.report("9IP56Shn6", now, "2", [report(now, type="source", run_id="2", **failed)])
    lake.report("9IP56Shn6", day_3, "3", [report(day_3, type="source", run_id="3", **failed)])
    finish = datetime.fromisoformat(f"{now}T10:18:12.891+00:00")
    assert lake.ask(LAST_SUCCESS) == [(finish,)]
    assert lake.ask(FAILURES) == [("2", "failed", "no role", "Segment.InvalidSettings")]


def test_all_columns_have_their_types_and_nested_ones_their_content(lake: SmallLake) -> None:
    line = {
        "type": "event",
        "start_time": "2026-10-01 22:15:59.044084423",
        "partitions": [{"day": "2026-10-01", "hr": "10"}, {"day": "2026-10-01", "hr": "11"}],
        "new_columns": [{"name": "price", "type": "decimal(38,6)"}],
        "is_new": True,
        "rows_in": 12,
        "a_field_of_a_later_version": 1,
    }
    lake.report("S1", "2026-10-01", "1", [line, {}])
    answer = lake.sql.query("FROM __segment_datalake.sync_reports ORDER BY rows_in NULLS LAST")
    assert " ".join(answer.column_names) == (
        "type workspace_id run_id start_time finish_time duration_mins status error error_code "
        "table_name database partitions new_columns row_count is_new replay replay_from replay_to "
        "emr_cluster_id s3_bucket rows_in duplicates rejected suppressed skipped rescued_cells "
        "files_written bytes_written raw_files dagster_run_id source_id day"
    )
    assert answer.schema.field("start_time").type == pa.timestamp("us", tz="UTC")
    assert answer.schema.field("is_new").type == pa.bool_()
    first, empty = answer.to_pylist()
    assert first["start_time"] == datetime(2026, 10, 1, 22, 15, 59, 44084, UTC)
    assert [dict(p) for p in first["partitions"]] == line["partitions"]
    assert first["new_columns"] == line["new_columns"]
    assert (first["is_new"], first["rows_in"]) == (True, 12)
    assert {key: value for key, value in empty.items() if value is not None} == {
        "source_id": "S1",
        "day": "2026-10-01",
    }


def test_a_damaged_report_is_named(lake: SmallLake) -> None:
    lake.report("S1", "2026-10-01", "1", [{"type": "source"}])
    lake.storage.write("segment-data/reports/day=2026-10-01/source=S1/run_id=2/report.json", b"[]")
    with pytest.raises(StateError, match=r"run_id=2/report\.json is not one JSON object a line"):
        lake.ask("FROM sync_reports")

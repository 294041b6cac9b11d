"""SQL statements and the queries on sync reports that users write."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from eventlake.rules.errors import StateError, UsageError
from eventlake.sql import SqlLimits
from tests.support.lakes.small_lake import (
    FAILURES,
    LAST_SUCCESS,
    ROWS_PER_DAY,
    ROWS_PER_DAY_AND_TABLE,
    SmallLake,
)

ONE = pa.table({"message_id": ["a"]})


@pytest.fixture
def shop(lake: SmallLake) -> SmallLake:
    lake.table("shop", "track_order")
    lake.hour("track_order", "2026-10-01", "12", ONE)
    return lake


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT message_id FROM shop.track_order",
        "select MESSAGE_ID from Shop.Track_Order;",
        'SELECT "message_id" FROM "shop"."track_order" AS o',
        "SELECT message_id FROM track_order",
        "WITH o AS (SELECT * FROM shop.track_order) SELECT message_id FROM o",
        "WITH track_order AS (FROM shop.track_order) SELECT message_id FROM track_order",
        "SELECT (SELECT min(message_id) FROM shop.track_order)",
        "SELECT a.message_id FROM shop.track_order a JOIN track_order b USING (message_id, day)",
        "SELECT * FROM (VALUES ('a'))",
    ],
)
def test_tables_are_found_however_they_are_named(shop: SmallLake, sql: str) -> None:
    assert shop.ask(sql) == [("a",)]


def test_a_name_that_two_databases_have_needs_its_database(shop: SmallLake) -> None:
    shop.table("app", "track_order")
    with pytest.raises(UsageError, match=r"app\.track_order, shop\.track_order"):
        shop.ask("SELECT * FROM track_order")
    assert shop.ask("SELECT message_id FROM shop.track_order") == [("a",)]
    named = "WITH track_order AS (FROM shop.track_order) SELECT message_id FROM track_order"
    assert shop.ask(named) == [("a",)]


@pytest.mark.parametrize(
    ("name", "keyword"), [("Default.track_order", "default"), ("group", "group")]
)
def test_names_that_are_keywords_are_written_in_quotes(
    shop: SmallLake, name: str, keyword: str
) -> None:
    shop.table("default", "track_order")
    shop.table("shop", "group")
    with pytest.raises(UsageError, match=f'is a keyword of SQL: .*, write "{keyword}"'):
        shop.ask(f"SELECT * FROM {name}")
    quoted = name.lower().replace(keyword, f'"{keyword}"')
    assert shop.ask(f"SELECT * FROM {quoted}") == []
    with pytest.raises(UsageError) as refused:
        shop.ask("SELECT * FORM shop.track_order")
    assert "keyword" not in str(refused.value)


@pytest.mark.parametrize("name", ["shop.track_ordr", "track_ordr", "app.track_order"])
def test_an_unknown_table_is_answered_with_near_names(shop: SmallLake, name: str) -> None:
    with pytest.raises(UsageError) as refused:
        shop.ask(f"SELECT * FROM {name}")
    assert f"There is no table '{name}' in the catalog" in str(refused.value)
    assert "Near it are: shop.track_order." in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT nope FROM shop.track_order", '"nope" not found'),
        ("SELECT 'x'::INT", "Could not convert string 'x' to INT32"),
        ("", "Expected one SQL statement, found 0"),
        ("SELECT 1; SELECT 2", "Expected one SQL statement, found 2"),
    ],
)
def test_a_wrong_statement_is_refused(shop: SmallLake, sql: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        shop.ask(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY shop.track_order TO '{root}/out.csv'",
        "EXPLAIN ANALYZE COPY shop.track_order TO '{root}/out.csv'",
        "explain /* hm */ analyze COPY (SELECT 1) TO '{root}/out.csv'",
        "EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{root}/out.csv'",
        "EXPORT DATABASE '{root}/out.csv'",
        "ATTACH '{root}/out.csv'",
        "INSERT INTO shop.track_order VALUES ('b')",
        "WITH b AS (INSERT INTO shop.track_order VALUES ('b') RETURNING *) SELECT * FROM b",
        "CREATE TABLE shop.other (x INT)",
        "DROP VIEW shop.track_order",
        "SET TimeZone = 'Asia/Tokyo'",
        "INSTALL httpfs",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT content FROM read_text('{root}/lake.yaml')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM shop.track_order, sniff_csv('/etc/passwd')",
        "SELECT * FROM parquet_metadata('{root}/x.parquet')",
    ],
)
def test_nothing_but_reading_is_possible(shop: SmallLake, sql: str, tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text("secret")
    with pytest.raises(UsageError):
        shop.ask(sql.format(root=tmp_path))
    assert not (tmp_path / "out.csv").exists()


def test_tables_and_columns_can_be_listed_and_described(shop: SmallLake) -> None:
    shop.table("app", "page")
    assert shop.ask("SHOW TABLES") == [
        ("page",),
        ("sync_records",),
        ("sync_reports",),
        ("track_order",),
    ]
    assert shop.ask("SHOW TABLES FROM app") == [("page",)]
    assert shop.ask(
        "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
    ) == [
        ("__segment_datalake", "sync_records"),
        ("__segment_datalake", "sync_reports"),
        ("app", "page"),
        ("shop", "track_order"),
    ]
    assert shop.ask(
        "SELECT column_name, data_type FROM information_schema.columns "
        "WHERE table_name = 'sync_reports' AND column_name IN ('partitions', 'new_columns')"
    ) == [
        ("partitions", "MAP(VARCHAR, VARCHAR)[]"),
        ("new_columns", 'STRUCT("name" VARCHAR, "type" VARCHAR)[]'),
    ]
    described = [row[:2] for row in shop.ask("DESCRIBE shop.track_order")]
    assert described == [
        ("message_id", "VARCHAR"),
        ("received_at", "TIMESTAMP WITH TIME ZONE"),
        ("price", "DECIMAL(38,6)"),
        ("n", "BIGINT"),
        ("paid", "BOOLEAN"),
        ("day", "VARCHAR"),
        ("hr", "VARCHAR"),
    ]


def test_a_plan_can_be_explained(shop: SmallLake) -> None:
    [(_, plan)] = shop.ask("EXPLAIN ANALYZE SELECT count(*) FROM shop.track_order")
    assert "1 row" in plan


def test_variables_of_the_program_are_no_tables(shop: SmallLake) -> None:
    secret = pa.table({"x": [1]})
    with pytest.raises(UsageError, match="There is no table 'secret'"):
        shop.ask("SELECT * FROM secret")
    assert secret.num_rows == 1


def test_sums_of_whole_numbers_are_whole_numbers(shop: SmallLake) -> None:
    answer = shop.sql.query("SELECT sum(1) small, sum(9223372036854775807) huge FROM range(2)")
    assert answer.schema.types == [pa.int64(), pa.decimal128(38, 0)]


def test_a_lake_without_a_catalog_answers_too(tmp_path: Path) -> None:
    empty = SmallLake(tmp_path)
    assert empty.ask("SELECT 1") == [(1,)]
    with pytest.raises(UsageError, match=r"There is no table 'shop\.page' in the catalog"):
        empty.ask("SELECT * FROM shop.page")


def test_a_program_with_a_query_writes_nothing_to_stderr(shop: SmallLake) -> None:
    program = (
        "from eventlake.sql import LakeSql; from eventlake.catalog.local import LocalCatalog\n"
        "from eventlake.storage import LocalStorage\n"
        "from eventlake.rules.errors import UsageError\n"
        f"s = LocalStorage({shop.storage.uri!r}); sql = LakeSql(LocalCatalog(s), s)\n"
        "print(sql.query('SELECT message_id FROM shop.track_order').to_pylist())\n"
        "try: sql.query('SELECT nope FROM shop.track_order')\n"
        "except UsageError: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[{'message_id': 'a'}]\n", "")


def days_ago(days: int) -> str:
    return f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}"


def report(day: str, **fields: object) -> dict[str, object]:
    times = {"start_time": f"{day} 10:15:59.044", "finish_time": f"{day} 10:18:12.891"}
    return {**times, "status": "finished", **fields}


def test_before_any_sync_there_are_no_rows(lake: SmallLake) -> None:
    for sql in (ROWS_PER_DAY, ROWS_PER_DAY_AND_TABLE, FAILURES):
        assert lake.ask(sql) == []
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
        "files_written bytes_written raw_files dagster_run_id ignored_files ignored "
        "rows_taken_along to_replay source_id day"
    )
    assert answer.schema.field("start_time").type == pa.timestamp("us", tz="UTC")
    assert answer.schema.field("is_new").type == pa.bool_()
    first, empty = answer.to_pylist()
    assert first["start_time"] == datetime(2026, 10, 1, 22, 15, 59, 44084, UTC)
    assert [dict(p) for p in first["partitions"]] == line["partitions"]
    assert first["new_columns"] == line["new_columns"]
    assert (first["is_new"], first["rows_in"]) == (True, 12)
    filled = {key: value for key, value in empty.items() if value is not None}
    assert filled == {"source_id": "S1", "day": "2026-10-01"}


def test_a_damaged_report_is_named(lake: SmallLake) -> None:
    lake.report("S1", "2026-10-01", "1", [{"type": "source"}])
    lake.storage.write("segment-data/reports/day=2026-10-01/source=S1/run_id=2/report.json", b"[]")
    with pytest.raises(
        StateError, match=r"run_id=2/report\.json does not have one JSON object per line"
    ):
        lake.ask("FROM sync_reports")


@pytest.mark.parametrize(
    ("sql", "limits", "message"),
    [
        (
            "SELECT count(*) FROM range(10000000000) a, range(10000) b",
            SqlLimits(0.2),
            "0.2 seconds",
        ),
        ("SELECT DISTINCT range FROM range(90000000)", SqlLimits(60, "30MB"), "30MB of memory"),
    ],
)
def test_a_query_beyond_its_limits_is_stopped(
    lake: SmallLake, sql: str, limits: SqlLimits, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        lake.sql.query(sql, limits)


def test_limits_on_rows_show_that_there_are_more(lake: SmallLake) -> None:
    assert lake.sql.query("FROM range(5000)", SqlLimits(rows=3_000)).num_rows == 3_001
    assert lake.sql.query("FROM range(3000)", SqlLimits(rows=3_000)).num_rows == 3_000
    assert lake.sql.query("FROM range(0)", SqlLimits()).column_names == ["range"]

"""What may be asked, how tables are found by name, and what is said otherwise."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from eventlake.rules.errors import UsageError
from tests.support.lakes.small_lake import SmallLake

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
def test_a_wrong_statement_is_refused_with_the_reason(
    shop: SmallLake, sql: str, message: str
) -> None:
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
    ],
)
def test_nothing_but_reading_is_possible(shop: SmallLake, sql: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        shop.ask(sql.format(root=tmp_path))
    assert not (tmp_path / "out.csv").exists()


def test_tables_and_columns_can_be_listed(shop: SmallLake) -> None:
    shop.table("app", "page")
    assert shop.ask("SHOW TABLES") == [("page",), ("sync_reports",), ("track_order",)]
    assert shop.ask("SHOW TABLES FROM app") == [("page",)]
    assert shop.ask(
        "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
    ) == [("__segment_datalake", "sync_reports"), ("app", "page"), ("shop", "track_order")]
    assert shop.ask(
        "SELECT column_name, data_type FROM information_schema.columns "
        "WHERE table_name = 'sync_reports' AND column_name IN ('partitions', 'new_columns')"
    ) == [
        ("partitions", "MAP(VARCHAR, VARCHAR)[]"),
        ("new_columns", 'STRUCT("name" VARCHAR, "type" VARCHAR)[]'),
    ]


def test_a_table_can_be_described(shop: SmallLake) -> None:
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
    answer = shop.sql.query(
        "SELECT sum(1) AS small, sum(9223372036854775807) AS huge FROM range(2)"
    )
    assert answer.schema.types == [pa.int64(), pa.decimal128(38, 0)]


def test_a_lake_without_a_catalog_answers_too(tmp_path: Path) -> None:
    empty = SmallLake(tmp_path)
    assert empty.ask("SELECT 1") == [(1,)]
    with pytest.raises(UsageError, match=r"There is no table 'shop\.page' in the catalog"):
        empty.ask("SELECT * FROM shop.page")


def test_a_program_that_asks_ends_without_a_word_on_stderr(shop: SmallLake) -> None:
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

"""`datalake sql`."""

import re
from datetime import UTC, datetime

import pytest

from tests.support.lakes import small_lake as queries
from tests.support.lakes.jobs import SampleLake
from tests.support.terminal import datalake, program

ODD = """
SELECT 1 AS a, 2 AS a, 3 AS a_1, NULL AS nothing, 12345678901234567.123456::DECIMAL(38,6) AS exact,
  9007199254740993 AS whole, true AS yes, TIMESTAMPTZ '2026-10-01 07:05:09.12Z' AS moment,
  ['x', NULL] AS list, MAP {'k': 'v'} AS map, {'s': 1} AS struct
"""


def test_the_queries_of_the_original_product_run_as_written(filled: SampleLake) -> None:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    expected = filled.generated.expected("9IP56Shn6")
    # The app of the sample starts no checkout.
    assert datalake("sql", queries.ROWS_PER_DAY, "--json").json == []
    shop = queries.ROWS_PER_DAY.replace("9IP56Shn6", "wX3mQ8rTz").replace(
        "checkout_started", "track_checkout_started"
    )
    checkouts = filled.generated.expected("wX3mQ8rTz").tables["track_checkout_started"]
    assert datalake("sql", shop, "--json").json == [
        {"day": today, "sum(row_count)": checkouts.row_count}
    ]
    by_table = datalake("sql", queries.ROWS_PER_DAY_AND_TABLE, "--json").json
    assert {row["table_name"]: row["sum(row_count)"] for row in by_table} == {
        table: totals.row_count for table, totals in expected.tables.items()
    }
    [last] = datalake("sql", queries.LAST_SUCCESS, "--json").json
    newest = datalake("reports", "--source", "ios_prod", "--limit", "1", "--json").json[0]
    finish = newest["finish_time"].replace(" ", "T") + "Z"
    assert datetime.fromisoformat(last["max(finish_time)"]) == datetime.fromisoformat(finish)
    assert datalake("sql", queries.FAILURES, "--json").json == []


def test_unquoted_words_are_one_statement_and_plans_are_drawings(filled: SampleLake) -> None:
    assert datalake("sql", "select", "1", "as", "x").rows == [["1"]]
    result = datalake("sql", "select", "data", "lake.yaml", "from", "web_shop.page", code=2)
    assert "Put it in quotes" in result.err
    plan = datalake("sql", "EXPLAIN SELECT * FROM web_shop.page").out
    assert "explain_value" not in plan and len(plan.splitlines()) > 3 and "\\n" not in plan


def test_json_keeps_names_apart_and_numbers_exact(filled: SampleLake) -> None:
    result = datalake("sql", ODD, "--json")
    assert result.json == [
        {
            "a": 1,
            "a_2": 2,
            "a_1": 3,
            "nothing": None,
            "exact": pytest.approx(12345678901234567.123456),
            "whole": 9007199254740993,
            "yes": True,
            "moment": "2026-10-01T07:05:09.120000Z",
            "list": ["x", None],
            "map": {"k": "v"},
            "struct": {"s": 1},
        }
    ]
    assert '"exact": 12345678901234567.123456,' in result.out


def test_csv_has_names_first_and_nulls_empty(filled: SampleLake) -> None:
    result = datalake("sql", ODD, "--csv")
    assert result.out == (
        "a,a,a_1,nothing,exact,whole,yes,moment,list,map,struct\n"
        "1,2,3,,12345678901234567.123456,9007199254740993,true,2026-10-01 07:05:09.120,"
        '"[""x"",null]","{""k"":""v""}","{""s"":1}"\n'
    )


def test_csv_has_no_formulas_for_spreadsheets(filled: SampleLake) -> None:
    result = datalake("sql", "SELECT '=1+1' a, '@x' b, '-1' c, -1 d, 'a=b' e", "--csv")
    assert result.out == "a,b,c,d,e\n'=1+1,'@x,'-1,-1,a=b\n"


def test_a_table_shows_the_first_rows_and_how_many_more_there_are(filled: SampleLake) -> None:
    result = datalake("sql", "SELECT range AS n FROM range(100)")
    assert [row[0] for row in result.rows] == [str(n) for n in range(50)]
    assert "50 more rows" in result.err
    assert len(datalake("sql", "SELECT * FROM range(100)", "--rows", "0").rows) == 100
    assert len(datalake("sql", "SELECT * FROM range(100)", "--json").json) == 100
    result = datalake("sql", "SELECT 1 AS one WHERE false")
    assert result.err == "no rows\n"
    assert datalake("sql", "SELECT 1 WHERE false", "--json").json == []


def test_rows_wider_than_the_terminal_are_shown_column_below_column(
    filled: SampleLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "30")
    narrow = datalake("sql", "SELECT 'short' AS a, 1 AS number")
    assert "short       1" in narrow.out
    wide = datalake("sql", "SELECT 'much longer than that' AS a, 1 AS number, NULL AS c")
    unstyled = re.sub(r"\x1b\[[0-9;]*m", "", wide.out)
    assert [line.split() for line in unstyled.splitlines()[1:]] == [
        ["a", "much", "longer", "than", "that"],
        ["number", "1"],
        ["c", "null"],
    ]


def test_data_cannot_control_the_terminal(filled: SampleLake) -> None:
    query = "SELECT chr(27) || '[31m' || chr(10) || '[bold]x[/bold] :smile:' AS evil"
    [[shown]] = datalake("sql", query).rows
    assert shown == r"\x1b[31m\n[bold]x[/bold] :smile:"


def test_a_dash_reads_the_statement_from_stdin(filled: SampleLake) -> None:
    result = program("sql", "--csv", "-", cwd=filled.folder, stdin="SELECT 1 AS one")
    assert result.out == "one\n1\n"


def test_a_lake_without_data_answers(unsynced: SampleLake) -> None:
    assert datalake("sql", "SELECT 1 AS one", "--json").json == [{"one": 1}]

"""`datalake sql`."""

import re
from datetime import UTC, datetime

import pytest

from tests.support.lakes import small_lake as queries
from tests.support.lakes.jobs import SETTINGS, SampleLake
from tests.support.terminal import Terminal, program

ODD = """
SELECT 1 AS a, 2 AS a, 3 AS a_1, NULL AS nothing, 12345678901234567.123456::DECIMAL(38,6) AS exact,
  9007199254740993 AS whole, true AS yes, TIMESTAMPTZ '2026-10-01 07:05:09.12Z' AS moment,
  ['x', NULL] AS list, MAP {'k': 'v'} AS map, {'s': 1} AS struct
"""


def test_the_questions_of_the_original_product_run_as_written(
    terminal: Terminal, filled: SampleLake
) -> None:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    expected = filled.account.expected("9IP56Shn6")
    # The app of the sample starts no checkout.
    assert terminal.run("sql", queries.ROWS_PER_DAY, "--json").json == []
    shop = queries.ROWS_PER_DAY.replace("9IP56Shn6", "wX3mQ8rTz").replace(
        "checkout_started", "track_checkout_started"
    )
    checkouts = filled.account.expected("wX3mQ8rTz").tables["track_checkout_started"]
    assert terminal.run("sql", shop, "--json").json == [
        {"day": today, "sum(row_count)": checkouts.row_count}
    ]
    by_table = terminal.run("sql", queries.ROWS_PER_DAY_AND_TABLE, "--json").json
    assert {row["table_name"]: row["sum(row_count)"] for row in by_table} == {
        table: totals.row_count for table, totals in expected.tables.items()
    }
    [last] = terminal.run("sql", queries.LAST_SUCCESS, "--json").json
    newest = terminal.run("reports", "--source", "ios_prod", "--limit", "1", "--json").json[0]
    finish = newest["finish_time"].replace(" ", "T") + "Z"
    assert datetime.fromisoformat(last["max(finish_time)"]) == datetime.fromisoformat(finish)
    assert terminal.run("sql", queries.FAILURES, "--json").json == []


def test_json_keeps_names_apart_and_numbers_exact(terminal: Terminal, filled: SampleLake) -> None:
    said = terminal.run("sql", ODD, "--json")
    assert said.json == [
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
    assert '"exact": 12345678901234567.123456,' in said.out


def test_csv_has_names_first_and_nulls_empty(terminal: Terminal, filled: SampleLake) -> None:
    said = terminal.run("sql", ODD, "--csv")
    assert said.out == (
        "a,a,a_1,nothing,exact,whole,yes,moment,list,map,struct\n"
        "1,2,3,,12345678901234567.123456,9007199254740993,true,2026-10-01 07:05:09.120,"
        '"[""x"",null]","{""k"":""v""}","{""s"":1}"\n'
    )


def test_a_table_shows_the_first_rows_and_says_how_many_more(
    terminal: Terminal, filled: SampleLake
) -> None:
    said = terminal.run("sql", "SELECT range AS n FROM range(100)")
    assert [row[0] for row in said.rows] == [str(n) for n in range(50)]
    assert "50 more rows" in said.err
    assert len(terminal.run("sql", "SELECT * FROM range(100)", "--rows", "0").rows) == 100
    assert len(terminal.run("sql", "SELECT * FROM range(100)", "--json").json) == 100


def test_no_rows_are_said_to_be_none(terminal: Terminal, filled: SampleLake) -> None:
    said = terminal.run("sql", "SELECT 1 AS one WHERE false")
    assert said.err == "no rows\n"
    assert terminal.run("sql", "SELECT 1 WHERE false", "--json").json == []


def test_what_is_wider_than_the_terminal_is_shown_row_below_row(
    terminal: Terminal, filled: SampleLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "30")
    narrow = terminal.run("sql", "SELECT 'short' AS a, 1 AS number")
    assert "short       1" in narrow.out
    wide = terminal.run("sql", "SELECT 'much longer than that' AS a, 1 AS number, NULL AS c")
    unstyled = re.sub(r"\x1b\[[0-9;]*m", "", wide.out)
    assert [line.split() for line in unstyled.splitlines()[1:]] == [
        ["a", "much", "longer", "than", "that"],
        ["number", "1"],
        ["c", "null"],
    ]


def test_data_cannot_speak_to_the_terminal(terminal: Terminal, filled: SampleLake) -> None:
    query = "SELECT chr(27) || '[31m' || chr(10) || '[bold]x[/bold] :smile:' AS evil"
    [[shown]] = terminal.run("sql", query).rows
    assert shown == r"\x1b[31m\n[bold]x[/bold] :smile:"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["SELEC 1"], "syntax error"),
        (["SELECT * FROM ios_prod.scren"], "Near it are: ios_prod.screen"),
        (["DROP TABLE ios_prod.screen"], "Only statements that read"),
        (["SELECT 1", "--json", "--csv"], "exclude each other"),
    ],
)
def test_what_cannot_be_asked_is_wrong_use(
    terminal: Terminal, filled: SampleLake, words: list[str], told: str
) -> None:
    said = terminal.run("sql", *words)
    assert (said.code, said.out) == (2, "")
    assert told in said.err


def test_a_dash_reads_the_statement_from_stdin(filled: SampleLake) -> None:
    said = program("sql", "--csv", "-", cwd=filled.folder, stdin="SELECT 1 AS one")
    assert (said.code, said.out) == (0, "one\n1\n")


def test_a_lake_without_anything_still_answers(terminal: Terminal, unsynced: SampleLake) -> None:
    assert (unsynced.folder / "lake.yaml").read_text() == SETTINGS
    assert terminal.run("sql", "SELECT 1 AS one", "--json").json == [{"one": 1}]

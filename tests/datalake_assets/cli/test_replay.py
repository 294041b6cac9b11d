"""`datalake replay`: through Dagster, without Spark."""

import pytest

from tests.datalake_assets.cli.conftest import SampleLake
from tests.datalake_assets.cli.terminal import Terminal, everything_below

FIRST_DAY = ("--from", "2026-10-01", "--to", "2026-10-02")


def rows_by_hour(terminal: Terminal, table: str) -> list[dict[str, object]]:
    query = f"SELECT day, hr, count(*) n FROM {table} GROUP BY ALL ORDER BY ALL"
    answer: list[dict[str, object]] = terminal.run("sql", query, "--json").json
    return answer


@pytest.mark.usefixtures("in_process")
def test_a_day_is_loaded_again_and_holds_the_same(terminal: Terminal, filled: SampleLake) -> None:
    before = rows_by_hour(terminal, "ios_prod.screen")
    [report] = terminal.run("replay", "--source", "ios_prod", *FIRST_DAY, "--json").json
    assert (report["status"], report["replay"]) == ("finished", True)
    assert (report["replay_from"], report["replay_to"]) == (
        "2026-10-01 00:00:00.000",
        "2026-10-02 00:00:00.000",
    )
    first_day = sum(
        count
        for slot, count in filled.account.expected("9IP56Shn6").rows.items()
        if slot.day == "2026-10-01"
    )
    assert report["row_count"] == first_day
    assert rows_by_hour(terminal, "ios_prod.screen") == before


@pytest.mark.usefixtures("in_process")
def test_of_some_tables_and_hours_only(terminal: Terminal, filled: SampleLake) -> None:
    hour = ("--from", "2026-10-01T01", "--to", "2026-10-01T02")
    words = ("--table", "screen", "--table", "identify")
    assert terminal.run("replay", "--source", "ios_prod", *hour, *words).code == 0
    run = terminal.run("reports", "--json").json[0]["run_id"]
    _, *tables = terminal.run("reports", "--run", run, "--json").json
    assert {table["table_name"] for table in tables} == {"screen", "identify"}
    assert {p["hr"] for table in tables for p in table["partitions"]} == {"01"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--source", "ios_prod"], "--from"),
        (["--source", "ios_prod", "--from", "2026-10-02", "--to", "2026-10-01"], "is not before"),
        (["--source", "ios_prod", *FIRST_DAY, "--table", "scren"], "did you mean 'screen'?"),
        (["--source", "android", *FIRST_DAY], "'android' is not in the settings"),
    ],
)
def test_wrong_words_change_nothing(
    terminal: Terminal, filled: SampleLake, words: list[str], told: str
) -> None:
    before = everything_below(filled.folder / "data")
    said = terminal.run("replay", *words)
    assert said.code == 2
    assert told in said.err
    assert everything_below(filled.folder / "data") == before

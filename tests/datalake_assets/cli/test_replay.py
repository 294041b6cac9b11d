"""`datalake replay`: through Dagster, without Spark."""

import pytest

from tests.support.lakes.jobs import SampleLake
from tests.support.terminal import Terminal, everything_below

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
        (
            ["--source", "ios_prod", "--from", "2026-09-28", "--to", "2026-10-02"],
            "the first day of source 'ios_prod' is 2026-10-01. Begin there, or set "
            "`start: 2026-09-28`",
        ),
        (["--source", "ios_prod", "--from", "2026-10-01", "--to", "2999-01-01"], "today is"),
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


@pytest.mark.usefixtures("in_process")
def test_into_a_new_place_that_has_no_tables_yet(terminal: Terminal, filled: SampleLake) -> None:
    settings = filled.folder / "lake.yaml"
    place = "    slug: ios_prod\n    database: second\n"
    settings.write_text(settings.read_text().replace("    slug: ios_prod\n", place))
    said = terminal.run("replay", "--source", "ios_prod", *FIRST_DAY, "--json")
    assert said.code == 0
    assert said.json[0]["row_count"] > 0
    query = "SELECT (SELECT count(*) FROM second.screen) n, count(*) m FROM ios_prod.screen"
    [rows] = terminal.run("sql", f"{query} WHERE day = '2026-10-01'", "--json").json
    assert rows["n"] == rows["m"] > 0


@pytest.mark.usefixtures("in_process")
def test_before_the_first_sync(terminal: Terminal, unsynced: SampleLake) -> None:
    [report] = terminal.run("replay", "--source", "ios_prod", *FIRST_DAY, "--json").json
    assert (report["status"], report["row_count"] > 0) == ("finished", True)
    said = terminal.run(
        "replay", "--source", "ios_prod", "--from", "2026-09-01", "--to", "2026-10-02"
    )
    assert (said.code, "the first day of source" in said.err) == (2, True)


@pytest.mark.usefixtures("in_process")
def test_raw_files_that_changed_need_consent(terminal: Terminal, filled: SampleLake) -> None:
    gone = filled.account.files["9IP56Shn6"][0]
    (filled.folder / "data" / gone.path).unlink()
    before = everything_below(filled.folder / "data")
    words = ("replay", "--source", "ios_prod", *FIRST_DAY, "--table", "screen")
    said = terminal.run(*words)
    assert said.code == 2
    assert f"removed: {gone.path}" in said.err
    assert "--accept-changes" in said.err
    assert everything_below(filled.folder / "data") == before
    assert terminal.run(*words, "--accept-changes").code == 0

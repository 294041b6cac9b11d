"""`datalake retype`: shows first, asks, records; then a replay through Dagster switches."""

import io
import sys

import pytest

from tests.support.lakes.jobs import SampleLake
from tests.support.terminal import Said, Terminal, everything_below

COLUMN = "web_shop.track_order_completed.properties_total"
ALL_DAYS = ("--from", "2026-10-01", "--to", "2026-10-03")


def types(terminal: Terminal) -> dict[str, tuple[str, str | None]]:
    """Type and request of each column."""
    found = terminal.run("tables", COLUMN.rpartition(".")[0], "--json").json
    return {column["name"]: (column["type"], column["wished_type"]) for column in found}


def totals(terminal: Terminal) -> list[str]:
    """The column as text, whatever its type."""
    sql = "SELECT properties_total::DECIMAL(38,6)::VARCHAR t FROM {} ORDER BY t"
    rows = terminal.run("sql", sql.format(COLUMN.rpartition(".")[0]), "--json").json
    return [row["t"] for row in rows]


def answered(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, answer: str) -> Said:
    """The command at a terminal, where it may ask."""

    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Keyboard(f"{answer}\n"))
    return terminal.run("retype", COLUMN, "string")


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())


def test_it_shows_what_would_happen_by_partition_and_in_all(
    terminal: Terminal, filled: SampleLake
) -> None:
    said = terminal.run("retype", COLUMN, "bigint", "--dry-run")
    assert said.code == 0
    assert said.out.startswith(f"{COLUMN}, now decimal(38,6), as bigint\n")
    *partitions, total = said.rows
    assert total[0] == "total"
    counts = [[int(cell.replace(",", "")) for cell in row[1:]] for row in partitions]
    assert [sum(column) for column in zip(*counts, strict=True)] == [
        int(cell.replace(",", "")) for cell in total[1:]
    ]
    assert "lossy, for example: " in said.err
    seen = terminal.run("retype", COLUMN, "bigint", "--json").json
    assert (seen["type"], seen["wished_type"], seen["source"]) == (
        "decimal(38,6)",
        "bigint",
        "web_shop",
    )
    assert seen["rows"] == seen["exact"] + seen["lossy"] + seen["failed"] == len(totals(terminal))
    assert [seen[name] for name in ("rows", "exact", "lossy", "failed", "returning")] == [
        int(cell) for cell in total[1:]
    ]
    assert set(seen["partitions"][0]) >= {"day", "hr", "exact", "lossy", "failed"}
    assert len(seen["partitions"]) == len(partitions)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--dry-run"], "Nothing was recorded (--dry-run)."),
        (["--dry-run", "--yes"], "Nothing was recorded (--dry-run)."),
        ([], f"To do so: datalake retype {COLUMN} string --yes"),
    ],
)
def test_nothing_is_recorded_unless_it_is_confirmed(
    terminal: Terminal, filled: SampleLake, words: list[str], told: str
) -> None:
    before = everything_below(filled.folder / "data")
    said = terminal.run("retype", COLUMN, "string", *words)
    assert said.code == 0
    assert told in said.err
    assert terminal.run("retype", COLUMN, "string", *words, "--json").json["recorded"] is (
        "--yes" in words and "--dry-run" not in words
    )
    assert everything_below(filled.folder / "data") == before


def test_at_a_terminal_it_asks(
    terminal: Terminal, filled: SampleLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = answered(terminal, monkeypatch, "n")
    assert (said.code, types(terminal)["properties_total"][1]) == (0, None)
    assert "Record the request for this type? [y/N]" in said.err
    said = answered(terminal, monkeypatch, "y")
    assert (said.code, types(terminal)["properties_total"][1]) == (0, "string")
    assert "Recorded. Syncs go on with decimal(38,6)." in said.out


def test_a_request_is_shown_by_tables_and_status_and_taken_back(
    terminal: Terminal, filled: SampleLake
) -> None:
    assert terminal.run("retype", COLUMN, "string", "--yes").code == 0
    assert types(terminal)["properties_total"] == ("decimal(38,6)", "string")
    shown = terminal.run("tables", COLUMN.rpartition(".")[0])
    assert "properties_total is requested as string" in shown.err
    assert f"wait for a replay of all days of their table: {COLUMN} string" in (
        terminal.run("status").err
    )
    web_shop, ios_prod = terminal.run("status", "--json").json
    assert (web_shop["wishes"], ios_prod["wishes"]) == ({COLUMN: "string"}, {})
    assert "(already requested: string)" in terminal.run("retype", COLUMN, "bigint").out
    said = terminal.run("retype", COLUMN, "decimal", "--dry-run")
    assert "the request for string would be withdrawn" in said.out
    said = terminal.run("retype", COLUMN, "decimal")
    assert (said.code, "the request for string is withdrawn" in said.out) == (0, True)
    assert types(terminal)["properties_total"] == ("decimal(38,6)", None)
    assert "nothing to do" in terminal.run("retype", COLUMN, "decimal").out


@pytest.mark.usefixtures("in_process")
def test_the_replay_it_names_switches_the_table(terminal: Terminal, filled: SampleLake) -> None:
    before = totals(terminal)
    said = terminal.run("retype", COLUMN, "string", "--yes")
    [command] = [line.strip() for line in said.out.splitlines() if "datalake replay" in line]
    words = command.split()[1:]
    assert words == [
        "replay",
        "--source",
        "web_shop",
        *ALL_DAYS,
        "--table",
        "track_order_completed",
    ]
    assert terminal.run(*words).code == 0
    assert types(terminal)["properties_total"] == ("string", None)
    assert totals(terminal) == before


@pytest.mark.usefixtures("in_process")
def test_a_replay_of_some_days_says_that_the_type_stays(
    terminal: Terminal, filled: SampleLake
) -> None:
    terminal.run("retype", COLUMN, "string", "--yes")
    said = terminal.run(
        "replay", "--source", "web_shop", "--from", "2026-10-01", "--to", "2026-10-02"
    )
    assert said.code == 0
    assert "keeps its types, although properties_total string is requested" in said.err
    assert types(terminal)["properties_total"] == ("decimal(38,6)", "string")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["web_shp.page.x", "string"], "did you mean 'web_shop'?"),
        (["web_shop.pge.x", "string"], "did you mean 'page'?"),
        (["web_shop.track_order_completed.property_total", "string"], "did you mean 'properties_"),
        (["web_shop.page.message_id", "bigint"], "message_id is a standard column"),
        (["web_shop.track_order_completed.rescued_data", "bigint"], "rescued_data keeps"),
        (["web_shop.page", "bigint"], "write DB.TABLE.COLUMN"),
        ([COLUMN, "float"], "'float' is no type of the lake; allowed are bigint, boolean"),
        ([COLUMN], "Missing argument 'TYPE'"),
    ],
)
def test_wrong_words_change_nothing(
    terminal: Terminal, filled: SampleLake, words: list[str], told: str
) -> None:
    before = everything_below(filled.folder / "data")
    said = terminal.run("retype", *words, "--yes")
    assert said.code == 2
    assert told in said.err
    assert everything_below(filled.folder / "data") == before

"""`datalake retype`: preview, confirmation, request; then a replay changes the type."""

import io
import sys

import pytest

from tests.support.lakes.jobs import SampleLake
from tests.support.terminal import Result, datalake, everything_below

COLUMN = "web_shop.track_order_completed.properties_total"


def types() -> dict[str, tuple[str, str | None]]:
    """Type and request of each column."""
    found = datalake("tables", COLUMN.rpartition(".")[0], "--json").json
    return {column["name"]: (column["type"], column["wished_type"]) for column in found}


def totals() -> list[str]:
    """The column as text, whatever its type."""
    sql = "SELECT properties_total::DECIMAL(38,6)::VARCHAR t FROM {} ORDER BY t"
    rows = datalake("sql", sql.format(COLUMN.rpartition(".")[0]), "--json").json
    return [row["t"] for row in rows]


def answered(monkeypatch: pytest.MonkeyPatch, answer: str) -> Result:
    """The command at a terminal, with the given answer to its question."""

    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Keyboard(f"{answer}\n"))
    return datalake("retype", COLUMN, "string")


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())


def test_the_preview_counts_by_partition_and_in_total(filled: SampleLake) -> None:
    result = datalake("retype", COLUMN, "bigint", "--dry-run")
    assert result.out.startswith(f"{COLUMN}, now decimal(38,6), as bigint\n")
    *partitions, total = result.rows
    assert total[0] == "total"
    counts = [[int(cell.replace(",", "")) for cell in row[1:]] for row in partitions]
    assert [sum(column) for column in zip(*counts, strict=True)] == [
        int(cell.replace(",", "")) for cell in total[1:]
    ]
    assert "lossy, for example: " in result.err
    seen = datalake("retype", COLUMN, "bigint", "--json").json
    assert (seen["type"], seen["wished_type"]) == ("decimal(38,6)", "bigint")
    assert seen["source"] == "web_shop"
    assert seen["rows"] == seen["exact"] + seen["lossy"] + seen["failed"] == len(totals())
    assert [seen[name] for name in ("rows", "exact", "lossy", "failed", "returning")] == [
        int(cell) for cell in total[1:]
    ]
    assert set(seen["partitions"][0]) >= {"day", "hr", "exact", "lossy", "failed"}
    assert len(seen["partitions"]) == len(partitions)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dry-run"], "Nothing was recorded (--dry-run)."),
        (["--dry-run", "--yes"], "Nothing was recorded (--dry-run)."),
        ([], f"To do so: datalake retype {COLUMN} string --yes"),
    ],
)
def test_nothing_is_recorded_unless_it_is_confirmed(
    filled: SampleLake, words: list[str], message: str
) -> None:
    before = everything_below(filled.folder / "data")
    result = datalake("retype", COLUMN, "string", *words)
    assert message in result.err
    assert datalake("retype", COLUMN, "string", *words, "--json").json["recorded"] is (
        "--yes" in words and "--dry-run" not in words
    )
    assert everything_below(filled.folder / "data") == before


def test_at_a_terminal_it_asks(filled: SampleLake, monkeypatch: pytest.MonkeyPatch) -> None:
    result = answered(monkeypatch, "n")
    assert types()["properties_total"][1] is None
    assert "Record the request for this type? [y/N]" in result.err
    result = answered(monkeypatch, "y")
    assert types()["properties_total"][1] == "string"
    assert "Recorded. Syncs keep decimal(38,6)." in result.out


def test_a_request_is_shown_by_tables_and_status_and_can_be_withdrawn(filled: SampleLake) -> None:
    datalake("retype", COLUMN, "string", "--yes")
    assert types()["properties_total"] == ("decimal(38,6)", "string")
    shown = datalake("tables", COLUMN.rpartition(".")[0])
    assert "properties_total is requested as string" in shown.err
    assert f"wait for a replay of all days of their table: {COLUMN} string" in (
        datalake("status").err
    )
    web_shop, ios_prod = datalake("status", "--json").json
    assert (web_shop["wishes"], ios_prod["wishes"]) == ({COLUMN: "string"}, {})
    assert "(already requested: string)" in datalake("retype", COLUMN, "bigint").out
    preview = datalake("retype", COLUMN, "decimal", "--dry-run").out
    assert "the request for string would be withdrawn" in preview
    assert "the request for string is withdrawn" in datalake("retype", COLUMN, "decimal").out
    assert types()["properties_total"] == ("decimal(38,6)", None)
    assert "nothing to do" in datalake("retype", COLUMN, "decimal").out


@pytest.mark.usefixtures("in_process")
def test_the_replay_it_names_switches_the_table(filled: SampleLake) -> None:
    before = totals()
    result = datalake("retype", COLUMN, "string", "--yes")
    [command] = [line.strip() for line in result.out.splitlines() if "datalake replay" in line]
    assert command == (
        "datalake replay --source web_shop --from 2026-10-01 --to 2026-10-03 "
        "--table track_order_completed"
    )
    datalake(*command.split()[1:])
    assert types()["properties_total"] == ("string", None)
    assert totals() == before


@pytest.mark.usefixtures("in_process")
def test_a_replay_of_some_days_warns_that_the_type_stays(filled: SampleLake) -> None:
    datalake("retype", COLUMN, "string", "--yes")
    day = ("--from", "2026-10-01", "--to", "2026-10-02")
    result = datalake("replay", "--source", "web_shop", *day)
    assert "keeps its types, although properties_total string is requested" in result.err
    assert types()["properties_total"] == ("decimal(38,6)", "string")

"""`datalake check --tables` and `datalake recover --catalog`."""

import json

from eventlake.rules import paths
from tests.datalake_assets.cli.conftest import SampleLake
from tests.support.terminal import Terminal, everything_below

CHECKS = ("freshness", "drift", "partitions", "small_files", "schema_change")


def drop_column(filled: SampleLake) -> None:
    """Somebody edits the entry of `web_shop.page`."""
    path = filled.folder / "data" / paths.catalog_table_file("web_shop", "page")
    entry = json.loads(path.read_text())
    entry["columns"] = [c for c in entry["columns"] if c["name"] != "sent_at"]
    path.write_text(json.dumps(entry))


def test_it_counts_what_passed_and_changes_nothing(terminal: Terminal, filled: SampleLake) -> None:
    before = everything_below(filled.folder)
    said = terminal.run("check", "--tables", "--source", "web_shop")
    tables = len(filled.lake.catalog.tables("web_shop"))
    assert said.code == 0
    last = said.out.splitlines()[-1]
    assert last.startswith(f"web_shop: {tables} tables; passed: freshness ")
    assert f"drift {tables}/{tables}, partitions {tables}/{tables}" in last
    assert everything_below(filled.folder) == before


def test_wrong_data_is_told_with_what_to_do_and_can_be_mended(
    terminal: Terminal, filled: SampleLake
) -> None:
    drop_column(filled)
    said = terminal.run("check", "--tables", "--source", "web_shop")
    assert said.code == 1
    lines = said.out.splitlines()
    at = lines.index("✗ drift of web_shop.page")
    assert lines[at + 1].strip() == "sent_at timestamp is not in the catalog"
    assert "datalake recover --catalog" in said.err

    mended = terminal.run("recover", "--catalog", "--source", "web_shop")
    assert "web_shop: restored 1 table in the catalog." in mended.out
    assert terminal.run("check", "--tables").code == 0
    again = terminal.run("recover", "--catalog", "--json").json
    assert [one["tables_restored"] for one in again] == [[], []]


def test_as_json(terminal: Terminal, filled: SampleLake) -> None:
    drop_column(filled)
    said = terminal.run("check", "--tables", "--json")
    assert said.code == 1
    assert {one["check"] for one in said.json} == set(CHECKS)
    [wrong] = [one for one in said.json if not one["passed"] and one["severity"] == "error"]
    assert (wrong["table"], wrong["check"]) == ("web_shop.page", "drift")
    assert wrong["evidence"]["problems"] == 1


def test_a_source_alone_is_refused(terminal: Terminal, filled: SampleLake) -> None:
    said = terminal.run("check", "--source", "web_shop")
    assert said.code == 2
    assert "--tables" in said.err

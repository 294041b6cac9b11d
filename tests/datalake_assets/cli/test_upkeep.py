"""`datalake upkeep`."""

import pytest

from tests.support.lakes.sample_lake import SampleLake
from tests.support.terminal import Terminal, everything_below


def compact_all(filled: SampleLake) -> None:
    """Settings by which every partition of two files is compacted."""
    file = filled.folder / "lake.yaml"
    file.write_text(file.read_text() + "compaction: {min_files: 2}\n")


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    terminal: Terminal, filled: SampleLake
) -> None:
    compact_all(filled)
    before = everything_below(filled.folder)
    said = terminal.run("upkeep", "--dry-run", "--source", "web_shop")
    assert said.code == 0
    assert said.out.splitlines()[0] == "web_shop: what an upkeep would do"
    assert "would be compacted" in said.out
    assert everything_below(filled.folder) == before


@pytest.mark.usefixtures("in_process")
def test_it_is_done_and_told_and_kept(terminal: Terminal, filled: SampleLake) -> None:
    compact_all(filled)
    rows = terminal.run("sql", "select count(*) n from web_shop.page", "--json").json
    said = terminal.run("upkeep", "--source", "web_shop")
    assert said.code == 0, said.err
    head, *table = said.out.splitlines()
    assert head == "web_shop"
    kinds = [line.split("  ")[0].strip() for line in table]
    assert {"data", "record log", "id index", "manifests", "staging"} <= set(kinds)
    assert "compacted" in said.out
    assert terminal.run("sql", "select count(*) n from web_shop.page", "--json").json == rows
    again = terminal.run("upkeep", "--source", "web_shop", "--json")
    [report] = again.json
    assert (report["source"], report["compacted"]["partitions"]) == ("web_shop", 0)
    assert report["before"]["data"]["files"] == report["after"]["data"]["files"] > 0


def test_a_source_that_is_not_there_is_told(terminal: Terminal, filled: SampleLake) -> None:
    said = terminal.run("upkeep", "--source", "shop", "--dry-run")
    assert said.code == 2 and "'shop' is not in the settings" in said.err

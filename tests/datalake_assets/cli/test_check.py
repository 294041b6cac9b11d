"""`datalake check`."""

import json
from pathlib import Path

import pytest

from eventlake.rules import paths
from tests.support.lakes.jobs import SETTINGS, SampleLake
from tests.support.terminal import Terminal, everything_below

FIVE_WRONG = """\
workspace_id: W1
storage: ftp://somewhere
catalog: glu
engine: spork
sources:
  - id: S1
    slug: shop
    date_partition: hour
    start: yesterday
"""


def signs(out: str) -> dict[str, str]:
    """What was looked at, and its sign."""
    return {line.split("  ")[1].strip(): line[0] for line in out.splitlines()}


def test_when_all_is_well_every_line_says_so(terminal: Terminal, unsynced: SampleLake) -> None:
    said = terminal.run("check")
    assert (said.code, said.err) == (0, "")
    assert signs(said.out) == dict.fromkeys(
        [
            "settings",
            "storage",
            "archive of web_shop",
            "tables of web_shop",
            "archive of ios_prod",
            "tables of ios_prod",
            "catalog",
            "Java",
        ],
        "✓",
    )


def test_it_makes_the_table_of_reports_and_nothing_else(
    terminal: Terminal, unsynced: SampleLake
) -> None:
    before = everything_below(unsynced.folder)
    terminal.run("check")
    made = everything_below(unsynced.folder).keys() - before.keys()
    assert made and all("/catalog/__segment_datalake/" in path for path in made)
    assert terminal.run("sql", "SELECT * FROM sync_reports", "--json").json == []


def test_five_wrong_settings_are_told_at_once(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text(FIVE_WRONG)
    said = terminal.run("check")
    assert (said.code, said.out) == (2, "")
    assert "5 settings are wrong" in said.err
    for place in ("lake.yaml:2", "lake.yaml:3", "lake.yaml:4", "lake.yaml:8", "lake.yaml:9"):
        assert place in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["lake.yaml"]


def test_a_missing_archive_is_named_and_nothing_is_written(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "lake.yaml").write_text(SETTINGS)
    said = terminal.run("check")
    assert said.code == 2
    assert signs(said.out)["archive of web_shop"] == "✗"
    assert f"{tmp_path}/data/segment-logs/9IP56Shn6 does not exist" in said.out
    assert [path.name for path in tmp_path.iterdir()] == ["lake.yaml"]


@pytest.mark.usefixtures("no_java")
def test_without_java_the_remedy_is_told(terminal: Terminal, unsynced: SampleLake) -> None:
    before = everything_below(unsynced.folder)
    said = terminal.run("check")
    assert said.code == 2
    assert signs(said.out)["Java"] == "✗"
    assert "openjdk-17" in said.out
    assert everything_below(unsynced.folder) == before


def test_an_empty_archive_is_a_warning(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text(SETTINGS)
    for source in ("wX3mQ8rTz", "9IP56Shn6"):
        (tmp_path / "data/segment-logs" / source).mkdir(parents=True)
    said = terminal.run("check")
    assert said.code == 0
    assert signs(said.out)["archive of ios_prod"] == "!"


def test_a_changed_layout_is_refused_as_wrong_settings(
    terminal: Terminal, filled: SampleLake
) -> None:
    file = filled.folder / "lake.yaml"
    file.write_text(file.read_text() + "    date_partition: day\n")
    said = terminal.run("check")
    assert said.code == 2
    assert signs(said.out)["tables of ios_prod"] == "✗"
    assert signs(said.out)["tables of web_shop"] == "✓"


def test_state_of_a_newer_release_is_not_the_fault_of_the_settings(
    terminal: Terminal, filled: SampleLake
) -> None:
    file = filled.folder / "data/segment-data/_state/sources/9IP56Shn6/state.json"
    file.write_text(json.dumps({"format_version": 99}))
    said = terminal.run("check")
    assert said.code == 1
    assert "format version 99" in said.out


def test_storage_that_is_a_file(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text(SETTINGS)
    (tmp_path / "data").write_text("")
    said = terminal.run("check")
    assert said.code == 2
    assert f"{tmp_path}/data is a file" in said.out


@pytest.mark.usefixtures("no_java")
def test_as_json(terminal: Terminal, unsynced: SampleLake) -> None:
    found = terminal.run("check", "--json").json
    assert found[0] == {
        "what": "settings",
        "level": "ok",
        "seen": f"{unsynced.folder}/lake.yaml, 2 sources",
    }
    assert [one["level"] for one in found if one["what"] == "Java"] == ["error"]


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


def test_tables_as_json(terminal: Terminal, filled: SampleLake) -> None:
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

"""`datalake check`."""

import json
from pathlib import Path

import pytest

from eventlake.rules import paths
from tests.support.lakes.jobs import SampleLake
from tests.support.terminal import datalake, everything_below, signs

SLUGS = ("web_shop", "ios_prod")
CHECKS = ("freshness", "drift", "partitions", "small_files", "schema_change")
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


def test_a_healthy_lake_gets_the_table_of_reports_and_nothing_else(unsynced: SampleLake) -> None:
    before = everything_below(unsynced.folder)
    result = datalake("check")
    assert result.err == ""
    sources = [f"{what} of {slug}" for what in ("archive", "tables") for slug in SLUGS]
    found = signs(result)
    odd_lines = {found.pop(f"lines of {slug}") for slug in SLUGS}
    assert odd_lines == {"!"}  # the sample has them on purpose
    assert found == dict.fromkeys(["settings", "storage", *sources, "catalog", "Java"], "✓")
    made = everything_below(unsynced.folder).keys() - before.keys()
    assert made and all("/catalog/__segment_datalake/" in path for path in made)
    assert datalake("sql", "SELECT * FROM sync_reports", "--json").json == []


def test_five_wrong_settings_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text(FIVE_WRONG)
    result = datalake("check", code=2)
    assert result.out == ""
    assert "5 settings are wrong" in result.err
    for place in ("lake.yaml:2", "lake.yaml:3", "lake.yaml:4", "lake.yaml:8", "lake.yaml:9"):
        assert place in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["lake.yaml"]


def test_a_missing_archive_is_named_and_nothing_is_written(settings_file: Path) -> None:
    result = datalake("check", code=2)
    assert signs(result)["archive of web_shop"] == "✗"
    assert f"{settings_file.parent}/data/segment-logs/9IP56Shn6 does not exist" in result.out
    assert list(settings_file.parent.iterdir()) == [settings_file]


@pytest.mark.usefixtures("no_java")
def test_without_java_the_message_explains_how_to_install_it(unsynced: SampleLake) -> None:
    before = everything_below(unsynced.folder)
    result = datalake("check", code=2)
    assert signs(result)["Java"] == "✗"
    assert "openjdk-17" in result.out
    found = datalake("check", "--json", code=2).json
    settings = f"{unsynced.folder}/lake.yaml, 2 sources"
    assert found[0] == {"what": "settings", "level": "ok", "seen": settings}
    assert [one["level"] for one in found if one["what"] == "Java"] == ["error"]
    assert everything_below(unsynced.folder) == before


@pytest.mark.usefixtures("empty_archive")
def test_an_empty_archive_is_a_warning() -> None:
    assert signs(datalake("check"))["archive of ios_prod"] == "!"


def test_a_changed_layout_is_refused_as_wrong_settings(filled: SampleLake) -> None:
    file = filled.folder / "lake.yaml"
    file.write_text(file.read_text() + "    date_partition: day\n")
    found = signs(datalake("check", code=2))
    assert (found["tables of ios_prod"], found["tables of web_shop"]) == ("✗", "✓")


def test_state_of_a_newer_release_is_not_the_fault_of_the_settings(filled: SampleLake) -> None:
    file = filled.folder / "data/segment-data/_state/sources/9IP56Shn6/state.json"
    file.write_text(json.dumps({"format_version": 99}))
    assert "format version 99" in datalake("check", code=1).out


def test_storage_that_is_a_file(settings_file: Path) -> None:
    storage = settings_file.with_name("data")
    storage.touch()
    assert f"{storage} is a file" in datalake("check", code=2).out


def drop_column(filled: SampleLake) -> None:
    """Edit the catalog entry of `web_shop.page` by hand."""
    path = filled.folder / "data" / paths.catalog_table_file("web_shop", "page")
    entry = json.loads(path.read_text())
    entry["columns"] = [c for c in entry["columns"] if c["name"] != "sent_at"]
    path.write_text(json.dumps(entry))


def test_it_counts_what_passed_and_changes_nothing(filled: SampleLake) -> None:
    before = everything_below(filled.folder)
    result = datalake("check", "--tables", "--source", "web_shop")
    tables = len(filled.lake.catalog.tables("web_shop"))
    last = result.out.splitlines()[-1]
    assert last.startswith(f"web_shop: {tables} tables; passed: freshness ")
    assert f"drift {tables}/{tables}, partitions {tables}/{tables}" in last
    assert everything_below(filled.folder) == before


def test_drift_is_reported_with_what_to_do_and_can_be_repaired(filled: SampleLake) -> None:
    drop_column(filled)
    found = datalake("check", "--tables", "--json", code=1).json
    assert {one["check"] for one in found} == set(CHECKS)
    [wrong] = [one for one in found if not one["passed"] and one["severity"] == "error"]
    assert (wrong["table"], wrong["check"]) == ("web_shop.page", "drift")
    assert wrong["evidence"]["problems"] == 1

    result = datalake("check", "--tables", "--source", "web_shop", code=1)
    lines = result.out.splitlines()
    at = lines.index("✗ drift of web_shop.page")
    assert lines[at + 1].strip() == "sent_at timestamp is not in the catalog"
    assert "datalake recover --catalog" in result.err

    repaired = datalake("recover", "--catalog", "--source", "web_shop")
    assert "web_shop: restored 1 table in the catalog." in repaired.out
    datalake("check", "--tables")
    again = datalake("recover", "--catalog", "--json").json
    assert [one["tables_restored"] for one in again] == [[], []]

    rebuilt = datalake("recover", "--from-data", "--source", "web_shop", "--json").json
    [source] = [one["from_data"] for one in rebuilt]
    assert source["tables"] == len(filled.lake.catalog.tables("web_shop"))
    datalake("check", "--tables", "--source", "web_shop")
